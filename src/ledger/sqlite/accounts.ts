import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { AccountId, CreditNanos, RequestId } from "../scalars.ts";
import { chainHash, type EntryKind } from "../journal.ts";
import { bigOf, bytesOf, numberOf, type Row } from "../row.ts";
import { type KnownBy, openCredits } from "./credits.ts";
import { getRow } from "./get-row.ts";

/** What an account has, inside a transaction. */
export interface AccountState {
  readonly balanceNanos: CreditNanos;
  readonly heldNanos: CreditNanos;
  readonly running: number;
}

/** The end of an account's chain, as the open transaction has read it. */
export interface ChainEnd {
  readonly entries: number;
  readonly head: Uint8Array;
}

/** One change of an account, and the journal entry that says why. */
export interface Movement {
  readonly kind: EntryKind;
  readonly balanceDeltaNanos: CreditNanos;
  readonly heldDeltaNanos: CreditNanos;
  readonly runningDelta: -1 | 0 | 1;
  /** The id of the caller's key, `operator` or `service`. */
  readonly actor: string;
  readonly requestId: RequestId | null;
  readonly note: string | null;
  /** Of credit: what it is known by. Absent: nothing. */
  readonly known?: KnownBy;
  /** Absent: it is looked up. */
  readonly after?: ChainEnd;
}

/** Where an entry stands in its account's chain. */
export interface Written {
  readonly sequence: number;
  readonly hash: Uint8Array;
}

/** The account rows and their journal; the only place that changes a balance. */
export interface Accounts {
  /** Throws where no transaction is open. */
  move(id: AccountId, movement: Movement, nowMs: number): Written;
}

/** What an account has, from columns of its names. */
export function accountStateOf(row: Row): AccountState {
  return {
    balanceNanos: bigOf(row, "balance_nanos"),
    heldNanos: bigOf(row, "held_nanos"),
    running: numberOf(row, "running"),
  };
}

/** The end of an account's chain, from columns `entries` and `account_head`. */
export function chainEndOf(row: Row): ChainEnd {
  return { entries: numberOf(row, "entries"), head: bytesOf(row, "account_head") };
}

function prepareStatements(
  database: DatabaseSync,
): Readonly<Record<"last" | "change" | "hold" | "append", StatementSync>> {
  const last = database.prepare("select entries, head as account_head from account where id = ?");
  // The new value is made from the row itself, never from what was read before, and the row's checks guard it.
  const change = database.prepare(
    `update account set balance_nanos = balance_nanos + ?1, held_nanos = held_nanos + ?2, running = running + ?3,
       entries = entries + 1, head = ?4, grant_left_nanos = max(grant_left_nanos + min(?1, 0), 0)
     where id = ?5 and entries = ?6`,
  );
  // The same where the balance stays: the triggers of a balance cost a third of a reservation's change.
  const hold = database.prepare(
    `update account set held_nanos = held_nanos + ?1, running = running + ?2, entries = entries + 1, head = ?3
     where id = ?4 and entries = ?5`,
  );
  const append = database.prepare(
    `insert into entry (account_id, sequence, at_ms, kind, balance_delta_nanos, held_delta_nanos, actor, request_id,
       note, hash) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  return { last, change, hold, append };
}

/** Prepares the statements once. */
export function openAccounts(database: DatabaseSync): Accounts {
  const { append, change, hold, last } = prepareStatements(database);
  const appendCredit = openCredits(database);
  function endOf(id: AccountId): ChainEnd {
    const row = getRow(last, id);
    if (row === null) throw new Error(`ledger: no account ${id} to move credit of`);
    return chainEndOf(row);
  }

  return {
    move(id, movement, nowMs) {
      // The rows that the movement is for are committed with it, or not at all.
      if (!database.isTransaction)
        throw new Error(`ledger: credit of ${id} is moved outside a transaction`);
      const { actor, balanceDeltaNanos, heldDeltaNanos, kind, known, note, requestId } = movement;
      const { entries, head } = movement.after ?? endOf(id);
      const sequence = entries + 1;
      const hash = chainHash(head, {
        accountId: id,
        sequence,
        atMs: nowMs,
        ...movement,
        ...known,
      });
      const rest = [heldDeltaNanos, movement.runningDelta, hash, id, entries] as const;
      const changed =
        balanceDeltaNanos === 0n ? hold.run(...rest) : change.run(balanceDeltaNanos, ...rest);
      if (Number(changed.changes) !== 1)
        throw new Error(`ledger: account ${id} moved outside the write lock`);
      const written = { sequence, hash };
      if (known !== undefined) {
        const amountNanos = balanceDeltaNanos;
        const about = { accountId: id, atMs: nowMs, kind, amountNanos, actor, note };
        appendCredit({ ...about, ...known, ...written });
        return written;
      }
      append.run(
        id,
        sequence,
        nowMs,
        kind,
        balanceDeltaNanos,
        heldDeltaNanos,
        actor,
        requestId,
        note,
        hash,
      );
      return written;
    },
  };
}
