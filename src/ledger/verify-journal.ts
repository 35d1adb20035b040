import { limits } from "../limits.ts";
import {
  type Checkpoint,
  chainHashHex,
  checkpointNote,
  firstHead,
  type JournalEntry,
  type JournalHead,
  toHex,
} from "./journal.ts";
import {
  type AccountSums,
  type AccountToVerify,
  addToSums,
  type CheckpointToVerify,
  ofGrantsAfter,
  type Report,
  verifyRow,
} from "./verify-account.ts";
import { budgetProblem, type BudgetToVerify } from "./verify-budget.ts";
import {
  type Finding,
  movementProblem,
  type OpenRequest,
  type ProblemCode,
  receiptHeadProblem,
  type ReservationToVerify,
} from "./verify-entry.ts";

/** One thing that is wrong; within an account the first one names the first bad entry. */
export interface Problem {
  readonly code: ProblemCode;
  readonly account: string;
  /** The entry; null where it is about a row. */
  readonly sequence: number | null;
  readonly request: string | null;
  readonly message: string;
}

/** What to verify against, and what to report. */
export interface VerifyOrder {
  /** Heads that were kept elsewhere. */
  readonly against: readonly JournalHead[];
  /** Whether the report lists the heads of all accounts. */
  readonly listHeads: boolean;
}

/** What verifying found. */
export interface VerifyReport {
  readonly ok: boolean;
  readonly entries: number;
  readonly accounts: number;
  /** The first ones; `problemsTotal` counts all. */
  readonly problems: readonly Problem[];
  readonly problemsTotal: number;
  /** Of all accounts that have entries, when asked for. */
  readonly heads: readonly string[];
}

/** How many requests' rows there are of which no checkpoint has taken in the entries. */
export interface ReceiptCounts {
  readonly reserved: number;
  readonly resolved: number;
}

/**
 * Adds a ledger up again. A store feeds it from one snapshot: accounts in any order, each with its entries in order of
 * their sequence. It keeps the state of one account at a time.
 */
export interface JournalVerification {
  beginAccount(account: AccountToVerify): void;
  /** `hash` in hexadecimal; the reservation that a `reserve` names, null for the other kinds. */
  entry(entry: JournalEntry, hash: string, reservation: ReservationToVerify | null): void;
  endAccount(): void;
  /** Whether each receipt has been met with its entries; if not, the store looks for those that have none. */
  metAll(receipts: ReceiptCounts): boolean;
  /** Entries of an account that has no row. */
  strayEntry(accountId: string, sequence: number): void;
  /** What a key's budget says of its present period. */
  budget(budget: BudgetToVerify): void;
  /** A request's row whose entry is not there. */
  strayReceipt(accountId: string, requestId: string, sequence: number | null): void;
  report(problem: Problem): void;
  finish(): VerifyReport;
}

/** Begins with nothing added up. */
export function openJournalVerification(order: VerifyOrder): JournalVerification {
  const problems = openProblems();
  const kept = new Map<string, JournalHead[]>();
  for (const head of order.against) {
    const others = kept.get(head.accountId);
    if (others === undefined) kept.set(head.accountId, [head]);
    else others.push(head);
  }
  let entries = 0;
  let accounts = 0;
  let walk: AccountWalk | null = null;
  const met = { reserved: 0, resolved: 0 };
  const heads: string[] = [];
  return {
    beginAccount(account) {
      accounts += 1;
      if (order.listHeads && account.entries > 0)
        heads.push(`${account.id}:${String(account.entries)}:${account.head}`);
      const own = kept.get(account.id) ?? [];
      kept.delete(account.id);
      walk = openAccountWalk(account, own, { problems, met });
    },
    entry(entry, hash, reservation) {
      entries += 1;
      walk?.entry(entry, hash, reservation);
    },
    endAccount: () => walk?.end(),
    metAll: ({ reserved, resolved }) => met.reserved === reserved && met.resolved === resolved,
    strayEntry(account, sequence) {
      entries += 1;
      const message = "the entry is of an account that does not exist";
      problems.add({ code: "account-missing", account, sequence, request: null, message });
    },
    budget(budget) {
      const message = budgetProblem(budget);
      const about = { account: budget.accountId, sequence: null, request: null };
      if (message !== null) problems.add({ code: "budget-differs", ...about, message });
    },
    strayReceipt(account, request, sequence) {
      const message = "the journal has no such entry of this request";
      problems.add({ code: "receipt-differs", account, sequence, request, message });
    },
    report: (problem) => problems.add(problem),
    finish() {
      for (const [account, [head]] of kept) {
        const message = "a head was kept of this account, which does not exist";
        const sequence = head?.sequence ?? null;
        problems.add({ code: "account-missing", account, sequence, request: null, message });
      }
      const problemsTotal = problems.total();
      const { found } = problems;
      return { ok: problemsTotal === 0, entries, accounts, problems: found, problemsTotal, heads };
    },
  };
}

interface Problems {
  readonly found: Problem[];
  total(): number;
  /** `at`: its place among those found; absent: the end. */
  add(problem: Problem, at?: number): void;
}

function openProblems(): Problems {
  const found: Problem[] = [];
  let total = 0;
  return {
    found,
    total: () => total,
    add(problem, at = found.length) {
      total += 1;
      if (found.length < limits.verifyProblemsShown) found.splice(at, 0, problem);
    },
  };
}

interface ReceiptsMet {
  reserved: number;
  resolved: number;
}

interface AccountWalk {
  entry: JournalVerification["entry"];
  end(): void;
}

/** One account, from its checkpoint or its beginning to its row. */
function openAccountWalk(
  account: AccountToVerify,
  kept: readonly JournalHead[],
  { met, problems }: { readonly met: ReceiptsMet; readonly problems: Problems },
): AccountWalk {
  const { checkpoint } = account;
  const heads = new Map(kept.map((head) => [head.sequence, toHex(head.hash)]));
  const open = new Map<string, OpenRequest>(
    (checkpoint?.running ?? []).map(({ requestId, reservation }) => [
      requestId,
      { heldNanos: reservation.reservedNanos, reservation },
    ]),
  );
  const sums: AccountSums = {
    balance: checkpoint?.balanceNanos ?? 0n,
    held: checkpoint?.heldNanos ?? 0n,
    ofGrants: ofGrantsAfter(checkpoint),
  };
  const chain = openChainWalk(checkpoint);
  let confirmed = checkpoint === null;
  const firstOfAccount = problems.found.length;

  const report = (code: ProblemCode, message: string, at: number | null = null): void =>
    problems.add({ code, account: account.id, sequence: at, request: null, message });
  const reportEntry = (entry: JournalEntry, [code, message]: Finding): void =>
    problems.add({
      code,
      account: account.id,
      sequence: entry.sequence,
      request: entry.requestId,
      message,
    });
  if (checkpoint !== null) verifyCheckpoint(checkpoint, heads, report);

  return {
    entry(entry, hash, reservation) {
      const gap = chain.gapBefore(entry);
      if (gap !== null) report("entry-missing", missing(gap, entry.sequence - 1), gap);
      const { requestId } = entry;
      const before = requestId === null ? null : (open.get(requestId) ?? null);
      const reserves = entry.kind === "reserve";
      const request = reserves ? { heldNanos: entry.heldDeltaNanos, reservation } : before;
      const found =
        chain.add(entry, hash) ??
        compareHead(heads, entry.sequence, hash) ??
        movementProblem(entry, request, before) ??
        receiptHeadProblem(entry, hash, request);
      addToSums(sums, entry);
      if (requestId !== null && reserves && request !== null) open.set(requestId, request);
      else if (requestId !== null) open.delete(requestId);
      if (found === null && requestId !== null) met[reserves ? "reserved" : "resolved"] += 1;
      if (entry.kind === "checkpoint" && checkpoint !== null)
        confirmed ||= entry.note === checkpointNote(checkpoint);
      if (found !== null) reportEntry(entry, found);
      else if (sums.held < 0n || sums.held > sums.balance)
        reportEntry(entry, ["overspent", "after it not 0 <= held <= balance"]);
    },
    end() {
      verifyEnd(account, { ...chain.end(), heads, report });
      verifyRow(account, { sums, open: open.size, report });
      if (confirmed || checkpoint === null) return;
      const message = "no entry of the chain confirms what the checkpoint says";
      const about = { account: account.id, sequence: checkpoint.sequence, request: null };
      // Found last, and put first: it explains the others.
      problems.add({ code: "checkpoint-differs", ...about, message }, firstOfAccount);
    },
  };
}

interface ChainWalk {
  /** The first number that is missing before this entry; null: none is. */
  gapBefore(entry: JournalEntry): number | null;
  add(entry: JournalEntry, hash: string): Finding | null;
  end(): { readonly sequence: number; readonly previous: string };
}

function openChainWalk(checkpoint: Checkpoint | null): ChainWalk {
  let sequence = checkpoint?.sequence ?? 0;
  let previous = toHex(checkpoint?.hash ?? firstHead);
  return {
    gapBefore: (entry) => (entry.sequence > sequence + 1 ? sequence + 1 : null),
    add(entry, hash) {
      if (entry.sequence <= sequence)
        return ["entry-unexpected", "a checkpoint has taken the place of this entry"];
      // What follows a gap cannot be checked against what is missing; the chain goes on from the stored hash.
      const follows = entry.sequence === sequence + 1;
      const changed = follows && chainHashHex(previous, entry) !== hash;
      sequence = entry.sequence;
      previous = hash;
      return changed
        ? ["entry-changed", "its hash is not that of its content and of the entry before it"]
        : null;
    },
    end: () => ({ sequence, previous }),
  };
}

function compareHead(heads: Map<number, string>, sequence: number, hash: string): Finding | null {
  if (heads.size === 0) return null;
  const kept = heads.get(sequence);
  heads.delete(sequence);
  return kept === undefined || kept === hash
    ? null
    : ["head-differs", "it is not the entry that the kept head is of"];
}

function verifyCheckpoint(
  checkpoint: CheckpointToVerify,
  heads: Map<number, string>,
  report: Report,
): void {
  const { balanceNanos, chargedNanos, creditedNanos, hash, heldNanos, running, sequence } =
    checkpoint;
  if (creditedNanos - chargedNanos !== balanceNanos)
    report(
      "checkpoint-differs",
      "its balance is not its credit minus what its receipts charged",
      sequence,
    );
  if (running.reduce((sum, one) => sum + one.reservation.reservedNanos, 0n) !== heldNanos)
    report("checkpoint-differs", "it does not hold what its open receipts had reserved", sequence);
  for (const [at, kept] of heads) {
    if (at > sequence) continue;
    heads.delete(at);
    if (at < sequence)
      report(
        "head-differs",
        `entries up to ${String(sequence)} were rolled up: keep a newer head`,
        at,
      );
    else if (kept !== toHex(hash))
      report("head-differs", "the checkpoint is not of the entry that the kept head is of", at);
  }
}

function verifyEnd(
  account: AccountToVerify,
  end: {
    readonly sequence: number;
    readonly previous: string;
    readonly heads: ReadonlyMap<number, string>;
    readonly report: Report;
  },
): void {
  const { heads, report, sequence } = end;
  const newest = Math.max(account.entries, ...heads.keys());
  if (sequence < newest) report("entry-missing", missing(sequence + 1, newest), sequence + 1);
  else if (sequence > account.entries)
    report(
      "entry-unexpected",
      `the account has made ${String(account.entries)} entries`,
      account.entries + 1,
    );
  else if (account.head !== end.previous)
    report("head-differs", "the account's row has another head than its last entry", sequence);
}

function missing(first: number, last: number): string {
  return first === last
    ? `entry ${String(first)} is missing`
    : `entries ${String(first)} to ${String(last)} are missing`;
}
