import { misuse } from "./command.ts";

const hourMs = 3_600_000;
const iso = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d{1,3})?)?(Z|[+-]\d{2}:\d{2})?)?$/;

/** Milliseconds since 1970 of a date, a time, or a span that ends now, such as `7d` or `24h`; without a zone it is UTC. */
export function readTime(text: string, option: string, nowMs: number): number {
  const [, count, unit] = /^(\d{1,6})([hd])$/.exec(text) ?? [];
  if (count !== undefined) return nowMs - Number(count) * (unit === "d" ? 24 * hourMs : hourMs);
  const [, time, , , zone] = iso.exec(text) ?? [];
  const known = iso.test(text) && isOfCalendar(text.slice(0, 10));
  const atMs = known
    ? Date.parse(time === undefined || zone !== undefined ? text : `${text}Z`)
    : NaN;
  if (Number.isNaN(atMs))
    throw misuse(
      `${option} ${JSON.stringify(text)} is no time: write it as 2026-01-31, 2026-01-31T12:00:00Z, 24h or 7d.`,
    );
  return atMs;
}

/** The same for a time to come: a span such as `90d` begins now. */
export function readFutureTime(text: string, option: string, nowMs: number): number {
  const spanMs = nowMs - readTime(text, option, nowMs);
  const atMs = /^\d+[hd]$/.test(text) ? nowMs + spanMs : nowMs - spanMs;
  if (atMs <= nowMs)
    throw misuse(`${option} ${JSON.stringify(text)} is over. Name a time to come.`);
  return atMs;
}

/** Date.parse takes 30 February for 2 March. */
function isOfCalendar(day: string): boolean {
  const atMs = Date.parse(day);
  return !Number.isNaN(atMs) && new Date(atMs).toISOString().startsWith(day);
}
