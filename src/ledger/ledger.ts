import type { Prices } from "../admission/price.ts";
import type { Usage } from "../conversation/generation-event.ts";
import type { AccountPatch } from "./administration/account-administration.ts";
import type { AuditQuery, AuditRow } from "./administration/audit.ts";
import type { OpenRequests } from "./administration/generation-administration.ts";
import type { KeyPatch, KeyPolicy } from "./administration/key-administration.ts";
import type { OperatorRecord, OperatorRole } from "./administration/operator-administration.ts";
import type { SessionRecord } from "./administration/session-administration.ts";
import type { ReplicaFacts, ReplicaRecord } from "./administration/replica-administration.ts";
import type { AskedPrices, PriceList } from "./administration/price-administration.ts";
import type { CreditFacts, Credited } from "./administration/credit-administration.ts";
import type { EntryRow } from "./administration/entry-row.ts";
import type { AccountQuery, ReceiptQuery } from "./administration/lists.ts";
import type { WebhooksAdministration } from "./ledger-events.ts";
import type { Statement } from "./administration/statement.ts";
import type { CallerAccount, Receipt, SettlementOutcome } from "./receipt.ts";
import type { Account, FirstAccount, KeyRecord, SealKeyRecord } from "./records.ts";
import type { AccountId, CreditNanos, KeyId, RequestId } from "./scalars.ts";
import type {
  ArchiveBatch,
  ArchivedBatch,
  ArchiveOrder,
  KeptPart,
} from "./archive/archive-receipts.ts";
import type { CheckpointResult, CheckpointStep } from "./roll-up.ts";
import type { KeptUsage, UnsummedAccounts } from "./usage/keep-usage.ts";
import type { UsageQuery, UsageRow } from "./usage/usage-query.ts";
import type { UsagePrint, UsageText } from "./usage/usage-json.ts";
import type { VerifyReport } from "./verify-journal.ts";

/** The account and the key of a request that `authorize` has let through. */
export interface Caller {
  readonly accountId: AccountId;
  readonly keyId: KeyId;
  /** The rate ticket taken for this request; null when the request does not count. */
  readonly ticket: string | null;
  readonly rate: RateState;
  /** How many requests of the account may run at once. */
  readonly concurrentRequests: number;
}

/** The key's window: how many requests fit, how many are left, when all of them have left the window. */
export interface RateState {
  readonly limit: number;
  readonly remaining: number;
  /** Milliseconds from now until the window is empty again. */
  readonly resetMs: number;
}

/** What `admit` decides on. Prices and limits are the store's own settings. */
export interface AdmitOrder {
  readonly requestId: RequestId;
  readonly caller: Caller;
  /** Tokens: the conservative bound of admission/input-bound.ts. */
  readonly inputBound: number;
  /** Tokens that the client asked for, not yet capped; null: the client named none. */
  readonly outputTokensRequested: number | null;
  /** Tokens that fit beside the input in the deployment's context, at least 1; null: not known. */
  readonly outputTokensFitting: number | null;
  /** For the receipt. */
  readonly format: string;
  readonly streamed: boolean;
  /** As `labelOf` of label.ts makes it; null: the request names none of its account's users. */
  readonly label: string | null;
}

/** A reservation made. */
export interface Admission {
  /** Output tokens reserved; exactly this number is sent to the deployment. */
  readonly allowance: number;
  readonly reservedNanos: CreditNanos;
}

/** What resolves a reservation. The charge is made from `usage` and the reservation's prices, never above it. */
export interface Settlement {
  readonly requestId: RequestId;
  readonly accountId: AccountId;
  readonly outcome: SettlementOutcome;
  /** What to charge for; null: nothing. */
  readonly usage: Usage | null;
  /** Milliseconds from admission to the first output and to the end, for the receipt. */
  readonly firstOutputMs: number | null;
  readonly totalMs: number;
}

/** How a reservation was resolved. `applied` is false when it had been resolved before. */
export interface Settled {
  readonly chargedNanos: CreditNanos;
  readonly applied: boolean;
}

/** What `giveBackDead` has done. */
export interface GivenBack {
  readonly count: number;
  /** False: until now the store took this process for dead, so that what it holds may be lost. */
  readonly known: boolean;
  /** When a process that is missed now will be dead for sure, unless it comes back; null: none is missed. */
  readonly againInMs: number | null;
}

/** The hot half of the ledger: what a request touches. All promises reject with a Failure. */
export interface Ledger extends AsyncDisposable {
  /**
   * Before the body is read: key, account, rate, and where credit is needed a balance that pays for the smallest
   * request. Failures: authentication, key_expired, key_paused, key_scope,
   * account_disabled, rate_limited, insufficient_credit, overloaded.
   */
  authorize(presentedKey: string, countsForRate: boolean, needsCredit?: boolean): Promise<Caller>;
  /** Gives the ticket back of a request that was answered 429 after `authorize`: such a request does not count. */
  giveTicketBack(caller: Caller): Promise<void>;
  /**
   * One transaction: key and account again, concurrency, allowance, reservation with a lease. Idempotent by request id.
   * Failures: those of authorize, too_many_concurrent (the rate ticket is given back), insufficient_credit.
   */
  admit(order: AdmitOrder): Promise<Admission>;
  /** Answers those of the reservations that are still open, with their leases prolonged; the others must be cancelled. */
  renew(requestIds: readonly RequestId[]): Promise<ReadonlySet<RequestId>>;
  /** Running requests, of all processes, that operators have cancelled: they are to be ended and settled for nothing. */
  cancelledGenerations(): Promise<readonly RequestId[]>;
  /** Idempotent; charges 0 after expiry. Retried inside until it is committed or the ledger is closed. */
  settle(settlement: Settlement): Promise<Settled>;
  /** Gives back reservations whose lease has ended; returns how many. Forgets rate tickets that are out of every window. */
  expire(): Promise<number>;
  /**
   * Gives back at once what processes held that are dead for sure, and says that this process lives; returns how many
   * reservations, and whether the store had taken this process for dead.
   */
  giveBackDead(): Promise<GivenBack>;
  /** Whether requests could be written now: writes a little itself. Rejects with a Failure whose cause is the store's fault. */
  check(): Promise<void>;
}

/** A query of one account. */
export interface OfAccount {
  readonly accountId: AccountId;
}

/** What callers may read of their own account, and of no other. All promises reject with a Failure. */
export interface LedgerForCallers {
  showCaller(caller: Pick<Caller, "accountId" | "keyId">): Promise<CallerAccount>;
  /** null also for a request of another account. */
  findReceipt(accountId: AccountId, requestId: string): Promise<Receipt | null>;
  /** A page of sums as text. */
  printUsageOf(query: UsagePrint & OfAccount): Promise<UsageText>;
  receiptsOf(query: ReceiptQuery & OfAccount): Promise<readonly Receipt[]>;
  /** Until when requests of the account ended whose receipts are archived; null: none are. */
  archivedUntilOf(accountId: AccountId): Promise<number | null>;
  /** Newest first; `before` is a number of an entry, or null. */
  entriesOf(
    query: OfAccount & { readonly before: number | null; readonly rowsMax: number },
  ): Promise<readonly EntryRow[]>;
  /** Rejects with an OperatorError for what is no month, and for one whose entries are not all there any more. */
  statementOf(query: OfAccount & { readonly month: string }): Promise<Statement>;
}

/** A key with its secret, or null in its place. */
export interface ShownKey<Secret extends string | null> {
  readonly record: KeyRecord;
  readonly secret: Secret;
}

/**
 * The operator's half of the ledger. All promises reject with an OperatorError for a mistake of the operator's. `Secret` is
 * `string | null` where a call may repeat a change: its secret was shown the first time and is nowhere.
 */
export interface LedgerAdministration<Secret extends string | null = string>
  extends
    OperatorsAdministration<Secret>,
    PriceAdministration,
    ReplicasAdministration,
    ArchivesAdministration,
    WebhooksAdministration<Secret> {
  /** What is kept of the part of a file that begins behind an entry; null: nothing was archived from there on. */
  findArchive(part: {
    readonly accountId: string;
    readonly after: number;
  }): Promise<KeptPart | null>;
  /** Until when requests ended whose receipts are archived, of one account or of any; null: none are. */
  archivedUntil(accountId: string | null): Promise<number | null>;
  /** One account with one key when there is no account yet, else null. Of two processes at once one makes it. */
  ensureFirstAccount(creditNanos: CreditNanos): Promise<FirstAccount | null>;
  createAccount(name: string, creditNanos: CreditNanos, patch?: AccountPatch): Promise<Account>;
  showAccount(id: string): Promise<Account>;
  /** Positive adds, negative takes back, never below what is held. `facts` null: a top-up. */
  creditAccount(id: string, amountNanos: CreditNanos, facts: CreditFacts | null): Promise<Credited>;
  setAccountStatus(id: string, status: Account["status"]): Promise<Account>;
  /** `secret` is the whole key, shown once; only its hash is stored. */
  createKey(accountId: string, name: string, policy?: KeyPolicy): Promise<ShownKey<Secret>>;
  changeKey(id: string, to: KeyPatch): Promise<KeyRecord>;
  /** A new secret; the one before it is good for so long. */
  rotateKey(id: string, overlapMs: number): Promise<ShownKey<Secret>>;
  listKeys(accountId: string): Promise<readonly KeyRecord[]>;
  revokeKey(id: string): Promise<KeyRecord>;
  /** The keys that seal reasoning, oldest first; one is made at the first call. */
  sealKeys(): Promise<readonly SealKeyRecord[]>;
  /** Adds a key; the older ones stay. */
  rotateSealKey(): Promise<SealKeyRecord>;
  changeAccount(id: string, to: AccountPatch): Promise<Account>;
  /** Null where there is no such key. */
  findKey(id: string): Promise<KeyRecord | null>;
  /** Keys whose secrets begin so. */
  findKeys(prefix: string): Promise<readonly KeyRecord[]>;
  pageAccounts(query: AccountQuery): Promise<readonly Account[]>;
  pageReceipts(query: ReceiptQuery): Promise<readonly Receipt[]>;
  /** Entries of an account's journal, newest first; `before` is a number of an entry, or null. */
  pageEntries(query: {
    readonly accountId: string;
    readonly before: number | null;
    readonly rowsMax: number;
  }): Promise<readonly EntryRow[]>;
  /** What moved the account's balance in a month, such as `2026-10`. */
  readStatement(accountId: string, month: string): Promise<Statement>;
  showReceipt(requestId: string): Promise<Receipt>;
  /** All of the query's rows. */
  sumUsage(query: UsageQuery): Promise<readonly UsageRow[]>;
  /** A page of them as text, made off the event loop. */
  printUsage(query: UsagePrint): Promise<UsageText>;
  /** Of some accounts, those that have requests which no kept sum covers. */
  findUnsummed(after: string): Promise<UnsummedAccounts>;
  /** Adds up the whole ledger again; `against` are heads as receipts show them. `listHeads`: the report has all heads. */
  verify(against: readonly string[], listHeads?: boolean): Promise<VerifyReport>;
  /** Rolls up the account's entries from before `beforeMs`. */
  checkpoint(accountId: string, beforeMs: number): Promise<CheckpointResult>;
}

/** What of the operator's half is about price lists. */
export interface PriceAdministration {
  /** In the order of their names; `settings` stand for `default` where the ledger has no list of that name. */
  pagePriceLists(page: {
    readonly after: string | null;
    readonly rowsMax: number;
    readonly settings: Prices;
  }): Promise<readonly PriceList[]>;
  showPriceList(asked: { readonly name: string; readonly settings: Prices }): Promise<PriceList>;
  createPriceList(list: {
    readonly name: string;
    readonly prices: readonly AskedPrices[];
  }): Promise<PriceList>;
  /** `prices` take the place of all that have not begun; null: they stay. */
  changePriceList(list: {
    readonly name: string;
    readonly prices: readonly AskedPrices[] | null;
  }): Promise<PriceList>;
}

/** What of the operator's half is about operators, how they sign in, and what they did. */
export interface OperatorsAdministration<Secret extends string | null = string> {
  /** `secret` is the whole token, shown once; only its hash is stored. */
  createOperator(operator: {
    readonly name: string;
    readonly role: OperatorRole;
    readonly expiresAtMs: number | null;
  }): Promise<{ readonly record: OperatorRecord; readonly secret: Secret }>;
  listOperators(): Promise<readonly OperatorRecord[]>;
  revokeOperator(id: string): Promise<OperatorRecord>;
  /** The operator whose token is presented; null: there is none, it has expired, or the operator was revoked. */
  findOperator(presentedToken: string): Promise<OperatorRecord | null>;
  /** A code that signs in once; null: for the only owner, which is made on a ledger without operators. */
  createLoginCode(operatorId: string | null): Promise<LoginCode>;
  /** The first owner with a code; null where the ledger has or had an operator. */
  createFirstOperator(): Promise<LoginCode | null>;
  /** A session for who presents a token or a code; null: that is not good. `secret` is what its cookie holds. */
  openSession(by: {
    readonly type: "token" | "code";
    readonly presented: string;
  }): Promise<{ readonly session: SessionRecord; readonly secret: string } | null>;
  /** null: there is no such session, it is over, or its operator was revoked. */
  findSession(presented: string): Promise<SessionRecord | null>;
  /** False: there was none. */
  endSession(presented: string): Promise<boolean>;
  listAudit(query: AuditQuery): Promise<readonly AuditRow[]>;
}

/** What of the operator's half takes old receipts out of the ledger. */
export interface ArchivesAdministration {
  listAccounts(): Promise<readonly Account[]>;
  /** Adds some of these accounts' requests to the kept sums: a bounded number of them. */
  keepUsage(accountIds: readonly string[]): Promise<KeptUsage>;
  /** One small step of a checkpoint. */
  rollUp(order: ArchiveOrder): Promise<CheckpointStep>;
  /** The next receipts that are old, rolled up and in the kept sums. */
  readArchivable(order: ArchiveOrder): Promise<ArchiveBatch>;
  /** Removes what is in a file, on the disk; null: it has changed meanwhile, and nothing was removed. */
  archiveReceipts(batch: ArchivedBatch): Promise<{ readonly removed: number } | null>;
}

/** What of the operator's half is about what runs. */
export interface ReplicasAdministration {
  /** Ends a running request soon, for nothing. */
  cancelGeneration(requestId: string): Promise<RequestId>;
  /** Running requests, of all processes, that were cancelled so. */
  cancelledGenerations(): Promise<readonly RequestId[]>;
  /** Which requests run, of all processes: up to so many ids, newest first, and how many there are. */
  openRequests(idsMax: number): Promise<OpenRequests>;
  /** Says what a replica is; answers what was asked of it meanwhile. */
  reportReplica(id: string, facts: ReplicaFacts): Promise<ReplicaRecord>;
  forgetReplica(id: string): Promise<void>;
  /** Those seen in the last minute. */
  listReplicas(): Promise<readonly ReplicaRecord[]>;
  /** Asks a replica to drain and end. */
  drainReplica(id: string): Promise<ReplicaRecord>;
}

/** An operator, and a code that signs it in once. */
export interface LoginCode {
  readonly operator: OperatorRecord;
  readonly secret: string;
}
