import type { SettlementOutcome } from "../receipt.ts";
import { bigOf, numberOf, type Row } from "../row.ts";

/** What a sum counts of each way to end, by its column. */
const outcomeColumns = {
  completed: "completed",
  cancelled: "cancelled",
  "cancelled-before-output": "cancelled_before_output",
  refused: "refused",
  failed: "failed",
  "cancelled-by-operator": "cancelled_by_operator",
  "lease-lost": "lease_lost",
} as const satisfies Record<SettlementOutcome, string>;

/**
 * Upper bounds of the buckets of latencies, in milliseconds, each twice the one before: 16 ms to 17 minutes, and a last
 * bucket for what is longer. A percentile is right to its bucket, and guessed within it as if its requests were spread evenly.
 */
const bucketBounds: readonly number[] = Array.from({ length: 17 }, (_, index) => 16 * 2 ** index);
const latencies = ["first_output", "total"] as const;
type Latency = (typeof latencies)[number];

/** A column of the tables of sums. */
interface Measure {
  readonly column: string;
  /** Of receipts, as `receipt`. */
  readonly ofReceipts: string;
  /** Null stands for 0, which most buckets are. */
  readonly nullable: boolean;
}

/** The bucket of a latency in milliseconds. */
export function bucketOf(ms: number): number {
  const bucket = bucketBounds.findIndex((bound) => ms < bound);
  return bucket === -1 ? bucketBounds.length : bucket;
}

/** The column that counts an outcome; an empty name where none does. */
export function outcomeColumnOf(outcome: string | null): string {
  return outcome !== null && Object.hasOwn(outcomeColumns, outcome)
    ? outcomeColumns[outcome as SettlementOutcome]
    : "";
}

const tokens = ["input_tokens", "cached_input_tokens", "output_tokens", "reasoning_tokens"];

/** Every column of the tables of sums that is added up. */
export const measures: readonly Measure[] = [
  { column: "requests", ofReceipts: "count(*)", nullable: false },
  ...tokens.map((column) => ({
    column,
    ofReceipts: `coalesce(sum(receipt.${column}), 0)`,
    nullable: false,
  })),
  { column: "charged_nanos", ofReceipts: "sum(receipt.charged_nanos)", nullable: false },
  ...Object.entries(outcomeColumns).map(([outcome, column]) => ({
    column,
    ofReceipts: `count(*) filter (where receipt.outcome = '${outcome}')`,
    nullable: false,
  })),
  ...latencies.flatMap((latency) =>
    [...bucketBounds, null].map((bound, bucket) => ({
      column: `${latency}_${String(bucket)}`,
      ofReceipts: `nullif(count(*) filter (where ${within(`receipt.${latency}_ms`, bucket, bound)}), 0)`,
      nullable: true,
    })),
  ),
];

function within(column: string, bucket: number, bound: number | null): string {
  const least = bucket === 0 ? "" : `${column} >= ${String(bucketBounds[bucket - 1])}`;
  const most = bound === null ? "" : `${column} < ${String(bound)}`;
  return [least, most].filter((condition) => condition !== "").join(" and ");
}

// The figures that no 64 bits may hold together, as SQLite's sum would fail: both halves of each are added up alone.
const wide = new Set([...tokens, "charged_nanos"]);

/** The measures of some rows, added up: of receipts as `receipt`, or of a table of sums as `kept`. */
export function selectSums(from: "receipt" | "kept"): string {
  return measures
    .map(({ column, ofReceipts }) => {
      if (wide.has(column))
        return `coalesce(sum(${from}.${column} >> 32), 0) as ${column}_high, coalesce(sum(${from}.${column} & 4294967295), 0) as ${column}_low`;
      return from === "receipt" && column !== "requests"
        ? `coalesce(${ofReceipts}, 0) as ${column}`
        : `coalesce(${from === "kept" ? `sum(kept.${column})` : ofReceipts}, 0) as ${column}`;
    })
    .join(", ");
}

/** Latencies of some requests, in milliseconds; null where none has one. */
export interface Percentiles {
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
}

/** What some requests come to. */
export interface UsageSums {
  requests: number;
  inputTokens: number;
  cachedInputTokens: number;
  outputTokens: number;
  reasoningTokens: number;
  chargedNanos: bigint;
  readonly outcomes: Record<SettlementOutcome, number>;
  readonly buckets: Record<Latency, number[]>;
}

/** Nothing, to add to. */
export function noSums(): UsageSums {
  return {
    requests: 0,
    inputTokens: 0,
    cachedInputTokens: 0,
    outputTokens: 0,
    reasoningTokens: 0,
    chargedNanos: 0n,
    outcomes: {
      completed: 0,
      cancelled: 0,
      "cancelled-before-output": 0,
      refused: 0,
      failed: 0,
      "cancelled-by-operator": 0,
      "lease-lost": 0,
    },
    buckets: { first_output: emptyBuckets(), total: emptyBuckets() },
  };
}

function emptyBuckets(): number[] {
  return Array.from({ length: bucketBounds.length + 1 }, () => 0);
}

/** Adds the sums of a row that `selectSums` selected, or takes them away where the sign is -1. */
export function addRow(sums: UsageSums, row: Row, sign: 1 | -1): void {
  sums.requests += sign * numberOf(row, "requests");
  sums.inputTokens += sign * Number(wideOf(row, "input_tokens"));
  sums.cachedInputTokens += sign * Number(wideOf(row, "cached_input_tokens"));
  sums.outputTokens += sign * Number(wideOf(row, "output_tokens"));
  sums.reasoningTokens += sign * Number(wideOf(row, "reasoning_tokens"));
  sums.chargedNanos += BigInt(sign) * wideOf(row, "charged_nanos");
  for (const [outcome, column] of Object.entries(outcomeColumns) as [SettlementOutcome, string][])
    sums.outcomes[outcome] += sign * numberOf(row, column);
  for (const latency of latencies) {
    const counts = sums.buckets[latency];
    for (let bucket = 0; bucket <= bucketBounds.length; bucket += 1)
      counts[bucket] = (counts[bucket] ?? 0) + sign * numberOf(row, `${latency}_${String(bucket)}`);
  }
}

function wideOf(row: Row, column: string): bigint {
  return (bigOf(row, `${column}_high`) << 32n) + bigOf(row, `${column}_low`);
}

/** The percentiles of a latency; null where no request has it. */
export function percentilesOf({ buckets }: UsageSums, latency: Latency): Percentiles | null {
  const counts = buckets[latency];
  const total = counts.reduce((all, count) => all + count, 0);
  if (total === 0) return null;
  const at = (share: number): number => quantile(counts, share * total);
  return { p50: at(0.5), p95: at(0.95), p99: at(0.99) };
}

function quantile(counts: readonly number[], rank: number): number {
  let below = 0;
  for (const [bucket, count] of counts.entries()) {
    if (count > 0 && below + count >= rank) {
      const from = bucketBounds[bucket - 1] ?? 0;
      const to = bucketBounds[bucket] ?? from * 2;
      return Math.round(from + ((rank - below) / count) * (to - from));
    }
    below += count;
  }
  return bucketBounds.at(-1) ?? 0;
}
