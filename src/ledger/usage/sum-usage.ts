import { ask, askOne, type Steps } from "../administration/steps.ts";
import { archivedUntil } from "../archive/archive-receipts.ts";
import { unknownAccount } from "../operator-input.ts";
import { numberOf, numberOrNullOf, type Row, textOf } from "../row.ts";
import { limits } from "../../limits.ts";
import { openGroups } from "./usage-groups.ts";
import { sumsTables } from "./tables.ts";
import {
  answersBegins,
  keptStatement,
  type Statement,
  summedStatement,
  unsummedStatement,
  unsummedWhere,
} from "./statements.ts";
import { partsOf, type UsageParts } from "./usage-parts.ts";
import type { Unsummed, UsageProblemName, UsageQuery, UsageRow, UsageTime } from "./usage-query.ts";
import { type UsageForm, type UsageText, usageText } from "./usage-json.ts";
import { timesOf } from "./usage-times.ts";

/** Whether rows are put together from many others, parts of days or receipts: a page is of as many requests as may be read at once. */
function isDear({ by, format, keyId, timezone }: UsageQuery): boolean {
  if (by.includes("label"))
    return (
      by.includes("hour") ||
      (by.includes("day") && (keyId !== null || format !== null || timezone !== "UTC"))
    );
  return by.length === 2 && by.includes("day") && timezone !== "UTC" && !by.includes("format");
}

/** The rows of the first times of a query, and where the next ones begin; null: these are all. */
export interface UsagePage {
  readonly rows: readonly UsageRow[];
  readonly nextMs: number | null;
}

/**
 * Adds up what has ended: from kept sums as far as they go, and from receipts beyond. One snapshot. A name: one time alone has
 * more rows than a page, or what is asked for is known of receipts alone that were archived.
 */
export function* pageUsage(query: UsageQuery): Steps<UsagePage | UsageProblemName> {
  const { accountId } = query;
  const named = accountId === null ? query.accountIds : [accountId];
  for (const id of named ?? [])
    if ((yield* askOne(findAccount, id)) === null) throw unknownAccount(id, "account");
  const unsummed = (yield* readUnsummed(accountId)).filter(
    (one) => named?.includes(one.accountId) ?? true,
  );
  const bounds = yield* boundsOf(query, unsummed);
  if (bounds === null) return { rows: [], nextMs: null };
  const times = timesOf(query, ...bounds);
  const archivedMs = (yield* archivedUntil(accountId)) ?? -Infinity;
  return yield* pageTimes(query, times, { archivedMs, unsummed });
}

/** What kept sums lack, and until when receipts are archived. */
interface Known {
  readonly unsummed: readonly Unsummed[];
  readonly archivedMs: number;
}

function* pageTimes(
  query: UsageQuery,
  times: readonly UsageTime[],
  known: Known,
): Steps<UsagePage | UsageProblemName> {
  const { rowsMax = limits.usageRowsMax } = query;
  const rows: UsageRow[] = [];
  let from = 0;
  let requests = 0;
  const requestsMax = isDear(query) ? limits.usageRequestsDear : Infinity;
  // With a second grouping the first times tell how many rows the next ones may have.
  let count: number = query.by.length === 1 ? rowsMax : limits.usageTimesFirst;
  while (from < times.length) {
    const some = times.slice(from, from + count);
    const found = yield* sumTimes(query, some, known);
    if (found === "archived") return found;
    if (found === "too many" || rows.length + found.length > rowsMax) {
      if (rows.length > 0) break;
      if (some.length === 1) return "too many";
      count = Math.ceil(some.length / 4);
      continue;
    }
    rows.push(...found);
    from += some.length;
    requests = found.reduce((sum, { sums }) => sum + sums.requests, requests);
    const fitting = Math.min(
      Math.floor(((rowsMax - rows.length) * from) / Math.max(1, rows.length)),
      Math.floor(((requestsMax - requests) * from) / Math.max(1, requests)),
    );
    if (fitting <= 0) break;
    count = Math.min(4 * count, fitting);
  }
  return { rows, nextMs: times[from]?.beginMs ?? null };
}

/** The same as text, made where the rows are: the event loop gets bytes. */
export function* printUsage({
  form,
  ...query
}: UsageQuery & { readonly form: UsageForm }): Steps<UsageText | UsageProblemName> {
  const page = yield* pageUsage(query);
  if (typeof page === "string") return page;
  return { text: new TextEncoder().encode(usageText(page, query.by, form)), nextMs: page.nextMs };
}

function* sumTimes(
  query: UsageQuery,
  times: readonly UsageTime[],
  { archivedMs, unsummed }: Known,
): Steps<readonly UsageRow[] | UsageProblemName> {
  const groups = openGroups(query, times);
  const parts = partsOf(query, times, archivedMs);
  const { table } = parts;
  if (firstReceiptMs(parts) < archivedMs) return "archived";
  let most = 0;
  if (table !== null) {
    const begins = answersBegins({ ...parts, table, times });
    const rows = yield* read(keptStatement(query, { ...parts, table, times }));
    for (const row of rows) groups.add(row, begins ? parts.countedAt(atOf(row)) : atOf(row), 1);
    most = rows.length;
  }
  for (const part of parts.finer) {
    const rows = yield* read(summedStatement(query, { ...part, coarser: table, times }));
    most = Math.max(most, rows.length);
    for (const row of rows) {
      groups.add(row, atOf(row), 1);
      if (table !== null) groups.add(row, parts.countedAt(numberOf(row, "of_ms")), -1);
    }
  }
  for (const some of batchesOf(unsummed)) {
    const rows = yield* read(unsummedStatement(query, { some, times }));
    most = Math.max(most, rows.length);
    for (const row of rows) groups.add(row, atOf(row), 1);
  }
  if (most > limits.usageRowsReadMax || groups.count() > (query.rowsMax ?? limits.usageRowsMax))
    return "too many";
  return yield* groups.named();
}

/** From when on receipts are needed. Weeks of archived ones are not kept to be asked for: labels by key are known of receipts alone. */
function firstReceiptMs({ finer, table, whole }: UsageParts): number {
  const ofReceipts = finer.filter((part) => part.table === null);
  return Math.min(
    ...ofReceipts.map(({ range }) => range.beginMs + range.fromMs),
    table === sumsTables.week ? whole.beginMs : Infinity,
  );
}

function* read({ text, values }: Statement): Steps<readonly Row[]> {
  return yield* ask(`${text} limit ${String(limits.usageRowsReadMax + 1)}`, ...values);
}

const findAccount = "select 1 as one from tributary.account where id = $1";

function atOf(row: Row): number {
  return numberOf(row, "at_ms");
}

function* readUnsummed(accountId: string | null): Steps<readonly Unsummed[]> {
  const rows = yield* ask(
    `select account.id, coalesce(progress.summed_sequence, 0) as summed from tributary.account as account
       left join tributary.usage_progress as progress on progress.account_id = account.id
     where account.entries > coalesce(progress.summed_sequence, 0) ${accountId === null ? "" : "and account.id = $1"}
     order by account.id`,
    ...(accountId === null ? [] : [accountId]),
  );
  return rows.map((row) => ({ accountId: textOf(row, "id"), after: numberOf(row, "summed") }));
}

/** As many accounts as one statement names. */
function batchesOf(unsummed: readonly Unsummed[]): readonly (readonly Unsummed[])[] {
  const accountsMax = 50;
  return Array.from({ length: Math.ceil(unsummed.length / accountsMax) }, (_, at) =>
    unsummed.slice(at * accountsMax, (at + 1) * accountsMax),
  );
}

/** The time of the query, as far as there are requests; null: there are none. */
function* boundsOf(
  query: UsageQuery,
  unsummed: readonly Unsummed[],
): Steps<readonly [sinceMs: number, untilMs: number] | null> {
  const { accountId, sinceMs, untilMs } = query;
  if (sinceMs !== null && untilMs !== null) return sinceMs < untilMs ? [sinceMs, untilMs] : null;
  const found: number[] = [];
  const note = (row: Row | null, beyondMs: number): void => {
    const first = row === null ? null : numberOrNullOf(row, "first");
    const last = row === null ? null : numberOrNullOf(row, "last");
    if (first !== null && last !== null) found.push(first, last + beyondMs);
  };
  const kept = yield* askOne(
    `select min(begin_ms) as first, max(begin_ms) as last from tributary.usage_day
     ${accountId === null ? "" : "where account_id = $1"}`,
    ...(accountId === null ? [] : [accountId]),
  );
  note(kept, sumsTables.day.spanMs);
  for (const some of batchesOf(unsummed)) {
    const values: (string | number)[] = [];
    const row = yield* askOne(
      `select min(receipt.resolved_at_ms) as first, max(receipt.resolved_at_ms) as last
       from tributary.reservation as receipt where receipt.state <> 'open' and ${unsummedWhere(some, values)}`,
      ...values,
    );
    note(row, 1);
  }
  if (found.length === 0) return null;
  // Whole days are known of what was archived too.
  const { spanMs } = sumsTables.day;
  const bounds = [
    sinceMs ?? Math.floor(Math.min(...found) / spanMs) * spanMs,
    untilMs ?? Math.ceil(Math.max(...found) / spanMs) * spanMs,
  ] as const;
  return bounds[0] < bounds[1] ? bounds : null;
}
