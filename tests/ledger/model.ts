/**
 * What the ledger must do, written again from the contract, without a database and without the code under test.
 * Answers are what a caller could tell apart: a code for a refusal, the numbers of a success.
 */
export interface ModelRules {
  readonly concurrency: number;
  readonly perMinute: number;
  readonly leaseMs: number;
  /** Nanos a token. */
  readonly inputNanos: bigint;
  readonly outputNanos: bigint;
}

export interface ModelAccount {
  active: boolean;
  balance: bigint;
  held: bigint;
  credited: bigint;
  spent: bigint;
  grant?: ModelGrant | null;
  /** Begins of periods that were paid. */
  paid?: Set<number>;
  /** What of the balance is of grants. */
  left?: bigint;
}
/** So much at the begin of each day of UTC. */
export interface ModelGrant {
  readonly amount: bigint;
  readonly carry: boolean;
  next: number;
}
export interface ModelReservation {
  readonly account: string;
  readonly allowance: number;
  readonly reserved: bigint;
  state: "open" | "settled" | "expired";
  charged: bigint;
  leaseUntil: number;
  readonly key: string;
  readonly admittedAt: number;
  /** The begin of the period of its key's budget; null: it counts in none. */
  period: number | null;
}
/** A budget in days of UTC, or of all time. */
export interface ModelBudget {
  readonly amount: bigint;
  readonly days: boolean;
  begin: number;
}
interface ModelKey {
  account: string;
  revoked: boolean;
  tickets: { at: number }[];
  budget?: ModelBudget | null;
}
export interface ModelEntry {
  readonly account: string;
  readonly kind: "credit" | "top_up" | "grant" | "correction" | "reserve" | "settle" | "expire";
  readonly balanceDelta: bigint;
  readonly heldDelta: bigint;
  readonly request: string | null;
}
/** What a caller presents and asks for. */
export interface ModelAsked {
  readonly key: string;
  /** Whether the secret is the key's own. */
  readonly right: boolean;
  readonly counts: boolean;
  /** Whether the balance has to pay for the smallest request: 64 tokens of input and one of output. */
  readonly paid: boolean;
}
export interface ModelCaller {
  readonly key: string;
  /** The moment of the ticket; null: none was taken. */
  readonly ticket: { readonly at: number } | null;
}
export type ModelAnswer = string | readonly (string | number | bigint | boolean)[];

export class LedgerModel {
  readonly accounts = new Map<string, ModelAccount>();
  readonly keys = new Map<string, ModelKey>();
  readonly reservations = new Map<string, ModelReservation>();
  /** Every movement, in order; each account's own are its journal. */
  readonly journal: ModelEntry[] = [];
  readonly rules: ModelRules;

  constructor(rules: ModelRules) {
    this.rules = rules;
  }

  credit(id: string, amount: bigint, kind: ModelEntry["kind"] = "top_up"): ModelAnswer {
    const account = this.account(id);
    if (amount === 0n) return "invalid_value";
    if (account.balance + amount < account.held) return "not_possible";
    account.balance += amount;
    account.credited += amount;
    this.lower(account, amount);
    this.note(id, kind, amount, 0n, null);
    return [account.balance, account.held];
  }

  authorize(asked: ModelAsked, now: number): [ModelAnswer, ModelCaller | null] {
    const { counts, key: id, right } = asked;
    const refused = right ? this.gate(id) : "authentication";
    if (refused !== null) return [refused, null];
    const { tickets } = this.key(id);
    const live = tickets.filter(({ at }) => at > now - 60_000 && at <= now).length;
    if (counts && live >= this.rules.perMinute) return ["rate_limited", null];
    const ticket = { at: now };
    if (counts) tickets.push(ticket);
    const { balance, grant } = this.account(this.key(id).account);
    const due = grant !== null && grant !== undefined && now >= grant.next;
    if (asked.paid && !due && balance < this.cost(64, 1)) return ["insufficient_credit", null];
    if (!counts) return [["authorized", this.rules.perMinute - live], { key: id, ticket: null }];
    return [["authorized", this.rules.perMinute - live - 1], { key: id, ticket }];
  }

  giveTicketBack(caller: ModelCaller): void {
    const key = this.key(caller.key);
    key.tickets = key.tickets.filter((ticket) => ticket !== caller.ticket);
  }

  admit(
    id: string,
    caller: ModelCaller,
    bound: number,
    asked: number | null,
    now: number,
  ): ModelAnswer {
    const before = this.reservations.get(id);
    const key = this.key(caller.key);
    if (before !== undefined) {
      if (before.account !== key.account) return "fault";
      return before.state === "open"
        ? ["admitted", before.allowance, before.reserved]
        : "overloaded";
    }
    const refused = this.gate(caller.key);
    if (refused !== null) return refused;
    const account = this.account(key.account);
    if (this.running(key.account) >= this.rules.concurrency) {
      this.giveTicketBack(caller);
      return "too_many_concurrent";
    }
    this.payGrant(key.account, now);
    const credit = account.balance - account.held;
    const left = this.left(caller.key, now);
    const available = left !== null && left < credit ? left : credit;
    const free = available - BigInt(bound) * this.rules.inputNanos;
    const payable = free < 0n ? 0n : free / this.rules.outputNanos;
    const allowance = asked ?? Number(payable < 32_768n ? payable : 32_768n);
    if (allowance < 1 || payable < BigInt(allowance))
      return available < credit ? "budget_exceeded" : "insufficient_credit";
    const reserved = this.cost(bound, allowance);
    account.held += reserved;
    this.note(key.account, "reserve", 0n, reserved, id);
    const leaseUntil = now + this.rules.leaseMs;
    this.reservations.set(id, {
      account: key.account,
      allowance,
      reserved,
      state: "open",
      charged: 0n,
      leaseUntil,
      key: caller.key,
      admittedAt: now,
      period: key.budget?.begin ?? null,
    });
    return ["admitted", allowance, reserved];
  }

  settle(id: string, usage: readonly [number, number] | null): ModelAnswer {
    const reservation = this.reservations.get(id);
    if (reservation === undefined) return ["settled", 0n, false];
    if (reservation.state !== "open") return ["settled", reservation.charged, false];
    const cost = usage === null ? 0n : this.cost(...usage);
    reservation.charged = cost < reservation.reserved ? cost : reservation.reserved;
    this.end(id, reservation, "settled");
    return ["settled", reservation.charged, true];
  }

  renew(ids: readonly string[], now: number): ModelAnswer {
    const ours = ids.filter((id) => this.reservations.get(id)?.state === "open");
    for (const id of ours) {
      const reservation = this.reservations.get(id);
      if (reservation !== undefined) reservation.leaseUntil = now + this.rules.leaseMs;
    }
    return ours;
  }

  expire(now: number): ModelAnswer {
    const due = [...this.reservations]
      .filter(([, one]) => one.state === "open" && one.leaseUntil <= now)
      .toSorted(([a, one], [b, other]) => one.leaseUntil - other.leaseUntil || (a < b ? -1 : 1));
    for (const [id, reservation] of due) this.end(id, reservation, "expired");
    return ["expired", due.length];
  }

  /** The first one is paid at once; a change holds from the next day on. */
  setGrant(id: string, amount: bigint | null, carry: boolean, now: number): void {
    const account = this.account(id);
    const next = account.grant?.next ?? now;
    account.grant = amount === null ? null : { amount, carry, next };
    if (next === now) this.payGrant(id, now);
  }

  /** This day's, once, after taking back what is left of the days before and not held. */
  payGrant(id: string, now: number): void {
    const account = this.account(id);
    const { grant, paid = new Set() } = account;
    if (grant === null || grant === undefined || now < grant.next) return;
    const begin = dayOf(now);
    grant.next = begin + 86_400_000;
    if (paid.has(begin)) return;
    account.paid = paid.add(begin);
    const free = account.balance - account.held;
    const left = account.left ?? 0n;
    const rest = grant.carry ? 0n : left < free ? left : free;
    if (rest > 0n) this.credit(id, -rest, "correction");
    this.credit(id, grant.amount, "grant");
    account.left = (account.left ?? 0n) + grant.amount;
  }

  /** What goes is of grants first. */
  private lower(account: ModelAccount, amount: bigint): void {
    if (amount >= 0n) return;
    const left = (account.left ?? 0n) + amount;
    account.left = left < 0n ? 0n : left;
  }

  /** What a key was charged since the present period began counts, and what its running requests hold. */
  setBudget(id: string, amount: bigint | null, days: boolean, now: number): void {
    const key = this.key(id);
    key.budget = amount === null ? null : { amount, days, begin: days ? dayOf(now) : 0 };
    for (const one of this.reservations.values())
      if (one.key === id)
        one.period =
          key.budget !== null && one.admittedAt >= key.budget.begin ? key.budget.begin : null;
  }

  /** Spent and held in the present period of a key's budget. */
  used(id: string): readonly [spent: bigint, held: bigint] {
    const { budget } = this.key(id);
    let [spent, held] = [0n, 0n];
    for (const one of this.reservations.values()) {
      if (one.key !== id || one.period === null || one.period !== budget?.begin) continue;
      if (one.state === "open") held += one.reserved;
      else spent += one.charged;
    }
    return [spent, held];
  }

  /** What is left of a key's budget, whose next period begins where the last one is over; null: it has none. */
  private left(id: string, now: number): bigint | null {
    const { budget } = this.key(id);
    if (budget === null || budget === undefined) return null;
    if (budget.days && now >= budget.begin + 86_400_000) budget.begin = dayOf(now);
    const [spent, held] = this.used(id);
    return budget.amount - spent - held;
  }

  running(account: string): number {
    return [...this.reservations.values()].filter(
      (one) => one.account === account && one.state === "open",
    ).length;
  }

  private end(id: string, reservation: ModelReservation, state: "settled" | "expired"): void {
    const account = this.account(reservation.account);
    reservation.state = state;
    account.held -= reservation.reserved;
    account.balance -= reservation.charged;
    account.spent += reservation.charged;
    this.lower(account, -reservation.charged);
    const kind = state === "settled" ? "settle" : "expire";
    this.note(reservation.account, kind, -reservation.charged, -reservation.reserved, id);
  }

  // oxlint-disable-next-line max-params -- an entry's columns
  private note(
    account: string,
    kind: ModelEntry["kind"],
    balanceDelta: bigint,
    heldDelta: bigint,
    request: string | null,
  ): void {
    this.journal.push({ account, kind, balanceDelta, heldDelta, request });
  }

  private gate(id: string): string | null {
    const key = this.key(id);
    if (key.revoked) return "authentication";
    return this.account(key.account).active ? null : "account_disabled";
  }

  private cost(input: number, output: number): bigint {
    return BigInt(input) * this.rules.inputNanos + BigInt(output) * this.rules.outputNanos;
  }

  account(id: string): ModelAccount {
    const account = this.accounts.get(id);
    if (account === undefined) throw new Error(`no account ${id}`);
    return account;
  }

  key(id: string): ModelKey {
    const key = this.keys.get(id);
    if (key === undefined) throw new Error(`no key ${id}`);
    return key;
  }
}

function dayOf(now: number): number {
  return now - (now % 86_400_000);
}
