/** The zone that the browser has. */
export function ownTimeZone(): string {
  return Intl.DateTimeFormat().resolvedOptions().timeZone;
}

/** A field for a time zone: the names that the browser knows are offered. */
export function timeZoneField(initial: string) {
  return {
    label: "Time zone",
    initial,
    required: true,
    suggestions: ["UTC", ...Intl.supportedValuesOf("timeZone")],
    hint: `Its days begin at midnight there. Yours is ${ownTimeZone()}.`,
  };
}

/** A time of a field of type `time`, which is in the zone of the person, as the API has it. */
export function asInstant(typed: string): string {
  const at = new Date(typed);
  return Number.isNaN(at.getTime()) ? typed : at.toISOString();
}

/** The other way: "" for none. */
export function asTyped(time: string | null): string {
  if (time === null) return "";
  const at = new Date(time);
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}
