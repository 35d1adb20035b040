const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

/** The times that plots show: how many points of which length. */
export const ranges = {
  "24h": { title: "24 hours", by: "hour", widthMs: hourMs, points: 24 },
  "7d": { title: "7 days", by: "hour", widthMs: hourMs, points: 168 },
  "30d": { title: "30 days", by: "day", widthMs: dayMs, points: 30 },
} as const;

/** The name of a range. */
export type RangeName = keyof typeof ranges;

/** Whether a text is one. */
export function isRange(text: string): text is RangeName {
  return Object.hasOwn(ranges, text);
}

/** When each point of a range begins; the last one is the present one. */
export function bucketsOf(range: RangeName, nowMs: number): readonly number[] {
  const { points, widthMs } = ranges[range];
  const last = Math.floor(nowMs / widthMs) * widthMs;
  return Array.from({ length: points }, (_, index) => last - (points - 1 - index) * widthMs);
}
