import { Failure } from "../../src/failure.ts";
import { OperatorError } from "../../src/ledger/operator-error.ts";
import type { OperationName, StoreAnswer, StoreCall } from "../../src/ledger/store-operations.ts";
import { Model, type Told } from "./model.ts";
import { OnceLaw } from "./once.ts";
import type { Rules } from "./plan.ts";
import type { Presence } from "./presence.ts";
import type {
  Observed,
  ObservedEntry,
  ObservedKey,
  ObservedReservation,
  ObservedTicket,
  SimulatedStore,
} from "./simulated-store.ts";
import { type AnsweredRow, answeredLines, type UsageQuestion } from "./usage-model.ts";
import { ensure, Violation } from "./violation.ts";

interface Journal {
  balance: bigint;
  held: bigint;
  credited: bigint;
  sequence: number;
}

/** Keeps the model beside the store, and looks at every table after every change. */
export class TableCheck {
  readonly model: Model;
  private readonly store: SimulatedStore;
  private readonly budgets = new Map<
    string,
    { readonly amount: bigint; readonly begin: number; readonly used: bigint }
  >();
  private readonly journals = new Map<string, Journal>();
  private readonly seen = new Map<string, number>();
  private readonly reservedIn = new Set<string>();
  private readonly resolvedIn = new Set<string>();
  private readonly references = new Set<string>();
  private readonly once = new OnceLaw();
  /** Requests whose receipts have left the ledger. */
  private readonly archived = new Set<string>();
  /** By request: what the entries of its refunds add up to. */
  private readonly refunded = new Map<string, bigint>();

  constructor(store: SimulatedStore, rules: Rules, presence: Presence) {
    this.store = store;
    this.model = new Model(rules, presence, store.forgets);
  }

  /** After the store has done the calls of a process: the same answers, and everything as it must be. */
  async check(
    by: string,
    calls: readonly StoreCall[],
    answers: readonly StoreAnswer[],
  ): Promise<void> {
    const expected = calls.map((call) => this.model.apply(call, by));
    const told = calls.map((call, at) => toldBy(call, answers[at]));
    for (const [at, call] of calls.entries())
      if (call.name === "creditAccount") this.once.read(call, answers[at]);
    // Most of what is asked changes nothing, or little; the next call that changes more has everything looked at.
    const isQuiet = calls.every(
      ({ name }, at) =>
        quiet.has(name) && (!isGivingBack(name) || String(told[at]) === "expired,0"),
    );
    if (isQuiet && String(told) === String(expected)) return;
    const pending = this.store.observe(this.seen);
    const observed = pending instanceof Promise ? await pending : pending;
    if (calls.some(({ name }) => name === "archiveReceipts")) this.readArchived(observed);
    this.readJournal(observed);
    this.ensureInvariants(observed);
    for (const [index, call] of calls.entries()) {
      const wanted = String(expected[index] ?? "");
      ensure(
        String(told[index]) === wanted,
        `the answer of ${call.name}`,
        () => `the store says ${String(told[index])}, the model ${wanted}`,
      );
    }
    this.ensureEqualToModel(observed, calls.at(-1)?.nowMs ?? 0);
    this.ensureEvents(observed);
  }

  /** What is missing had ended, and the ledger keeps what it was charged. */
  private readArchived({ accounts, reservations }: Observed): void {
    const there = new Set(reservations.map(({ id }) => id));
    for (const { archived, id } of accounts) {
      const its = [...this.model.reservations].filter(([, one]) => one.account === id);
      const missing = its.filter(([requestId]) => !there.has(requestId));
      for (const [requestId, one] of missing) {
        ensure(one.state !== "open", "only what has ended is archived", () => requestId);
        this.archived.add(requestId);
      }
      const charged = sum(missing, ([, one]) => one.charged);
      ensure(
        charged === archived,
        "archived receipts were charged what is kept of them",
        () => `${id}: ${String(charged)}, kept ${String(archived)}`,
      );
    }
  }

  private readJournal(observed: Observed): void {
    for (const entry of observed.entries) {
      const journal = this.journal(entry.account);
      journal.sequence += 1;
      ensure(
        entry.sequence === journal.sequence,
        "journal without a gap",
        () =>
          `${entry.account}: entry ${String(entry.sequence)} follows ${String(journal.sequence - 1)}`,
      );
      this.seen.set(entry.account, entry.sequence);
      journal.balance += entry.balanceDelta;
      journal.held += entry.heldDelta;
      this.readCredit(entry);
      if (entry.requestId === null) journal.credited += entry.balanceDelta;
      else this.readReservation(entry.kind, entry.requestId);
    }
  }

  private readCredit({ account, balanceDelta, receipt, reference }: ObservedEntry): void {
    if (receipt !== null)
      this.refunded.set(receipt, (this.refunded.get(receipt) ?? 0n) + balanceDelta);
    if (reference === null) return;
    const name = `${account} ${reference}`;
    ensure(!this.references.has(name), "a reference is credited once", () => name);
    this.references.add(name);
  }

  private readReservation(kind: string, requestId: string): void {
    const reserves = kind === "reserve";
    const side = reserves ? this.reservedIn : this.resolvedIn;
    ensure(
      !side.has(requestId),
      reserves ? "each request reserved once" : "each reservation resolved once",
      () => `${requestId} has a second entry "${kind}"`,
    );
    ensure(
      reserves || this.reservedIn.has(requestId),
      "only what was reserved is resolved",
      () => `${requestId} has an entry "${kind}" and was never reserved`,
    );
    side.add(requestId);
  }

  /** Section 8 of the contract, from the tables alone. */
  private ensureInvariants(observed: Observed): void {
    const byAccount = Map.groupBy(observed.reservations, ({ account }) => account);
    for (const { archived, balance, entries, held, id, running } of observed.accounts) {
      const journal = this.journal(id);
      const reservations = byAccount.get(id) ?? [];
      const open = reservations.filter(({ state }) => state === "open");
      const spent = archived + sum(reservations, ({ charged }) => charged);
      const is = (holds: boolean, rule: string, what: () => string): void => {
        ensure(holds, rule, () => `${id}: ${what()}`);
      };
      is(held >= 0n, "0 <= held", () => `held ${String(held)}`);
      is(
        held + spent <= journal.credited,
        "held + spent <= credited",
        () => `${String(held)} + ${String(spent)} > ${String(journal.credited)}`,
      );
      is(
        journal.balance === balance && journal.sequence === entries,
        "the sum of the entries is the balance",
        () => `entries say ${String(journal.balance)}, the account ${String(balance)}`,
      );
      is(
        journal.credited - spent === balance,
        "balance = credited - spent",
        () => `${String(journal.credited)} - ${String(spent)}, but ${String(balance)}`,
      );
      is(
        journal.held === held && sum(open, ({ reserved }) => reserved) === held,
        "held is what open reservations hold",
        () =>
          `held ${String(held)}, entries ${String(journal.held)}, open ${String(sum(open, ({ reserved }) => reserved))}`,
      );
      is(
        running === open.length,
        "running is how many reservations are open",
        () => `running ${String(running)}, open ${String(open.length)}`,
      );
      is(
        open.length <= this.model.account(id).slotsMost,
        "open reservations within the limit",
        () =>
          `${String(open.length)} are open, ${String(this.model.account(id).slotsMost)} could be`,
      );
    }
    for (const key of observed.keys) this.ensureWithin(key);
    for (const one of observed.reservations) {
      ensureReservation(one, this.resolvedIn);
      const refunded = this.refunded.get(one.id) ?? 0n;
      ensure(
        refunded >= 0n && refunded <= one.charged,
        "refunds of a receipt never pass its charge",
        () => `${one.id}: refunded ${String(refunded)} of ${String(one.charged)}`,
      );
      ensure(
        refunded === one.refunded,
        "a receipt says what was refunded",
        () => `${one.id}: entries say ${String(refunded)}, the receipt ${String(one.refunded)}`,
      );
    }
  }

  /** Only a budget that was made smaller may be less than what is spent and held; nothing is added then. */
  private ensureWithin({ budget, id: key }: ObservedKey): void {
    if (budget === null) {
      this.budgets.delete(key);
      return;
    }
    const { amount, begin, held, spent } = budget;
    const before = this.budgets.get(key);
    const used = spent + held;
    const most = before?.begin === begin && before.amount === amount ? before.used : null;
    if (before !== undefined && before.begin === begin && before.amount === amount)
      ensure(
        used <= amount || used <= (most ?? 0n),
        "spent + held <= budget",
        () => `${key}: ${String(spent)} + ${String(held)} > ${String(amount)}`,
      );
    this.budgets.set(key, { amount, begin, used });
  }

  private ensureKeys(keys: readonly ObservedKey[]): void {
    for (const { id, version } of keys)
      ensure(
        this.model.keys.get(id)?.version === version,
        "the version of a key counts its changes",
        () => `${id}: store ${String(version)}, model ${String(this.model.keys.get(id)?.version)}`,
      );
    const seen = keys.flatMap(({ budget, id }) =>
      budget === null
        ? []
        : [[id, budget.amount, budget.begin, budget.spent, budget.held].join(" ")],
    );
    const expected = [...this.model.keys].flatMap(([id, { budget }]) =>
      budget === null
        ? []
        : [[id, budget.amountNanos, budget.begin, ...this.model.used(budget)].join(" ")],
    );
    ensure(
      seen.toSorted().join(", ") === expected.toSorted().join(", "),
      "budgets are as in the model",
      () => `store ${seen.toSorted().join(", ")}; model ${expected.toSorted().join(", ")}`,
    );
  }

  private ensureEqualToModel(
    { accounts, keys, reservations, tickets }: Observed,
    nowMs: number,
  ): void {
    const { model } = this;
    for (const { active, balance, grantLeft, held, id, version } of accounts) {
      const account = model.account(id);
      const differs = "the account is as in the model";
      ensure(
        account.balance === balance && account.held === held && account.active === active,
        differs,
        () =>
          `${id}: store ${String([balance, held, active])}, model ${String([account.balance, account.held, account.active])}`,
      );
      ensure(
        account.left === grantLeft,
        "what is left of grants is as in the model",
        () => `${id}: store ${String(grantLeft)}, model ${String(account.left)}`,
      );
      ensure(
        account.version === version,
        "the version of an account counts its changes",
        () => `${id}: store ${String(version)}, model ${String(account.version)}`,
      );
    }
    ensure(
      reservations.length === model.reservations.size - this.archived.size,
      "as many reservations as in the model",
      () => `${String(reservations.length)}, model ${String(model.reservations.size)}`,
    );
    for (const one of reservations) {
      const {
        account: _account,
        owner: _owner,
        ...expected
      } = model.reservations.get(one.id) ?? { account: "", owner: "" };
      const { account: _ours, id, ...actual } = one;
      for (const [name, value] of Object.entries(expected))
        ensure(
          actual[name as keyof typeof actual] === value,
          `${name} of a reservation is as in the model`,
          () =>
            `${id}: store ${String(actual[name as keyof typeof actual])}, model ${String(value)}`,
        );
    }
    this.ensureKeys(keys);
    this.ensureTickets(tickets, nowMs);
  }

  /** What has happened is written once, in its order, and nothing of what has not; positions have no gaps. */
  private ensureEvents({ accounts, events, keys }: Observed): void {
    for (const { id } of [...accounts, ...keys]) {
      const written = events
        .filter(({ account, key }) => (key ?? account) === id)
        .map(({ text }) => text);
      const expected = this.model.events.events(id);
      ensure(
        String(written) === String(expected),
        "the events of accounts and keys are what has happened to them",
        () => `${id}: store ${String(written)}, model ${String(expected)}`,
      );
    }
    const positions = events.flatMap(({ position }) => (position === null ? [] : [position]));
    ensure(
      positions.every((position, index) => position === index + 1),
      "positions of events have no gaps",
      () => String(positions),
    );
  }

  /** What has left the window need not have left the table. */
  private ensureTickets(tickets: readonly ObservedTicket[], nowMs: number): void {
    const counts = (at: number): boolean => at > nowMs - 60_000 && at <= nowMs + 60_000;
    for (const [id, key] of this.model.keys) {
      const stored = tickets.filter((ticket) => ticket.key === id && counts(ticket.atMs)).length;
      const expected = key.tickets.filter(({ at }) => counts(at)).length;
      ensure(
        stored === expected,
        "rate tickets are as in the model",
        () => `${id}: store ${String(stored)}, model ${String(expected)}`,
      );
    }
  }

  private journal(account: string): Journal {
    let journal = this.journals.get(account);
    if (journal === undefined) {
      journal = { balance: 0n, held: 0n, credited: 0n, sequence: 0 };
      this.journals.set(account, journal);
    }
    return journal;
  }
}

function ensureReservation(one: ObservedReservation, resolved: ReadonlySet<string>): void {
  ensure(
    one.charged >= 0n && one.charged <= one.reserved,
    "charge <= reserved",
    () => `${one.id}: charged ${String(one.charged)} of ${String(one.reserved)}`,
  );
  ensure(
    (one.state === "open") === !resolved.has(one.id),
    "a reservation is open until its entry resolves it",
    () =>
      `${one.id} is ${one.state}, and ${resolved.has(one.id) ? "has" : "has no"} resolving entry`,
  );
}

function sum<Value>(values: readonly Value[], of: (value: Value) => bigint): bigint {
  let total = 0n;
  for (const value of values) total += of(value);
  return total;
}

/** Calls that hardly ever change anything; what they do wrong is seen after the next one of another kind. */
const quiet: ReadonlySet<OperationName> = new Set<OperationName>([
  "cancelledGenerations",
  "expire",
  "findUnsummed",
  "giveBackDead",
  "isGrantDue",
  "noteKeyUse",
  "renew",
  "pageUsage",
  "verify",
]);

function isGivingBack(name: OperationName): boolean {
  return name === "expire" || name === "giveBackDead";
}

/** What an answer tells its caller, for comparing and for the trace. */
export function toldBy(call: StoreCall, answer: StoreAnswer | undefined): Told {
  if (answer === undefined) return "no answer";
  if (!answer.ok) return codeOf(answer.error, call);
  const value = answer.value as unknown;
  switch (call.name as string) {
    case "authorize":
      return ["authorized", (value as { rate: { remaining: number } }).rate.remaining];
    case "admit": {
      const { allowance, reservedNanos } = value as { allowance: number; reservedNanos: bigint };
      return ["admitted", allowance, reservedNanos];
    }
    case "settle": {
      const { applied, chargedNanos } = value as { applied: boolean; chargedNanos: bigint };
      return ["settled", chargedNanos, applied];
    }
    case "renew":
      return ["renewed", ...(value as readonly string[]).toSorted()];
    case "cancelledGenerations":
      return ["cancelled", ...(value as readonly string[]).toSorted()];
    case "isGrantDue":
      return ["due", value as boolean];
    case "verify":
      return ["problems", (value as { problemsTotal: number }).problemsTotal];
    case "noteExpiringKeys":
      return ["announced", value as number];
    case "pageUsage":
      return answeredLines(
        (value as { rows: readonly AnsweredRow[] }).rows,
        call.argument as UsageQuestion,
      );
    case "expire":
      return ["expired", value as number];
    case "giveBackDead":
      return ["expired", (value as { count: number }).count];
    case "creditAccount": {
      const { account, entry } = value as {
        readonly account: { readonly balanceNanos: bigint; readonly heldNanos: bigint };
        readonly entry: { readonly balanceNanos: bigint };
      };
      return ["account", account.balanceNanos, account.heldNanos, entry.balanceNanos];
    }
    default:
      return "done";
  }
}

function codeOf(error: unknown, call: StoreCall): string {
  if (error instanceof Failure || error instanceof OperatorError) return error.code;
  const text = error instanceof Error ? error.message : String(error);
  throw new Violation("the store does every call", `${call.name}: ${text}`);
}
