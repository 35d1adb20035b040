import type { StatementValue } from "../administration/steps.ts";
import { selectSums } from "./measures.ts";
import { type SumsTable, sumsTables } from "./tables.ts";
import type { UsageParts } from "./usage-parts.ts";
import type { Unsummed, UsageQuery, UsageTime } from "./usage-query.ts";

/** A question, with its parameters. */
export interface Statement {
  readonly text: string;
  readonly values: readonly StatementValue[];
}

// Each statement answers the sums of a group, the instant by which it is counted (`at_ms`), and of what is finer than the
// rows of a table the begin of that row (`of_ms`).

const dayMs = sumsTables.day.spanMs;
/** Months of three years; of more times each row answers its own. */
const namedTimesMax = 36;

/** The whole rows of a table. */
export function keptStatement(
  query: UsageQuery,
  parts: UsageParts & { readonly table: SumsTable; readonly times: readonly UsageTime[] },
): Statement {
  const { table, whole } = parts;
  const values: StatementValue[] = [whole.beginMs, whole.endMs];
  return {
    text: `select ${selected(query, "kept", [`${countedAt(parts)} as at_ms`])}
      from ${table.ofAccount ? everyAccount : ""} tributary.${table.name} as kept
      where ${table.ofAccount ? "kept.account_id = progress.account_id and" : ""} kept.begin_ms >= $1 and kept.begin_ms < $2
        ${filters(query, "kept", values)} ${table.ofAccount ? ofAccounts(query, "progress.account_id", values) : ""}
        ${grouped(query, "kept", ["at_ms"])}`,
    values,
  };
}

/** Sums, or receipts that kept sums cover, within rows of a coarser table. */
export function summedStatement(
  query: UsageQuery,
  parts: UsageParts["finer"][number] & {
    readonly coarser: SumsTable | null;
    readonly times: readonly UsageTime[];
  },
): Statement {
  const { coarser, range, table, times } = parts;
  const beginMs = range.beginMs + range.fromMs;
  const from = table === null ? "receipt" : "kept";
  const time = table === null ? "receipt.resolved_at_ms" : "kept.begin_ms";
  const isLong = range.endMs - range.beginMs > dayMs;
  const endMs = isLong ? range.endMs : Math.min(range.endMs, range.beginMs + range.toMs);
  const values: StatementValue[] = [beginMs, endMs];
  const instants = [
    `${instant(time, { firstMs: beginMs, endMs }, times)} as at_ms`,
    ...(coarser === null ? [] : [`${floor(time, coarser.spanMs)} as of_ms`]),
  ];
  const covered =
    table === null
      ? "and receipt.state <> 'open' and receipt.resolved_sequence <= progress.summed_sequence"
      : "";
  const hours = isLong
    ? `and ${time} % ${String(dayMs)} >= ${String(range.fromMs)} and ${time} % ${String(dayMs)} < ${String(range.toMs)}`
    : "";
  return {
    text: `select ${selected(query, from, instants)}
      from ${everyAccount} tributary.${table?.name ?? "reservation"} as ${from}
      where ${from}.account_id = progress.account_id ${covered} and ${time} >= $1 and ${time} < $2 ${hours}
        ${filters(query, from, values)} ${ofAccounts(query, "progress.account_id", values)}
        ${grouped(query, from, coarser === null ? ["at_ms"] : ["at_ms", "of_ms"])}`,
    values,
  };
}

/** Receipts of some accounts that no kept sum covers. */
export function unsummedStatement(
  query: UsageQuery,
  { some, times }: { readonly some: readonly Unsummed[]; readonly times: readonly UsageTime[] },
): Statement {
  const values: StatementValue[] = [];
  const where = unsummedWhere(some, values);
  const [firstMs, endMs] = [times[0]?.beginMs ?? 0, times.at(-1)?.endMs ?? 0];
  const since = `$${String(values.push(firstMs))}`;
  const until = `$${String(values.push(endMs))}`;
  const at = instant("receipt.resolved_at_ms", { firstMs, endMs }, times);
  return {
    text: `select ${selected(query, "receipt", [`${at} as at_ms`])}
      from tributary.reservation as receipt where receipt.state <> 'open' and ${where}
        and receipt.resolved_at_ms >= ${since} and receipt.resolved_at_ms < ${until}
        ${filters(query, "receipt", values)} ${grouped(query, "receipt", ["at_ms"])}`,
    values,
  };
}

/** The condition on receipts that no kept sum covers; its parameters are added to the values. */
export function unsummedWhere(some: readonly Unsummed[], values: StatementValue[]): string {
  const ofEach = some.map(
    ({ accountId, after }) =>
      `(receipt.account_id = $${String(values.push(accountId))} and receipt.resolved_sequence > $${String(values.push(after))})`,
  );
  return `(${ofEach.join(" or ")})`;
}

// One account after another, each by the key of the table: with a cross join SQLite keeps this order.
const everyAccount = "tributary.usage_progress as progress cross join";

type From = "kept" | "receipt";

/** What a group has in common beside its time, by its name in a row. */
function dimensions({ by }: UsageQuery, from: From): Readonly<Record<string, string>> {
  return {
    ...(by.includes("account") ? { of_account: `${from}.account_id` } : {}),
    ...(by.includes("key") ? { of_key: `${from}.key_id` } : {}),
    ...(by.includes("format") ? { of_format: `${from}.format` } : {}),
    ...(by.includes("label")
      ? { of_label: from === "kept" ? "kept.label" : "coalesce(receipt.label, '')" }
      : {}),
  };
}

function selected(query: UsageQuery, from: From, instants: readonly string[]): string {
  const columns = Object.entries(dimensions(query, from)).map(
    ([name, text]) => `${text} as ${name}`,
  );
  return [...columns, ...instants, selectSums(from)].join(", ");
}

function grouped(query: UsageQuery, from: From, instants: readonly string[]): string {
  return `group by ${[...Object.keys(dimensions(query, from)), ...instants].join(", ")}`;
}

function filters(query: UsageQuery, from: From, values: StatementValue[]): string {
  const wanted = [
    ["account_id", query.accountId],
    ["key_id", query.keyId],
    ["format", query.format],
  ] as const;
  return wanted
    .filter(([, value]) => value !== null)
    .map(([column, value]) => `and ${from}.${column} = $${String(values.push(value))}`)
    .join(" ");
}

function ofAccounts({ accountIds }: UsageQuery, column: string, values: StatementValue[]): string {
  if (accountIds === undefined) return "";
  return `and ${column} in (${accountIds.map((id) => `$${String(values.push(id))}`).join(", ")})`;
}

/** An instant of the time in which a whole row is counted; or its begin, where `answersBegins`. */
function countedAt(parts: PartsOfTimes): string {
  const { boundary, times } = parts;
  if (times.length <= namedTimesMax) return byTimes("kept.begin_ms", boundary, times);
  if (answersBegins(parts)) return "kept.begin_ms";
  return byRuns("kept.begin_ms", times[0]?.beginMs ?? 0, runsOf(beginsWithin(times)));
}

type PartsOfTimes = UsageParts & {
  readonly table: SumsTable;
  readonly times: readonly UsageTime[];
};

/** Whether `keptStatement` answers the begin of each row, and not the time in which it is counted. */
export function answersBegins({ table, times }: PartsOfTimes): boolean {
  if (times.length <= namedTimesMax) return false;
  const begins = beginsWithin(times);
  const { unitMs } = runsOf(begins);
  return unitMs <= table.spanMs || begins.some((atMs) => atMs % table.spanMs !== 0);
}

/** Without that of the first time, which may be any instant. */
function beginsWithin(times: readonly UsageTime[]): readonly number[] {
  return times.slice(1).map(({ beginMs }) => beginMs);
}

function byTimes(
  column: string,
  boundary: (atMs: number) => number,
  times: readonly UsageTime[],
): string {
  const later = times
    .slice(1)
    .map(
      ({ beginMs }, at) =>
        `when ${column} < ${String(boundary(beginMs))} then ${String(times[at]?.beginMs ?? 0)}`,
    );
  return `case ${later.join(" ")} when ${column} is not null then ${String(times.at(-1)?.beginMs ?? 0)} end`;
}

/** An instant of the same time as the row's own, the same for as many rows as can be; not before the first. */
function instant(
  column: string,
  { firstMs, endMs }: { readonly firstMs: number; readonly endMs: number },
  times: readonly UsageTime[],
): string {
  const edges = [...times.map(({ beginMs }) => beginMs), times.at(-1)?.endMs ?? 0];
  const inner = edges.filter((atMs) => atMs > firstMs && atMs < endMs);
  if (inner.length === 0) return `case when ${column} is not null then ${String(firstMs)} end`;
  return byRuns(column, firstMs, runsOf(inner));
}

/** Instants of which each run is whole units apart: units of one run may begin at another time of the day than the next one's. */
interface Runs {
  /** 1: no unit is longer. */
  readonly unitMs: number;
  /** The first instant of each run. */
  readonly begins: readonly number[];
}

/** In the longest unit that has few runs: local days are in one, which changes of the clock divide. */
function runsOf(edges: readonly number[]): Runs {
  for (const unitMs of [dayMs, 3_600_000, sumsTables.quarter.spanMs]) {
    const begins = edges.filter(
      (atMs, at) => at === 0 || atMs % unitMs !== (edges[at - 1] ?? 0) % unitMs,
    );
    if (begins.length <= namedTimesMax) return { unitMs, begins };
  }
  return { unitMs: 1, begins: [] };
}

/** The begin of a column's unit, and the first instant for what is before the first run. */
function byRuns(column: string, firstMs: number, { begins, unitMs }: Runs): string {
  if (begins.length === 0) return column;
  const values = [firstMs, ...begins.map((beginMs) => floor(column, unitMs, beginMs % unitMs))];
  const earlier = begins.map(
    (beginMs, at) => `when ${column} < ${String(beginMs)} then ${String(values[at])}`,
  );
  return `case ${earlier.join(" ")} else ${String(values.at(-1))} end`;
}

function floor(column: string, unitMs: number, phaseMs = 0): string {
  const within = phaseMs === 0 ? column : `(${column} - ${String(phaseMs)})`;
  return `(${column} - ${within} % ${String(unitMs)})`;
}
