import { limits } from "../../limits.ts";
import { ask, askOne, type Steps } from "../administration/steps.ts";
import { numberOf, textOf } from "../row.ts";
import { addReceipts, sumsTables } from "./tables.ts";

// Sums of usage are kept by the accounts' own journals: those of an account cover exactly its entries up to
// `usage_progress.summed_sequence`. An account's entries are written one after another, under the lock of its row that is
// held until the commit, so that whoever sees an entry sees all before it; no clock has a part in what is added.

/** Of some accounts, those that have entries whose requests may not be in the kept sums yet. */
export interface UnsummedAccounts {
  readonly accountIds: readonly string[];
  /** The last account that was looked at; null: there are no more. */
  readonly last: string | null;
}

/** Looks at a few accounts, in the order of their ids, behind one of them. */
export function* findUnsummed(after: string): Steps<UnsummedAccounts> {
  const rows = yield* ask(
    `select account.id, case when account.entries > coalesce(progress.summed_sequence, 0) then 1 else 0 end as waits
     from tributary.account as account left join tributary.usage_progress as progress on progress.account_id = account.id
     where account.id > $1 order by account.id limit ${String(limits.usageAccountsALook)}`,
    after,
  );
  const waiting = rows.filter((row) => numberOf(row, "waits") === 1);
  const last = rows.length < limits.usageAccountsALook ? undefined : rows.at(-1);
  return {
    accountIds: waiting.map((row) => textOf(row, "id")),
    last: last === undefined ? null : textOf(last, "id"),
  };
}

/** What one step of adding up has done. */
export interface KeptUsage {
  /** False: another process adds up. */
  readonly mine: boolean;
  /** Accounts that are summed up to their last entry. */
  readonly done: readonly string[];
}

/** Adds up a bounded number of requests of these accounts, the first ones first. */
export function* keepUsage({
  accountIds,
}: {
  readonly accountIds: readonly string[];
}): Steps<KeptUsage> {
  // Of all replicas one adds up at a time, so that none waits for a row of another.
  const [mine] = yield { type: "try-lock", name: "usage" };
  if (mine === undefined) return { mine: false, done: [] };
  const done: string[] = [];
  let left: number = limits.usageReceiptsAStep;
  for (const accountId of accountIds) {
    const taken = yield* keepOne(accountId, left);
    left -= taken.receipts;
    if (taken.done) done.push(accountId);
    if (left <= 0) break;
  }
  return { mine: true, done };
}

function* keepOne(
  accountId: string,
  receiptsMax: number,
): Steps<{ readonly receipts: number; readonly done: boolean }> {
  yield* ask(
    `insert into tributary.usage_progress (account_id, summed_sequence) values ($1, 0)
     on conflict (account_id) do nothing`,
    accountId,
  );
  const progress = yield* askOne(
    "select summed_sequence from tributary.usage_progress where account_id = $1",
    accountId,
  );
  // Read before the receipts: a statement sees what the statements before it saw, and here all up to this entry.
  const account = yield* askOne("select entries from tributary.account where id = $1", accountId);
  if (progress === null || account === null)
    throw new Error(`ledger: no account ${accountId} to add up`);
  const from = numberOf(progress, "summed_sequence");
  const entries = numberOf(account, "entries");
  const found = yield* ask(
    `select resolved_sequence from tributary.reservation as receipt where receipt.account_id = $1
       and receipt.state <> 'open' and receipt.resolved_sequence > $2 and receipt.resolved_sequence <= $3
     order by receipt.resolved_sequence limit ${String(receiptsMax)}`,
    accountId,
    from,
    entries,
  );
  const last = found.at(-1);
  const done = last === undefined || found.length < receiptsMax;
  const to = done ? entries : numberOf(last, "resolved_sequence");
  if (last !== undefined)
    for (const table of Object.values(sumsTables))
      yield* ask(addReceipts(table), accountId, from, to);
  yield* ask(
    "update tributary.usage_progress set summed_sequence = $2 where account_id = $1",
    accountId,
    to,
  );
  return { receipts: found.length, done };
}
