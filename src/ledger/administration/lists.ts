import { journalEntryOf, toHex } from "../journal.ts";
import { unknownAccount } from "../operator-input.ts";
import { type Receipt, receiptColumns, receiptOf } from "../receipt.ts";
import {
  type Account,
  accountColumns,
  accountOf,
  keyColumns,
  keyOf,
  type KeyRecord,
} from "../records.ts";
import { limits } from "../../limits.ts";
import { bigOf, bytesOf, type Row } from "../row.ts";
import type { EntryRow } from "./entry-row.ts";
import { ask, askOne, type StatementValue, type Steps } from "./steps.ts";

/** Where a page begins: behind the row with this time and id; null: at the newest. */
export interface PageStart {
  readonly atMs: number;
  readonly id: string;
}

/** One page of a list, newest first: rows that come in meanwhile move none of it. */
export interface Page {
  readonly after: PageStart | null;
  readonly rowsMax: number;
}

/** Which receipts to list; null: not asked for. `sinceMs` and `untilMs` are times of admission. */
export interface ReceiptQuery extends Page {
  readonly accountId: string | null;
  readonly keyId: string | null;
  readonly state: Receipt["state"] | null;
  readonly outcome: string | null;
  readonly format: string | null;
  readonly label: string | null;
  readonly sinceMs: number | null;
  readonly untilMs: number | null;
  /** When they ended, by which usage counts them; what runs has not. */
  readonly endedSinceMs: number | null;
  readonly endedUntilMs: number | null;
  readonly chargedAtLeastNanos: bigint | null;
}

/** Which accounts to list; absent or null: not asked for. */
export interface AccountQuery extends Page {
  readonly ids?: readonly string[] | null;
  readonly externalId?: string | null;
  /** What stands in the name, the id or the external id, in either case. */
  readonly search?: string | null;
}

/** No name and no id has the line's end between them, so that nothing is found across two of them. */
const searched = "lower(name || '\n' || id || '\n' || coalesce(external_id, ''))";

/** A page of the accounts. */
export function* pageAccounts(query: AccountQuery): Steps<readonly Account[]> {
  const { externalId = null, ids = null, search = null } = query;
  const pattern = search === null ? null : `%${search.replaceAll(/[!%_]/g, "!$&")}%`;
  const filters = [
    ["id in", ids, (values) => `(${values})`],
    ["external_id =", externalId],
    [`${searched} like`, pattern, (value) => `lower(${value}) escape '!'`],
  ] as const satisfies readonly Filter[];
  const { text, values } = conditions(filters, query, ["created_at_ms", "id"]);
  const rows = yield* ask(`select ${accountColumns} from tributary.account ${text}`, ...values);
  return rows.map(accountOf);
}

/** A page of the receipts, of running requests too. */
export function* pageReceipts(query: ReceiptQuery): Steps<readonly Receipt[]> {
  const { accountId, endedSinceMs, endedUntilMs } = query;
  const isShort =
    endedSinceMs !== null &&
    endedUntilMs !== null &&
    endedUntilMs - endedSinceMs <= limits.receiptsEndedMs;
  // The index by the time of the end is of one account after another.
  const ofEach =
    isShort && accountId === null ? "account_id in (select id from tributary.account) and " : "";
  const filters = [
    ["account_id =", query.accountId],
    ["key_id =", query.keyId],
    [query.state === "open" ? "state = 'open' and state =" : "state =", query.state],
    ["outcome =", query.outcome],
    ["format =", query.format],
    ["label =", query.label],
    ["admitted_at_ms >=", query.sinceMs],
    ["admitted_at_ms <", query.untilMs],
    [`${ofEach}state <> 'open' and resolved_at_ms >=`, query.endedSinceMs],
    ["state <> 'open' and resolved_at_ms <", query.endedUntilMs],
    ["charged_nanos >=", withinCredit(query.chargedAtLeastNanos)],
  ] as const;
  // Few requests run, or end in a short time: an index has them, and by an expression none is taken that has all others too.
  const time = query.state === "open" || isShort ? "admitted_at_ms + 0" : "admitted_at_ms";
  const { text, values } = conditions(filters, query, [time, "request_id"]);
  const rows = yield* ask(`select ${receiptColumns} from tributary.reservation ${text}`, ...values);
  return rows.map(receiptOf);
}

/** Entries of one account's journal, newest first, below a number; an unknown account throws an OperatorError. */
export function* pageEntries(query: {
  readonly accountId: string;
  /** Entries with a lower number; null: from the newest. */
  readonly before: number | null;
  readonly rowsMax: number;
}): Steps<readonly EntryRow[]> {
  const account = yield* askOne(
    "select balance_nanos, held_nanos from tributary.account where id = $1",
    query.accountId,
  );
  if (account === null) throw unknownAccount(query.accountId);
  // What an entry left is what the account has now without what came after it.
  const later = yield* askOne(
    `select coalesce(sum(balance_delta_nanos), 0) as balance, coalesce(sum(held_delta_nanos), 0) as held
     from tributary.entry where account_id = $1 and sequence >= $2`,
    query.accountId,
    query.before ?? Number.MAX_SAFE_INTEGER,
  );
  let balanceNanos =
    bigOf(account, "balance_nanos") - (later === null ? 0n : bigOf(later, "balance"));
  let heldNanos = bigOf(account, "held_nanos") - (later === null ? 0n : bigOf(later, "held"));
  const rows = yield* ask(
    `select account_id, sequence, at_ms, kind, balance_delta_nanos, held_delta_nanos, actor, request_id,
       reference, receipt, note, hash
     from tributary.entry where account_id = $1 and sequence < $2 order by sequence desc
     limit ${String(query.rowsMax)}`,
    query.accountId,
    query.before ?? Number.MAX_SAFE_INTEGER,
  );
  return rows.map((row) => {
    const entry = journalEntryOf(row);
    const after = { ...entry, balanceNanos, heldNanos, hash: toHex(bytesOf(row, "hash")) };
    balanceNanos -= entry.balanceDeltaNanos;
    heldNanos -= entry.heldDeltaNanos;
    return after;
  });
}

/** One key, or null. */
export function* findKey(
  id: string,
  { nowMs }: { readonly nowMs: number },
): Steps<KeyRecord | null> {
  const row: Row | null = yield* askOne(
    `select ${keyColumns} from tributary.api_key where id = $1`,
    id,
  );
  return row === null ? null : keyOf(row, nowMs);
}

type Filter = readonly [
  condition: string,
  value: StatementValue | readonly string[],
  /** What stands for the value behind the condition; absent: the parameter alone. */
  wrap?: (parameters: string) => string,
];

function conditions(
  filters: readonly Filter[],
  { after, rowsMax }: Page,
  [time, id]: readonly [time: string, id: string],
): { readonly text: string; readonly values: readonly StatementValue[] } {
  const wanted = filters.filter(([, value]) => value !== null);
  const values: StatementValue[] = [];
  const words = wanted.map(([condition, value, wrap = asIs]) => {
    const parameters = [value].flat().map((one) => `$${String(values.push(one))}`);
    return `${condition} ${wrap(parameters.join(", "))}`;
  });
  // Also of the first page: without a bound SQLite reads and sorts all rows where there is another condition.
  values.push(after?.atMs ?? Number.MAX_SAFE_INTEGER, after?.id ?? "");
  words.push(`(${time}, ${id}) < ($${String(values.length - 1)}, $${String(values.length)})`);
  return {
    text: `where ${words.join(" and ")} order by ${time} desc, ${id} desc limit ${String(rowsMax)}`,
    values,
  };
}

function asIs(parameters: string): string {
  return parameters;
}

/** An amount that no charge can have is as good as the nearest of those, and fits the columns of both stores. */
function withinCredit(nanos: bigint | null): bigint | null {
  if (nanos === null) return null;
  const beyond = limits.creditNanosMax + 1n;
  return nanos > beyond ? beyond : nanos < -beyond ? -beyond : nanos;
}
