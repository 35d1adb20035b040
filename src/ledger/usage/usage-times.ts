import { periodsBetween } from "../periods.ts";
import type { UsageQuery, UsageTime } from "./usage-query.ts";

const hourMs = 3_600_000;

/** The times that a query's sums are over, one after another; as long as there are requests where the query has no bounds. */
export function timesOf(
  { by, sinceMs, timezone, untilMs }: UsageQuery,
  firstMs: number,
  lastMs: number,
): readonly UsageTime[] {
  const clipped = (time: UsageTime): UsageTime => ({
    ...time,
    beginMs: Math.max(time.beginMs, sinceMs ?? time.beginMs),
    endMs: Math.min(time.endMs, untilMs ?? time.endMs),
  });
  if (by.includes("hour")) return hours(firstMs, lastMs).map(clipped);
  const period = by.includes("day") ? "day" : by.includes("month") ? "month" : null;
  if (period === null) return [{ beginMs: firstMs, endMs: lastMs, name: "" }];
  const length = period === "day" ? "2026-01-31".length : "2026-01".length;
  return periodsBetween({ period, timezone }, firstMs, lastMs).map(({ beginMs, date, endMs }) =>
    clipped({ beginMs, endMs, name: date.slice(0, length) }),
  );
}

function hours(firstMs: number, lastMs: number): readonly UsageTime[] {
  const times: UsageTime[] = [];
  for (let beginMs = firstMs - (firstMs % hourMs); beginMs < lastMs; beginMs += hourMs)
    times.push({
      beginMs,
      endMs: beginMs + hourMs,
      name: new Date(beginMs).toISOString().replace(".000", ""),
    });
  return times;
}
