import type { StoreCall } from "../../src/ledger/store-operations.ts";
import { EventModel, type SpentBudget } from "./event-model.ts";
import type { Rules } from "./plan.ts";
import type { Presence } from "./presence.ts";
import { onceOf } from "./once.ts";
import { costOf, holdOf, PriceBook, textOf, type TokenPrices } from "./prices.ts";
import type { SimulatedStore } from "./simulated-store.ts";
import { type EndedRequest, usageLines, type UsageQuestion } from "./usage-model.ts";
import { ensure } from "./violation.ts";

/** What a caller can tell apart: a code for a refusal, the figures of a success. */
export type Told = string | readonly (string | number | bigint | boolean)[];

/** null: as the service, or as the account. */
interface ModelLimits {
  perMinute: number | null;
  tokens: number | null;
}
export interface ModelAccount extends ModelLimits {
  readonly id: string;
  /** How often operators have changed it, from 1 on. */
  version: number;
  low: bigint | null;
  active: boolean;
  /** null: `default`. */
  priceList: string | null;
  slots: number | null;
  /** The most that could run at once since it was made. */
  slotsMost: number;
  balance: bigint;
  held: bigint;
  credited: bigint;
  spent: bigint;
  /** What was credited under each name of another system. */
  readonly references: Map<string, { readonly facts: string; readonly after: bigint }>;
  grant: ModelGrant | null;
  /** What of the balance is of grants. */
  left: bigint;
  /** The days that were paid. */
  readonly paid: Set<number>;
}
interface GrantArgument {
  readonly amountNanos: bigint;
  readonly carryOver: boolean;
}
interface ModelGrant extends GrantArgument {
  next: number;
}
export interface ModelReservation {
  readonly account: string;
  readonly allowance: number;
  readonly reserved: bigint;
  /** null: the settings. */
  readonly priceList: string | null;
  /** In one line. */
  readonly prices: string;
  readonly label: string | null;
  /** The process that reserved. */
  readonly owner: string;
  state: "open" | "settled" | "expired";
  outcome: string | null;
  charged: bigint;
  /** What refunds have given back of the charge. */
  refunded: bigint;
  leaseUntil: number;
  /** The begin of the period of its key's budget; null: it counts in none. */
  period: number | null;
  cancelled: boolean;
}
interface Ticket {
  readonly id: string;
  readonly at: number;
  /** How many the key might have when it was taken. */
  readonly limit: number;
}
interface BudgetArgument {
  readonly amountNanos: bigint;
  readonly period: "day" | "total";
}
export interface ModelBudget extends BudgetArgument {
  begin: number;
  /** What is counted in the period. */
  counted: Set<string>;
}
interface ModelKey extends ModelLimits {
  version: number;
  budget: ModelBudget | null;
  readonly account: string;
  revoked: boolean;
  paused: boolean;
  scopes: readonly string[];
  expiresAt: number | null;
  secret: string;
  before: { readonly secret: string; readonly until: number } | null;
  tickets: Ticket[];
  /** Of the newest of them, as far as a store with windows knows. */
  newest: number;
  /** Every ticket that was not given back, also those that the store has forgotten. */
  taken: Ticket[];
}

/**
 * The ledger as the contract tells it, for one call after another: no database, nothing of the code under test. Money is
 * counted here from the tokens up, and allowances are searched for instead of computed.
 */
export class Model {
  readonly accounts = new Map<string, ModelAccount>();
  readonly keys = new Map<string, ModelKey>();
  readonly reservations = new Map<string, ModelReservation>();
  private readonly ended: EndedRequest[] = [];
  private readonly pricesOf = new Map<string, TokenPrices>();
  private readonly book: PriceBook;
  readonly events = new EventModel();
  /** What the last `expire` gave back. */
  expiredLast: readonly string[] = [];
  /** The clock has jumped: then a minute is not a minute any more. */
  clockJumped = false;
  private readonly rules: Rules;
  private readonly presence: Presence;
  private readonly forgets: SimulatedStore["forgets"];

  constructor(rules: Rules, presence: Presence, forgets: SimulatedStore["forgets"]) {
    this.rules = rules;
    this.forgets = forgets;
    this.presence = presence;
    this.book = new PriceBook({
      input: rules.inputNanosPerMillion,
      cached: null,
      output: rules.outputNanosPerMillion,
    });
  }

  /** What the call of that process must answer; the model is then where the store must be. */
  apply(call: StoreCall, by: string): Told {
    const { argument, nowMs } = call;
    // A run makes these calls and no others.
    switch (call.name as string) {
      case "createAccount": {
        const { id, creditNanos } = argument as { id: string; creditNanos: bigint };
        this.accounts.set(id, {
          version: 1,
          low: null,
          active: true,
          priceList: null,
          slots: null,
          slotsMost: this.rules.concurrency,
          perMinute: null,
          tokens: null,
          balance: creditNanos,
          held: 0n,
          credited: creditNanos,
          spent: 0n,
          references: new Map(),
          id,
          grant: null,
          left: 0n,
          paid: new Set(),
        });
        this.events.moved(id, 0n, creditNanos);
        return "done";
      }
      case "createKey": {
        const { id, accountId, budget, secretHash } = argument as {
          id: string;
          accountId: string;
          budget?: BudgetArgument;
          secretHash: Uint8Array;
        };
        this.keys.set(id, {
          version: 1,
          account: accountId,
          revoked: false,
          paused: false,
          scopes: ["generate", "read"],
          expiresAt: null,
          perMinute: null,
          tokens: null,
          secret: String(secretHash),
          before: null,
          budget: null,
          tickets: [],
          newest: 0,
          taken: [],
        });
        if (budget !== undefined) this.setBudget(id, budget, nowMs);
        return "done";
      }
      case "creditAccount": {
        return this.creditOnce(call);
      }
      case "createPriceList":
        return this.book.make(argument as Parameters<PriceBook["make"]>[0], nowMs);
      case "changePriceList":
        return this.book.change(argument as Parameters<PriceBook["change"]>[0], nowMs);
      case "setAccountStatus": {
        const { id, status } = argument as { id: string; status: string };
        const account = this.account(id);
        if (account.active !== (status === "active")) account.version += 1;
        account.active = status === "active";
        return "done";
      }
      case "noteKeyUse":
        return "done";
      case "changeAccount":
      case "changeKey":
      case "rotateKey":
        return this.setPolicy(call.name, argument as PolicyArgument, nowMs);
      case "revokeKey": {
        const key = this.key((argument as { id: string }).id);
        if (!key.revoked) key.version += 1;
        key.revoked = true;
        return "done";
      }
      case "isGrantDue":
        return ["due", this.isDue(this.account(argument as string), nowMs)];
      case "payGrants": {
        const { accountId } = argument as { accountId: string | null };
        for (const account of this.accounts.values())
          if (accountId === null || account.id === accountId) this.payGrant(account, nowMs);
        return "done";
      }
      case "authorize":
        return this.authorize(argument as AuthorizeArgument, nowMs);
      case "admit":
        return this.admit(argument as AdmitArgument, by, nowMs);
      case "settle":
        return this.settle(argument as SettleArgument, nowMs);
      case "renew":
        return this.renew(argument as readonly string[], nowMs);
      case "cancelGeneration":
        return this.cancel((argument as { requestId: string }).requestId);
      case "cancelledGenerations":
        return ["cancelled", ...this.cancelled().toSorted()];
      case "expire":
        return this.expire(nowMs);
      case "noteBudgetRefused": {
        const { keyId } = argument as { keyId: string };
        const spent = this.spentOf(keyId);
        if (spent !== null) this.events.budgetRefused(keyId, spent);
        return "done";
      }
      case "noteExpiringKeys":
        return ["announced", this.announce(nowMs)];
      // What is kept changes no answer.
      case "findUnsummed":
      case "keepUsage":
      case "checkpoint":
      case "readArchivable":
      case "archiveReceipts":
        return "done";
      case "verify":
        return ["problems", 0];
      case "pageUsage":
        return usageLines(this.ended, argument as UsageQuestion);
      case "noteExhausted": {
        const order = argument as { accountId: string; balanceNanos: bigint };
        const { balance } = this.account(order.accountId);
        this.events.refused(order.accountId, order.balanceNanos, balance);
        return "done";
      }
      case "takeDesk":
        return "done";
      case "giveBackDead":
        this.presence.notice(nowMs);
        return this.giveBack(nowMs, ({ owner }) => this.presence.isDead(owner, nowMs));
      default:
        throw new Error(`the model does not know ${call.name}`);
    }
  }

  /** The first of the concurrency's, the allowance's and the gate's refusals, else a reservation. */
  private admit(order: AdmitArgument, owner: string, nowMs: number): Told {
    const { caller, inputBound, requestId } = order;
    const earlier = this.reservations.get(requestId);
    if (earlier !== undefined)
      return earlier.state === "open"
        ? ["admitted", earlier.allowance, earlier.reserved]
        : "overloaded";
    const key = this.key(caller.keyId);
    const refused = this.gate(key, nowMs);
    if (refused !== null) return refused;
    const account = this.account(caller.accountId);
    if (this.open(caller.accountId).length >= (account.slots ?? this.rules.concurrency)) {
      const stays = ({ id }: Ticket): boolean => !(caller.ticket ?? "").endsWith(`.${id}`);
      key.tickets = key.tickets.filter(stays);
      key.taken = key.taken.filter(stays);
      return "too_many_concurrent";
    }
    this.payGrant(account, nowMs);
    const { list, prices } = this.book.at(account.priceList, nowMs);
    const credit = account.balance - account.held;
    const left = this.budgetLeft(caller.keyId, nowMs);
    const most = least(65_536, account.tokens, key.tokens);
    const available = left < credit ? left : credit;
    const allowance = this.allowance({ ...order, most, available }, prices);
    if (allowance === 0) return left < credit ? "budget_exceeded" : "insufficient_credit";
    const reserved = holdOf(inputBound, allowance, prices);
    this.pricesOf.set(requestId, prices);
    account.held += reserved;
    this.reservations.set(requestId, {
      account: caller.accountId,
      label: order.label,
      priceList: list,
      prices: textOf(prices),
      allowance,
      reserved,
      owner,
      state: "open",
      outcome: null,
      charged: 0n,
      refunded: 0n,
      leaseUntil: nowMs + this.rules.leaseMs,
      period: this.key(caller.keyId).budget?.begin ?? null,
      cancelled: false,
    });
    this.keyOf.set(requestId, caller.keyId);
    this.admittedAt.set(requestId, nowMs);
    this.key(caller.keyId).budget?.counted.add(requestId);
    return ["admitted", allowance, reserved];
  }

  /** By the operator, the route and the idempotency key: what was sent, and what it was told. */
  private readonly kept = new Map<string, { readonly body: string; readonly told: Told }>();
  private readonly keyOf = new Map<string, string>();
  private readonly admittedAt = new Map<string, number>();

  /** The first one is paid at once; a change holds from the next day on. */
  private setGrant(account: ModelAccount, grant: GrantArgument | null, nowMs: number): void {
    const before = account.grant;
    if (grant?.amountNanos === before?.amountNanos && grant?.carryOver === before?.carryOver)
      return;
    account.grant = grant === null ? null : { ...grant, next: before?.next ?? nowMs };
    if (before === null) this.payGrant(account, nowMs);
  }

  private isDue({ grant }: ModelAccount, nowMs: number): boolean {
    return grant !== null && nowMs >= grant.next;
  }

  /** A day's, once: what is left of the days before goes first, but for what requests hold. */
  private payGrant(account: ModelAccount, nowMs: number): void {
    const { grant } = account;
    if (grant === null || !this.isDue(account, nowMs)) return;
    const day = startOfDay(nowMs);
    grant.next = day + dayMs;
    if (account.paid.has(day)) return;
    account.paid.add(day);
    const free = account.balance - account.held;
    const rest = account.left < free ? account.left : free;
    if (!grant.carryOver) this.move(account, -rest);
    this.move(account, grant.amountNanos);
    account.left += grant.amountNanos;
  }

  private move(account: ModelAccount, amount: bigint): void {
    account.balance += amount;
    account.credited += amount;
    this.events.moved(account.id, account.balance - amount, account.balance);
    if (amount < 0n) account.left = account.left + amount < 0n ? 0n : account.left + amount;
  }

  /** Whatever the key was charged and holds since the present period began counts from now on. */
  private setBudget(id: string, budget: BudgetArgument | null, nowMs: number): void {
    const begin = budget?.period === "day" ? startOfDay(nowMs) : 0;
    const counted = new Set<string>();
    for (const [request, one] of this.reservations) {
      if (this.keyOf.get(request) !== id) continue;
      const counts = budget !== null && (this.admittedAt.get(request) ?? 0) >= begin;
      if (counts) counted.add(request);
      // A request that has ended is not written any more, nor is one where the budget is taken away.
      if (one.state === "open" && budget !== null) one.period = counts ? begin : null;
    }
    this.key(id).budget = budget === null ? null : { ...budget, begin, counted };
    this.events.budgetSet(id);
    this.noteSpent(id);
  }

  private spentOf(id: string): SpentBudget | null {
    const { budget } = this.key(id);
    if (budget === null) return null;
    const { amountNanos: amount, begin } = budget;
    return { amount, begin, spent: this.used(budget)[0] };
  }

  private noteSpent(id: string): void {
    const spent = this.spentOf(id);
    if (spent !== null) this.events.spent(id, spent);
  }

  /** Of keys that end within a day. */
  private announce(nowMs: number): number {
    let count = 0;
    for (const [id, { expiresAt, revoked }] of this.keys) {
      if (revoked || expiresAt === null || expiresAt <= nowMs || expiresAt > nowMs + dayMs)
        continue;
      if (this.events.expires(id, expiresAt)) count += 1;
    }
    return count;
  }

  /** Spent and held in the present period. */
  used({ counted }: ModelBudget): readonly [spent: bigint, held: bigint] {
    let [spent, held] = [0n, 0n];
    for (const [request, one] of this.reservations) {
      if (!counted.has(request)) continue;
      if (one.state === "open") held += one.reserved;
      else spent += one.charged;
    }
    return [spent, held];
  }

  /** Without end where there is no budget. A period that is over is followed by the one of now. */
  private budgetLeft(id: string, nowMs: number): bigint {
    const { budget } = this.key(id);
    if (budget === null) return 1n << 62n;
    if (budget.period === "day" && nowMs >= budget.begin + dayMs) {
      budget.begin = startOfDay(nowMs);
      budget.counted = new Set();
      this.noteSpent(id);
    }
    const [spent, held] = this.used(budget);
    return budget.amountNanos - spent - held;
  }

  /** An explicit one whole or not at all, an omitted one as large as can be paid; 0: none. */
  private allowance(
    order: AdmitArgument & { readonly most: number; readonly available: bigint },
    prices: TokenPrices,
  ): number {
    const { available, inputBound, most } = order;
    const { outputTokensFitting: fitting, outputTokensRequested: requested } = order;
    const wanted = Math.min(requested ?? 32_768, most, fitting ?? most);
    const payable = (tokens: number): boolean => holdOf(inputBound, tokens, prices) <= available;
    if (payable(wanted)) return wanted;
    if (requested !== null) return 0;
    let payed = 0;
    for (let stride = 32_768; stride >= 1; stride /= 2)
      if (payed + stride < wanted && payable(payed + stride)) payed += stride;
    return payed;
  }

  private authorize(asked: AuthorizeArgument, nowMs: number): Told {
    const { keyId, needsCredit, secretHash, ticketId } = asked;
    const key = this.key(keyId);
    const isBefore = key.before !== null && String(secretHash) === key.before.secret;
    if (String(secretHash) !== key.secret && !isBefore) return "authentication";
    if (isBefore && (key.before?.until ?? 0) <= nowMs) return "authentication";
    const refused = this.gate(key, nowMs);
    if (refused !== null) return refused;
    this.sweep(key, nowMs);
    const { account } = key;
    const limit = least(this.account(account).perMinute ?? this.rules.perMinute, key.perMinute);
    const left = (): number => Math.max(limit - key.tickets.length, 0);
    if (ticketId === null) return ["authorized", left()];
    key.newest = newestOf(key);
    if (key.tickets.length >= limit) return "rate_limited";
    key.tickets.push({ id: ticketId, at: nowMs, limit });
    key.newest = newestOf(key);
    key.taken.push({ id: ticketId, at: nowMs, limit });
    this.ensureRate(keyId, key);
    const payer = this.account(key.account);
    const least64 = holdOf(64, 1, this.book.at(payer.priceList, nowMs).prices);
    if (needsCredit && !this.isDue(payer, nowMs) && payer.balance < least64)
      return "insufficient_credit";
    return ["authorized", left()];
  }

  private setPolicy(name: string, argument: PolicyArgument, nowMs: number): Told {
    const { by, id } = argument;
    const owner = name === "changeAccount" ? this.account(id) : this.key(id);
    const { ifVersion = null } = by ?? {};
    if (name !== "rotateKey" && ifVersion !== null && ifVersion !== owner.version)
      return "version_conflict";
    if (name === "changeAccount") return this.setAccount(this.account(id), argument, nowMs);
    const key = this.key(id);
    if (key.revoked) return "not_possible";
    if (name === "rotateKey") {
      key.version += 1;
      key.before = { secret: key.secret, until: nowMs + (argument.overlapMs ?? 0) };
      key.secret = String(argument.secretHash);
      return "done";
    }
    const before = keyFacts(key);
    const { budget = key.budget } = argument;
    const same =
      key.budget?.amountNanos === budget?.amountNanos && key.budget?.period === budget?.period;
    if (!same) this.setBudget(id, budget, nowMs);
    setLimits(key, argument.limits ?? {});
    if (argument.status !== undefined) key.paused = argument.status === "paused";
    if (argument.scopes !== undefined) key.scopes = argument.scopes;
    if (argument.expiresAtMs !== undefined) key.expiresAt = argument.expiresAtMs;
    if (keyFacts(key) !== before) key.version += 1;
    return "done";
  }

  private setAccount(account: ModelAccount, argument: PolicyArgument, nowMs: number): Told {
    const { grant, limits = {}, lowBalanceNanos = account.low, priceList } = argument;
    if (priceList !== undefined && !this.book.has(priceList)) return "not_found";
    const before = accountFacts(account);
    if (lowBalanceNanos !== account.low)
      this.events.callLow(account.id, lowBalanceNanos, account.balance);
    account.low = lowBalanceNanos;
    if (priceList !== undefined) account.priceList = priceList;
    if (grant !== undefined) this.setGrant(account, grant, nowMs);
    setLimits(account, limits);
    if (limits.concurrentRequests !== undefined) account.slots = limits.concurrentRequests;
    account.slotsMost = Math.max(account.slotsMost, account.slots ?? 0);
    if (accountFacts(account) !== before) account.version += 1;
    return "done";
  }

  /** In any 60 s, wherever they begin: forgetting tickets must not make room. */
  private ensureRate(keyId: string, key: ModelKey): void {
    if (this.clockJumped) return;
    for (const { at: from } of key.taken) {
      const within = key.taken.filter(({ at }) => at >= from && at < from + 60_000);
      const most = Math.max(...within.map(({ limit }) => limit));
      ensure(
        within.length <= most,
        "never more requests in 60 s than the rate",
        () => `${keyId}: more than ${String(most)} from ${String(from)} on`,
      );
    }
  }

  /** Tickets leave after a minute; those far ahead are from before the clock was set back. */
  private sweep(key: ModelKey, nowMs: number): void {
    key.tickets = key.tickets.filter(({ at }) => isInWindow(at, nowMs));
  }

  private settle(settlement: SettleArgument, nowMs: number): Told {
    const { firstOutputMs, requestId, totalMs, usage } = settlement;
    const reservation = this.reservations.get(requestId);
    if (reservation === undefined) return ["settled", 0n, false];
    if (reservation.state !== "open") return ["settled", reservation.charged, false];
    const cost = usage === null ? 0n : this.cost(requestId, usage);
    reservation.charged = cost < reservation.reserved ? cost : reservation.reserved;
    reservation.outcome = settlement.outcome;
    this.resolve(requestId, reservation, "settled");
    const {
      cachedInputTokens = 0,
      inputTokens = 0,
      outputTokens = 0,
      reasoningTokens = 0,
    } = usage ?? {};
    this.ended.push({
      ...this.endOf(requestId, reservation, nowMs),
      tokens: [inputTokens, cachedInputTokens, outputTokens, reasoningTokens],
      firstOutputMs,
      totalMs,
    });
    return ["settled", reservation.charged, true];
  }

  private renew(ids: readonly string[], nowMs: number): Told {
    const ours = ids.filter((id) => this.reservations.get(id)?.state === "open");
    for (const id of ours) {
      const reservation = this.reservations.get(id);
      if (reservation !== undefined) reservation.leaseUntil = nowMs + this.rules.leaseMs;
    }
    return ["renewed", ...ours.toSorted()];
  }

  /** It still runs: nothing is given back before its process has ended it. */
  private cancel(id: string): Told {
    const reservation = this.reservations.get(id);
    if (reservation === undefined) return "not_found";
    if (reservation.state !== "open") return "not_possible";
    reservation.cancelled = true;
    return "done";
  }

  private cancelled(): string[] {
    const cancelled = [...this.reservations].filter(
      ([, one]) => one.cancelled && one.state === "open",
    );
    return cancelled.map(([id]) => id);
  }

  private expire(nowMs: number): Told {
    for (const key of this.keys.values())
      if (this.forgets === "tickets" || !isInWindow(key.newest, nowMs)) {
        this.sweep(key, nowMs);
        key.newest = newestOf(key);
      }
    // Ended, or of a clock that was ahead: no process that lives has a lease of more than two leases from now.
    return this.giveBack(
      nowMs,
      ({ leaseUntil, owner }) =>
        leaseUntil <= nowMs ||
        (leaseUntil > nowMs + 2 * this.rules.leaseMs && !this.presence.isHeard(owner)),
    );
  }

  private giveBack(nowMs: number, isDue: (reservation: ModelReservation) => boolean): Told {
    const due = [...this.reservations].filter(([, one]) => one.state === "open" && isDue(one));
    this.expiredLast = due.map(([id]) => id);
    for (const [id, reservation] of due) {
      reservation.outcome = "lease-lost";
      this.resolve(id, reservation, "expired");
      const nothing = { tokens: [0, 0, 0, 0], firstOutputMs: null, totalMs: null } as const;
      this.ended.push({ ...this.endOf(id, reservation, nowMs), ...nothing });
    }
    return ["expired", due.length];
  }

  private endOf(
    id: string,
    { account, charged, label, outcome }: ModelReservation,
    atMs: number,
  ): Omit<EndedRequest, "tokens" | "firstOutputMs" | "totalMs"> {
    const key = this.keyOf.get(id) ?? "";
    return { account, key, label, outcome: outcome ?? "", charged, atMs };
  }

  /** A repeat under its key is told what the first was; a refusal is kept for none. */
  private creditOnce(call: StoreCall): Told {
    const order = call.argument as CreditArgument;
    const once = onceOf(call);
    if (once === null) return this.credit(order);
    const kept = this.kept.get(once.name);
    if (kept !== undefined) return kept.body === once.body ? kept.told : "idempotency_conflict";
    const told = this.credit(order);
    if (typeof told !== "string") this.kept.set(once.name, { body: once.body, told });
    return told;
  }

  private credit({
    amountNanos: amount,
    id,
    kind = "top_up",
    receipt = null,
    reference = null,
  }: CreditArgument): Told {
    const account = this.account(id);
    const known = reference === null ? undefined : account.references.get(reference);
    const facts = [amount, kind, receipt].map(String).join(" ");
    if (known !== undefined && known.facts !== facts) return "reference_conflict";
    if (known !== undefined) return ["account", account.balance, account.held, known.after];
    if (account.balance + amount < account.held) return "not_possible";
    const reservation = receipt === null ? undefined : this.reservations.get(receipt);
    if (receipt !== null && reservation?.account !== id) return "not_found";
    if (reservation !== undefined) {
      const refunded = reservation.refunded + amount;
      if (refunded < 0n || refunded > reservation.charged) return "not_possible";
      reservation.refunded = refunded;
    }
    this.move(account, amount);
    if (reference !== null) account.references.set(reference, { facts, after: account.balance });
    return ["account", account.balance, account.held, account.balance];
  }

  private resolve(id: string, reservation: ModelReservation, state: "settled" | "expired"): void {
    const account = this.account(reservation.account);
    reservation.state = state;
    account.held -= reservation.reserved;
    account.balance -= reservation.charged;
    account.spent += reservation.charged;
    const { charged } = reservation;
    this.events.moved(reservation.account, account.balance + charged, account.balance);
    account.left = account.left < charged ? 0n : account.left - charged;
    const keyId = this.keyOf.get(id) ?? "";
    const { budget } = this.key(keyId);
    // What was admitted in a period that is over tells nothing of the present one.
    if (budget !== null && budget.begin === reservation.period) this.noteSpent(keyId);
  }

  private gate(key: ModelKey, nowMs: number): string | null {
    if (key.revoked) return "authentication";
    if (key.expiresAt !== null && key.expiresAt <= nowMs) return "key_expired";
    if (key.paused) return "key_paused";
    if (!this.account(key.account).active) return "account_disabled";
    return key.scopes.includes("generate") ? null : "key_scope";
  }

  /** By the prices of its admission, whatever they are now. */
  private cost(requestId: string, usage: NonNullable<SettleArgument["usage"]>): bigint {
    const prices = this.pricesOf.get(requestId);
    ensure(prices !== undefined, "prices of an admission", () => requestId);
    const { cachedInputTokens: cached, inputTokens: input, outputTokens: output } = usage;
    return costOf({ input, cached, output }, prices as TokenPrices);
  }

  /** When the last request ended; null: none has. */
  get lastEndedMs(): number | null {
    return this.ended.at(-1)?.atMs ?? null;
  }

  open(account: string): ModelReservation[] {
    return [...this.reservations.values()].filter(
      (one) => one.account === account && one.state === "open",
    );
  }

  account(id: string): ModelAccount {
    const account = this.accounts.get(id);
    ensure(account !== undefined, "an account of the plan", () => id);
    return account as ModelAccount;
  }

  private key(id: string): ModelKey {
    const key = this.keys.get(id);
    ensure(key !== undefined, "a key of the plan", () => id);
    return key as ModelKey;
  }
}

const dayMs = 86_400_000;

/** Tickets of a clock that was set back by more than a window are those ahead. */
function isInWindow(atMs: number, nowMs: number): boolean {
  return atMs > nowMs - 60_000 && atMs <= nowMs + 60_000;
}

function newestOf({ tickets }: ModelKey): number {
  return Math.max(...tickets.map(({ at }) => at), 0);
}

function startOfDay(nowMs: number): number {
  return nowMs - (nowMs % dayMs);
}

/** What operators set of an account: its version counts the changes of it. */
function accountFacts({
  active,
  grant,
  low,
  perMinute,
  priceList,
  slots,
  tokens,
}: ModelAccount): string {
  const granted = grant === null ? null : [grant.amountNanos, grant.carryOver];
  return [active, granted, low, perMinute, priceList, slots, tokens].map(String).join("|");
}

function keyFacts({ budget, expiresAt, paused, perMinute, scopes, tokens }: ModelKey): string {
  const budgeted = budget === null ? null : [budget.amountNanos, budget.period];
  return [budgeted, expiresAt, paused, perMinute, scopes.toSorted(), tokens].map(String).join("|");
}

function least(most: number, ...limits: readonly (number | null)[]): number {
  return Math.min(most, ...limits.filter((limit) => limit !== null));
}

function setLimits(of: ModelLimits, { outputTokensMax, requestsPerMinute }: LimitsArgument): void {
  if (requestsPerMinute !== undefined) of.perMinute = requestsPerMinute;
  if (outputTokensMax !== undefined) of.tokens = outputTokensMax;
}

interface LimitsArgument {
  readonly concurrentRequests?: number | null;
  readonly requestsPerMinute?: number | null;
  readonly outputTokensMax?: number | null;
}

interface PolicyArgument {
  readonly by?: { readonly ifVersion?: number | null };
  readonly grant?: GrantArgument | null;
  readonly id: string;
  readonly limits?: LimitsArgument;
  readonly lowBalanceNanos?: bigint;
  readonly priceList?: string;
  readonly budget?: BudgetArgument | null;
  readonly status?: string;
  readonly scopes?: readonly string[];
  readonly expiresAtMs?: number | null;
  readonly secretHash?: Uint8Array;
  readonly overlapMs?: number;
}

interface CreditArgument {
  readonly id: string;
  readonly amountNanos: bigint;
  readonly kind?: string;
  readonly reference?: string | null;
  readonly receipt?: string | null;
}
interface AuthorizeArgument {
  readonly keyId: string;
  readonly secretHash: Uint8Array;
  readonly ticketId: string | null;
  readonly needsCredit: boolean;
}

interface AdmitArgument {
  readonly requestId: string;
  readonly caller: {
    readonly accountId: string;
    readonly keyId: string;
    readonly ticket: string | null;
  };
  readonly inputBound: number;
  readonly outputTokensRequested: number | null;
  readonly outputTokensFitting: number | null;
  readonly label: string | null;
}

interface SettleArgument {
  readonly requestId: string;
  readonly outcome: string;
  readonly usage: {
    readonly inputTokens: number;
    readonly cachedInputTokens: number;
    readonly outputTokens: number;
    readonly reasoningTokens: number;
  } | null;
  readonly firstOutputMs: number | null;
  readonly totalMs: number | null;
}
