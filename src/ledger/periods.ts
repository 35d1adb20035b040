/** How long a period can last; `total`: from the first request on, without an end. */
export const periodLengths = ["day", "week", "month", "total"] as const;

/** One of them. */
export type PeriodLength = (typeof periodLengths)[number];

/** A period: from `beginMs` on, before `endMs`; null: it never ends. Milliseconds since 1970. */
export interface Period {
  readonly beginMs: number;
  readonly endMs: number | null;
}

const dayMs = 86_400_000;
const sampleMs = 1_800_000;
// Local time is at most 16 hours from UTC anywhere, at any time since 1970; a day was left out by a zone that changed sides.
const farthestMs = 18 * 3_600_000;

type EndingPeriod = Period & { readonly endMs: number };

// One for each zone and length: most instants that are asked for are in the same period as the one before.
const found = new Map<string, EndingPeriod>();
const formats = new Map<string, Intl.DateTimeFormat>();

/** Whether there is such a time zone: `UTC`, or a name of the IANA database such as `Europe/Berlin`. */
export function isTimeZone(name: string): boolean {
  // Offsets such as +01:00 are no zones: they know no summer time.
  if (!/^[A-Za-z][A-Za-z0-9_+\-/]{0,63}$/.test(name)) return false;
  try {
    formatOf(name);
    return true;
  } catch {
    return false;
  }
}

/**
 * The period that an instant is in. Periods begin at the first instant of the local day (of Monday, of the 1st), which is
 * not midnight where the clocks are put forward at midnight; they follow each other without a gap, whatever clocks do.
 */
export function periodAt(
  { period, timezone }: { readonly period: PeriodLength; readonly timezone: string },
  nowMs: number,
): Period {
  if (period === "total") return { beginMs: 0, endMs: null };
  const name = `${period} ${timezone}`;
  const last = found.get(name);
  if (last !== undefined && last.beginMs <= nowMs && nowMs < last.endMs) return last;
  const now = findPeriod(period, timezone, nowMs);
  found.set(name, now);
  return now;
}

function findPeriod(
  period: Exclude<PeriodLength, "total">,
  timezone: string,
  nowMs: number,
): EndingPeriod {
  let first = firstDayOf(period, localDay(timezone, nowMs));
  let beginMs = beginOf(timezone, first);
  for (;;) {
    const next = firstDayAfter(period, first);
    const endMs = beginOf(timezone, next);
    // Where a clock was put back over midnight, the day that had begun goes on.
    if (nowMs < endMs) return { beginMs, endMs };
    first = next;
    beginMs = endMs;
  }
}

/** Days since 1970-01-01 of the calendar, as `Date.UTC` counts them. */
type Day = number;

function firstDayOf(period: Exclude<PeriodLength, "total">, day: Day): Day {
  if (period === "day") return day;
  // 1970-01-01 was a Thursday.
  if (period === "week") return day - ((((day + 3) % 7) + 7) % 7);
  const date = new Date(day * dayMs);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), 1) / dayMs;
}

function firstDayAfter(period: Exclude<PeriodLength, "total">, first: Day): Day {
  if (period !== "month") return first + (period === "day" ? 1 : 7);
  const date = new Date(first * dayMs);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 1) / dayMs;
}

/** The first instant of a local day, or of the next one that the zone has. */
function beginOf(timezone: string, day: Day): number {
  const utc = day * dayMs;
  let before = utc - farthestMs;
  let at = before;
  while (localDay(timezone, at) < day) {
    before = at;
    at += sampleMs;
  }
  // Between a sample that is before it and one that is not.
  while (at - before > 1) {
    const middle = Math.floor((before + at) / 2);
    if (localDay(timezone, middle) < day) before = middle;
    else at = middle;
  }
  return at;
}

function localDay(timezone: string, atMs: number): Day {
  const parts = new Map(
    formatOf(timezone)
      .formatToParts(atMs)
      .map(({ type, value }) => [type, Number(value)]),
  );
  const [year = 0, month = 0, day = 0] = [parts.get("year"), parts.get("month"), parts.get("day")];
  return Date.UTC(year, month - 1, day) / dayMs;
}

function formatOf(timezone: string): Intl.DateTimeFormat {
  const known = formats.get(timezone);
  if (known !== undefined) return known;
  const format = new Intl.DateTimeFormat("en-US-u-ca-gregory-nu-latn", {
    timeZone: timezone,
    year: "numeric",
    month: "numeric",
    day: "numeric",
  });
  formats.set(timezone, format);
  return format;
}

/** A period with the calendar's day on which it begins, such as 2026-01-31. */
export interface DatedPeriod extends Period {
  readonly endMs: number;
  readonly date: string;
}

/** The periods that `[sinceMs, untilMs)` is in, one after another. */
export function periodsBetween(
  { period, timezone }: { readonly period: "day" | "month"; readonly timezone: string },
  sinceMs: number,
  untilMs: number,
): readonly DatedPeriod[] {
  const periods: DatedPeriod[] = [];
  for (let atMs = sinceMs; atMs < untilMs;) {
    const before = periods.at(-1);
    const next = before === undefined ? null : dayAfter(timezone, before);
    const { beginMs, endMs } =
      period === "day" && next !== null ? next : findPeriod(period, timezone, atMs);
    const date = new Date(localDay(timezone, beginMs) * dayMs).toISOString().slice(0, 10);
    periods.push({ beginMs, endMs, date });
    atMs = endMs;
  }
  return periods;
}

/** The day after another where both are of 24 hours, which takes two looks at the calendar; null: it is to be searched for. */
function dayAfter(timezone: string, { endMs }: DatedPeriod): EndingPeriod | null {
  const day = localDay(timezone, endMs);
  const nextMs = endMs + dayMs;
  const isNext = localDay(timezone, nextMs) === day + 1 && localDay(timezone, nextMs - 1) === day;
  return isNext ? { beginMs: endMs, endMs: nextMs } : null;
}
