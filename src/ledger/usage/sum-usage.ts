import { ask, askOne, type Steps } from "../administration/steps.ts";
import { unknownAccount } from "../operator-input.ts";
import { numberOf, numberOrNullOf, type Row, textOf } from "../row.ts";
import { openGroups } from "./usage-groups.ts";
import { sumsTables } from "./tables.ts";
import {
  areNamed,
  keptStatement,
  summedStatement,
  unsummedStatement,
  unsummedWhere,
} from "./statements.ts";
import { partsOf } from "./usage-parts.ts";
import type { Unsummed, UsageQuery, UsageRow } from "./usage-query.ts";
import { timesOf } from "./usage-times.ts";

/** Adds up what has ended: from kept sums as far as they go, and from receipts beyond. One snapshot. */
export function* sumUsage(query: UsageQuery): Steps<readonly UsageRow[]> {
  const { accountId } = query;
  if (accountId !== null && (yield* askOne(findAccount, accountId)) === null)
    throw unknownAccount(accountId);
  const unsummed = yield* readUnsummed(accountId);
  const bounds = yield* boundsOf(query, unsummed);
  if (bounds === null) return [];
  const times = timesOf(query, ...bounds);
  const groups = openGroups(query, times);
  const parts = partsOf(query, times);
  const { table } = parts;
  if (table !== null) {
    const { text, values } = keptStatement(query, { ...parts, table, times });
    for (const row of yield* ask(text, ...values))
      groups.add(row, areNamed(times) ? atOf(row) : parts.countedAt(atOf(row)), 1);
  }
  for (const part of parts.finer) {
    const { text, values } = summedStatement(query, { ...part, coarser: table, times });
    for (const row of yield* ask(text, ...values)) {
      groups.add(row, atOf(row), 1);
      if (table !== null) groups.add(row, parts.countedAt(numberOf(row, "of_ms")), -1);
    }
  }
  for (const some of batchesOf(unsummed)) {
    const { text, values } = unsummedStatement(query, { some, times });
    for (const row of yield* ask(text, ...values)) groups.add(row, atOf(row), 1);
  }
  return yield* groups.named();
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
  const bounds = [sinceMs ?? Math.min(...found), untilMs ?? Math.max(...found)] as const;
  return bounds[0] < bounds[1] ? bounds : null;
}
