// How numbers, times and names of the ledger are shown. Each is exact: what is shortened has the whole in its title.

const whole = new Intl.NumberFormat("en-US");
const short = new Intl.NumberFormat("en-US", { notation: "compact", maximumSignificantDigits: 3 });

/** A count, with its thousands apart. */
export function countText(count: number): string {
  return whole.format(count);
}

/** A count in few characters, such as 12.3K. */
export function shortCount(count: number): string {
  return short.format(count);
}

/** An amount of credits, exact, with its thousands apart. */
export function creditText(amount: string): string {
  const [, sign = "", digits = "", rest = ""] = /^(-?)(\d+)(\.\d+)?$/.exec(amount) ?? [];
  if (digits === "") return amount;
  return `${sign === "-" ? "−" : ""}${digits.replaceAll(/\B(?=(\d{3})+$)/g, ",")}${rest}`;
}

/** A duration in few characters, such as 1.5 s, for a scale. */
export function shortDuration(ms: number): string {
  if (ms === 0) return "0";
  if (ms >= 60_000) return durationText(ms);
  return ms < 1_000 ? `${String(ms)} ms` : `${String(ms / 1_000)} s`;
}

/** A duration as a person reads it. */
export function durationText(ms: number): string {
  if (ms < 1_000) return `${String(Math.round(ms))} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(ms < 10_000 ? 2 : 1)} s`;
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 60) return `${String(minutes)} min ${String(Math.round((ms % 60_000) / 1_000))} s`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${String(hours)} h ${String(minutes % 60)} min`;
  return `${String(Math.floor(hours / 24))} days`;
}

/** How long ago, or how long until, in one unit. */
export function agoText(time: string, nowMs: number): string {
  const ms = nowMs - Date.parse(time);
  const text = spanText(Math.abs(ms));
  if (text === null) return "just now";
  return ms < 0 ? `in ${text}` : `${text} ago`;
}

const units: readonly (readonly [string, number])[] = [
  ["day", 86_400_000],
  ["hour", 3_600_000],
  ["minute", 60_000],
  ["second", 1_000],
];

function spanText(ms: number): string | null {
  for (const [name, length] of units) {
    const count = Math.floor(ms / length);
    if (count >= 1) return `${String(count)} ${name}${count === 1 ? "" : "s"}`;
  }
  return null;
}

/** A time in the zone of the person who looks, such as 2026-11-22 13:30:05. */
export function timeText(time: string): string {
  const at = new Date(time);
  const date = `${String(at.getFullYear())}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  return `${date} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}

/** A day of UTC, of which usage and statements are in whatever zone the person looks from. */
export function dayText(beginMs: number): string {
  return new Date(beginMs).toISOString().slice(0, 10);
}

/** The zone of the person's times, such as Europe/Berlin. */
export function zoneText(): string {
  return Intl.DateTimeFormat().resolvedOptions().timeZone;
}

function two(value: number): string {
  return String(value).padStart(2, "0");
}

/** The wire formats by the names that people know. */
export const formatNames = {
  "chat-completions": "Chat Completions",
  responses: "Responses",
  messages: "Messages",
} as const;

/** In which format a request was asked, and whether streamed. */
export function formatText(request: {
  readonly format: string;
  readonly streamed: boolean;
}): string {
  const names: Readonly<Record<string, string>> = formatNames;
  return `${names[request.format] ?? request.format}${request.streamed ? ", streamed" : ""}`;
}

/** An outcome as words: its name is one. */
export function outcomeText(outcome: string): string {
  return outcome.replaceAll("-", " ");
}
