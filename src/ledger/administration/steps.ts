import type { CreditKind } from "../journal.ts";
import type { Actor } from "./changed-by.ts";
import type { AccountId, CreditNanos } from "../scalars.ts";
import type { Row } from "../row.ts";

/** What a statement's parameter can be; the columns of both stores hold nothing else. */
export type StatementValue = string | number | bigint | Uint8Array | null;

/**
 * One step of an operation that is written once for both stores. A statement is in words that both understand: tables are
 * `tributary.NAME`, parameters `$1`, `$2`, integers of columns come back as bigint. SQLite has one writer at a time, so
 * that `for no key update` and locks mean something on PostgreSQL alone. `move` answers the entry's `sequence` and `hash`,
 * `try-lock` one row where it got the lock, else none.
 */
export type Step =
  | { readonly type: "statement"; readonly sql: string; readonly values: readonly StatementValue[] }
  | { readonly type: "move"; readonly movement: OperatorMovement }
  | { readonly type: "lock"; readonly name: LockName }
  | { readonly type: "try-lock"; readonly name: string };

/** What one transaction at a time may do; the others wait. */
export type LockName = "first" | "external-id";

/** A change of an account's balance that no request made. */
export type OperatorMovement = {
  readonly accountId: AccountId;
  readonly amountNanos: CreditNanos;
  readonly actor: Actor | "operator";
  readonly note: string | null;
} & (
  | { readonly kind: "credit" | "checkpoint"; readonly known: null }
  | {
      readonly kind: CreditKind;
      /** `reference`: a name that no other entry of the account has. `receipt`: the request whose charge a refund gives back. */
      readonly known: { readonly reference: string | null; readonly receipt: string | null };
    }
);

/** An operation inside one transaction: it yields a step, and is given the rows that the step answered. */
export type Steps<Value> = Generator<Step, Value, readonly Row[]>;

/** The rows of one statement. */
export function* ask(sql: string, ...values: readonly StatementValue[]): Steps<readonly Row[]> {
  return yield { type: "statement", sql, values };
}

/** The first row of one statement, or null. */
export function* askOne(sql: string, ...values: readonly StatementValue[]): Steps<Row | null> {
  const [row] = yield* ask(sql, ...values);
  return row ?? null;
}
