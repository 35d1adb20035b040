import type { AdministrationOperations } from "./administration/definitions.ts";
import type { PresentedKey } from "./api-key.ts";
import type { KeyScope } from "./records.ts";
import type { AccountId, KeyId, RequestId } from "./scalars.ts";
import type { Admission, AdmitOrder, Caller, GivenBack, Settled, Settlement } from "./ledger.ts";
import type { CallerAccount, Receipt } from "./receipt.ts";
import type { VerifyOrder, VerifyReport } from "./verify-journal.ts";

/** A presented key, and what its request is authorized for. */
export interface AuthorizeOrder extends PresentedKey {
  /** The id that the rate ticket gets; null: the request does not count. */
  readonly ticketId: string | null;
  /** Whether the balance has to pay for the smallest request. What is held is left to `admit`. */
  readonly needsCredit: boolean;
}

/** When a key was last used, to the minute. */
export interface KeyUse {
  readonly accountId: AccountId;
  readonly keyId: KeyId;
  readonly usedAtMs: number;
}

/** What a request needs of its key: to spend, to look, or, where it does neither as a count of tokens, nothing. */
export function neededScope(order: AuthorizeOrder): KeyScope | null {
  if (order.needsCredit) return "generate";
  return order.ticketId === null ? "read" : null;
}

/** An order of one of several processes that have one store. */
export interface OwnedAdmitOrder extends AdmitOrder {
  /** The process that reserves; absent: the store's own. */
  readonly owner?: string;
}

/**
 * Everything a store does, each inside one transaction of the caller's. Synchronous; the clock comes in as milliseconds
 * since 1970. An operation throws a Failure or an OperatorError for a refusal, anything else for a fault.
 */
export interface StoreOperations extends AdministrationOperations {
  authorize(order: AuthorizeOrder, nowMs: number): Caller;
  giveTicketBack(caller: Caller, nowMs: number): null;
  /** Writes when a key was used, where that is later than what is written. */
  noteKeyUse(use: KeyUse, nowMs: number): null;
  admit(order: OwnedAdmitOrder, nowMs: number): Admission;
  renew(requestIds: readonly RequestId[], nowMs: number): readonly RequestId[];
  settle(settlement: Settlement, nowMs: number): Settled;
  /** Gives back ended leases, at most limits.ledgerGroupMax a call, and forgets rate tickets that are out of every window. */
  expire(argument: null, nowMs: number): number;
  /** What processes held that are dead for sure; at most about limits.ledgerGroupMax a call. */
  giveBackDead(argument: null, nowMs: number): GivenBack;
  check(argument: null, nowMs: number): null;
  /** null: there is no such request, or it is not of the account that was named. */
  receipt(
    order: { readonly requestId: string; readonly accountId: AccountId | null },
    nowMs: number,
  ): Receipt | null;
  callerAccount(caller: Pick<Caller, "accountId" | "keyId">, nowMs: number): CallerAccount;
  /** Reads one snapshot, a piece of rows at a time. */
  verify(order: VerifyOrder, nowMs: number): VerifyReport;
}

/** The name of one operation. */
export type OperationName = keyof StoreOperations;

/** The argument of an operation. */
export type ArgumentOf<Name extends OperationName> = Parameters<StoreOperations[Name]>[0];

/** The answer of an operation. */
export type AnswerOf<Name extends OperationName> = ReturnType<StoreOperations[Name]>;

/** The operations of a store that is reached over a network. */
export type PostgresOperations = {
  readonly [Name in OperationName]: (argument: ArgumentOf<Name>) => Promise<AnswerOf<Name>>;
};

/** One operation of a store that is open. */
export type RunOperation = <Name extends OperationName>(
  name: Name,
  argument: ArgumentOf<Name>,
) => Promise<AnswerOf<Name>>;

/** A store as the ledger reaches it. Calls reject with a Failure, an OperatorError or a StoreFault. */
export interface StoreClient extends AsyncDisposable {
  call<Name extends OperationName>(name: Name, argument: ArgumentOf<Name>): Promise<AnswerOf<Name>>;
}

/** Calls that a store did together, as one commit. */
export interface StoreGroup {
  readonly calls: number;
  /** From its begin to its commit. */
  readonly ms: number;
}

/** One operation to do, as it travels to the thread that does it. */
export interface StoreCall<Name extends OperationName = OperationName> {
  readonly name: Name;
  readonly argument: ArgumentOf<Name>;
  readonly nowMs: number;
}

/** The answer to one call, which leaves the store after its commit. */
export type StoreAnswer =
  | { readonly ok: true; readonly value: AnswerOf<OperationName> }
  | { readonly ok: false; readonly error: unknown };
