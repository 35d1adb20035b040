import type { AccountId, KeyId } from "../../src/ledger/scalars.ts";
import type { Sequence } from "./random.ts";

/** What is asked of usage; times are milliseconds since 1970, null: without that bound, or of all. */
export interface UsageQuestion {
  readonly by: readonly UsageGrouping[];
  readonly accountId: AccountId | null;
  readonly keyId: KeyId | null;
  readonly format: null;
  readonly sinceMs: number | null;
  readonly untilMs: number | null;
  readonly timezone: keyof typeof offsets;
}

/** A question of a plan; a bound of "last" is the instant in which the last request ended before it is asked. */
export interface PlannedQuestion extends Omit<UsageQuestion, "sinceMs" | "untilMs"> {
  readonly sinceMs: number | "last" | null;
  readonly untilMs: number | "last" | null;
}

/** The question as it is asked. */
export function questionAt(question: PlannedQuestion, lastMs: number): UsageQuestion {
  const boundAt = (bound: number | "last" | null): number | null =>
    bound === "last" ? lastMs : bound;
  return { ...question, sinceMs: boundAt(question.sinceMs), untilMs: boundAt(question.untilMs) };
}

type UsageGrouping = "hour" | "day" | "month" | "account" | "key" | "format" | "label";

const hourMs = 3_600_000;
/** Zones whose clocks are not put forward or back in the weeks in which runs are. */
const offsets = {
  UTC: 0,
  "Asia/Kolkata": 5.5 * hourMs,
  "Asia/Kathmandu": 5.75 * hourMs,
  "America/New_York": -5 * hourMs,
} as const;

/** A request that has ended, as its receipt tells it. */
export interface EndedRequest {
  readonly account: string;
  readonly key: string;
  readonly label: string | null;
  readonly outcome: string;
  readonly charged: bigint;
  readonly atMs: number;
  readonly tokens: readonly [input: number, cached: number, output: number, reasoning: number];
  readonly firstOutputMs: number | null;
  readonly totalMs: number | null;
}

/** The rows of an answer, each in one line, in the order of their lines. */
export type UsageLines = readonly string[];

/** What requests come to, one after another from the receipts: no sum is kept. */
export function usageLines(ended: readonly EndedRequest[], question: UsageQuestion): UsageLines {
  const { accountId, keyId, sinceMs, untilMs } = question;
  const asked = ended.filter(
    ({ account, atMs, key }) =>
      (accountId === null || account === accountId) &&
      (keyId === null || key === keyId) &&
      (sinceMs === null || atMs >= sinceMs) &&
      (untilMs === null || atMs < untilMs),
  );
  const groups = Map.groupBy(asked, (one) => nameOf(one, question));
  return [...groups].map(([name, its]) => `${name}: ${figuresOf(its)}`).toSorted();
}

/** The same lines of what a store answers. */
export function answeredLines(rows: readonly AnsweredRow[], { by }: UsageQuestion): UsageLines {
  return rows
    .map(({ accountId, format, keyId, label, sums, time }) => {
      const said = {
        hour: time?.name,
        day: time?.name,
        month: time?.name,
        account: accountId,
        key: keyId,
        format,
        label: label ?? "none",
      };
      const figures = [
        sums.requests,
        sums.inputTokens,
        sums.cachedInputTokens,
        sums.outputTokens,
        sums.reasoningTokens,
        sums.chargedNanos,
        countsOf(sums.outcomes),
        countsOf(Object.fromEntries(sums.buckets.first_output.entries())),
        countsOf(Object.fromEntries(sums.buckets.total.entries())),
      ];
      return `${by.map((one) => String(said[one])).join(" ")}: ${figures.join(" ")}`;
    })
    .toSorted();
}

/** A row as a store answers it. */
export interface AnsweredRow {
  readonly time?: { readonly name: string };
  readonly accountId?: string;
  readonly keyId?: string;
  readonly format?: string;
  readonly label?: string | null;
  readonly sums: {
    readonly requests: number;
    readonly inputTokens: number;
    readonly cachedInputTokens: number;
    readonly outputTokens: number;
    readonly reasoningTokens: number;
    readonly chargedNanos: bigint;
    readonly outcomes: Readonly<Record<string, number>>;
    readonly buckets: {
      readonly first_output: readonly number[];
      readonly total: readonly number[];
    };
  };
}

function nameOf(one: EndedRequest, { by, timezone }: UsageQuestion): string {
  const local = new Date(one.atMs + offsets[timezone]).toISOString();
  const said: Readonly<Record<UsageGrouping, string>> = {
    hour: new Date(one.atMs - (one.atMs % hourMs)).toISOString().replace(".000", ""),
    day: local.slice(0, "2027-01-15".length),
    month: local.slice(0, "2027-01".length),
    account: one.account,
    key: one.key,
    format: "messages",
    label: one.label ?? "none",
  };
  return by.map((grouping) => said[grouping]).join(" ");
}

function figuresOf(ended: readonly EndedRequest[]): string {
  const sum = (of: (one: EndedRequest) => number): number =>
    ended.reduce((all, one) => all + of(one), 0);
  const counted = (of: (one: EndedRequest) => string | null): string => {
    const groups = Map.groupBy(ended, of);
    groups.delete(null);
    return countsOf(
      Object.fromEntries([...groups].map(([name, its]) => [String(name), its.length])),
    );
  };
  return [
    ended.length,
    sum(({ tokens }) => tokens[0]),
    sum(({ tokens }) => tokens[1]),
    sum(({ tokens }) => tokens[2]),
    sum(({ tokens }) => tokens[3]),
    ended.reduce((all, { charged }) => all + charged, 0n),
    counted(({ outcome }) => outcome),
    counted(({ firstOutputMs }) => bucketOf(firstOutputMs)),
    counted(({ totalMs }) => bucketOf(totalMs)),
  ].join(" ");
}

/** Latencies below 16 ms, below 32 ms, and so on up to 17 minutes. */
function bucketOf(ms: number | null): string | null {
  if (ms === null) return null;
  let bucket = 0;
  while (bucket < 17 && ms >= 16 * 2 ** bucket) bucket += 1;
  return String(bucket);
}

function countsOf(counts: Readonly<Record<string, number>>): string {
  const there = Object.entries(counts).filter(([, count]) => count !== 0);
  return `{${there
    .map(([name, count]) => `${name} ${String(count)}`)
    .toSorted()
    .join(", ")}}`;
}

/** A question about what happens in a run that starts then. */
export function usageQuestionOf(
  random: Sequence,
  {
    accounts,
    spanMs,
    startsAtMs,
  }: {
    readonly accounts: readonly {
      readonly id: AccountId;
      readonly keys: readonly { readonly id: KeyId }[];
    }[];
    readonly spanMs: number;
    readonly startsAtMs: number;
  },
): PlannedQuestion {
  const { id, keys } = random.pick(accounts);
  const time = random.pick<UsageGrouping | null>(["hour", "day", "month", "format", null]);
  const other = random.pick<UsageGrouping | null>([
    "account",
    "key",
    "format",
    "label",
    ...(time === null ? [] : [null]),
  ]);
  // Within the run, or days and weeks from it, so that whole rows of every table are within the bounds.
  const bound = (far: number): number | "last" =>
    random.chance(0.3)
      ? "last"
      : startsAtMs + random.pick([far, random.between(0, spanMs + 60_000)]);
  return {
    by: [...new Set([time, other])].filter((one) => one !== null),
    accountId: random.chance(0.4) ? id : null,
    keyId: random.chance(0.2) ? random.pick(keys).id : null,
    format: null,
    sinceMs: random.chance(0.4) ? null : bound(-random.between(1, 90) * 24 * hourMs),
    untilMs: random.chance(0.5) ? null : bound(random.between(1, 40) * 24 * hourMs),
    timezone: random.pick(["UTC", "Asia/Kolkata", "Asia/Kathmandu", "America/New_York"]),
  };
}
