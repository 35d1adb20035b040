import type { AccountId, KeyId, RequestId } from "../../src/ledger/scalars.ts";
import {
  describePrices,
  openingPricesOf,
  type PriceHappening,
  priceHappeningOf,
} from "./prices.ts";
import { bookkeepingOf, type Bookkeeping } from "./bookkeeping.ts";
import { type CreditOnce, creditsOnceOf } from "./once.ts";
import { policiesOf, type PolicyChange, versionsOf } from "./policies.ts";
import { openSequence, type Sequence } from "./random.ts";
import type { PlannedQuestion } from "./usage-model.ts";

/** Everything that comes from outside in one run. Dropping any part of it leaves a plan. */
export interface Plan {
  /** Its requests and what befalls them are made for each other: no scene is added. */
  readonly staged: boolean;
  readonly rules: Rules;
  readonly replicas: number;
  readonly accounts: readonly AccountPlan[];
  readonly requests: readonly RequestPlan[];
  readonly incidents: readonly Incident[];
  /** Price lists that are there before the first request. */
  readonly prices: readonly PriceHappening[];
  /** What is asked of usage at its end. */
  readonly questions: readonly PlannedQuestion[];
  /** How often a call to the store goes wrong by itself, 0 to 1. */
  readonly weather: number;
  /** Of the clock on the wall, in milliseconds since 1970; periods end at midnight. */
  readonly startsAtMs: number;
}

/** How often replicas look for dead ones: seldomer than in the service, so that runs take fewer steps. */
export const deadAskMs = 5_000;

/** Settings of the service. */
export interface Rules {
  readonly inputNanosPerMillion: bigint;
  readonly outputNanosPerMillion: bigint;
  readonly concurrency: number;
  readonly perMinute: number;
  readonly leaseMs: number;
  readonly contextTokens: number | null;
}

export interface AccountPlan {
  readonly id: AccountId;
  readonly creditNanos: bigint;
  /** What its operator calls a low balance; null: nothing. */
  readonly lowNanos: bigint | null;
  readonly keys: readonly KeyPlan[];
  /** null: none. */
  readonly grant: GrantPlan | null;
}

/** So much at the begin of each day of UTC. */
export interface GrantPlan {
  readonly amountNanos: bigint;
  readonly carryOver: boolean;
}

export interface KeyPlan {
  readonly id: KeyId;
  /** As its caller presents it. */
  readonly presented: string;
  /** null: none. */
  readonly budget: BudgetPlan | null;
}

/** A budget in the days of UTC, or of all time. */
export interface BudgetPlan {
  readonly amountNanos: bigint;
  readonly period: "day" | "total";
}

/** What becomes of one call to the store. */
export type CallFault = "none" | "request-lost" | "reply-lost" | "twice" | "slow";

export interface RequestPlan {
  readonly id: RequestId;
  readonly atMs: number;
  readonly replica: number;
  readonly accountId: AccountId;
  readonly key: KeyPlan;
  /** Which of the key's secrets it presents: how many rotations there were until that one; absent: the first. */
  readonly secret?: number;
  readonly inputBound: number;
  readonly inputTokensEstimate: number;
  readonly requested: number | null;
  readonly label: string | null;
  readonly script: Script;
  /** After its arrival; null: the client stays to the end. */
  readonly leavesAfterMs: number | null;
  readonly admitFault: CallFault;
  /** One a try. */
  readonly settleFaults: readonly CallFault[];
}

/** What the deployment does with one request. */
export interface Script {
  readonly acceptAfterMs: number;
  readonly refuses: boolean;
  readonly batches: readonly Batch[];
  /** "silent": it never ends by itself. */
  readonly ending: "finished" | "failed" | "silent";
  /** The last usage. */
  readonly reported: Report | null;
  /** What the engine's tokenizer makes of the input. */
  readonly inputTokens: number;
  /** How many of them it says it had in its cache, also more than there are. */
  readonly cachedTokens: number;
  readonly charactersPerDelta: 1 | 3 | 40;
  readonly cancelTakesMs: number;
}

/** What an engine says of a number: how it is, or one of the ways in which it cannot be. */
export type FigureKind = "true" | "negative" | "fractional" | "missing" | "above" | "zero";

export interface Report {
  readonly input: Exclude<FigureKind, "zero">;
  readonly output: FigureKind;
}

export interface Batch {
  readonly afterMs: number;
  readonly deltas: number;
  readonly running: Report | null;
}

/** Moments in the life of a request at which something else can happen. */
export const phases = [
  "authorize-sent",
  "authorized",
  "admit-sent",
  "admit-done",
  "admitted",
  "accepted",
  "output",
  "settle-sent",
  "settle-done",
  "ended",
] as const;
export type Phase = (typeof phases)[number];

export interface Incident {
  readonly when:
    | { readonly atMs: number }
    | { readonly requestId: RequestId; readonly phase: Phase };
  readonly what: Happening;
}

export type Happening =
  | { readonly type: "credit"; readonly accountId: AccountId; readonly nanos: bigint }
  /** Takes back a part of what is not held, in per cent; more than 100 is refused. */
  | { readonly type: "takeback"; readonly accountId: AccountId; readonly percent: number }
  /** A payment under a name of another system; sent again it credits nothing, with another amount it is refused. */
  | {
      readonly type: "top-up";
      readonly accountId: AccountId;
      readonly nanos: bigint;
      readonly reference: string;
    }
  | CreditOnce
  /** Gives back a part of what a request was charged, in per cent; negative: takes back a part of that. */
  | { readonly type: "refund"; readonly requestId: RequestId; readonly percent: number }
  | { readonly type: "revoke"; readonly keyId: KeyId }
  | { readonly type: "disable" | "enable"; readonly accountId: AccountId }
  | { readonly type: "cancel"; readonly requestId: RequestId }
  /** Its client goes away. */
  | { readonly type: "leave"; readonly requestId: RequestId }
  | PriceHappening
  | { readonly type: "budget"; readonly keyId: KeyId; readonly budget: BudgetPlan | null }
  | PolicyChange
  | Bookkeeping
  | { readonly type: "grant"; readonly accountId: AccountId; readonly grant: GrantPlan | null }
  | { readonly type: "clock-jump"; readonly byMs: number }
  | { readonly type: "crash"; readonly replica: number; readonly restartAfterMs: number | null }
  | { readonly type: "freeze"; readonly replica: number; readonly forMs: number }
  /** The machine stands still, and with it the clock that never jumps. */
  | { readonly type: "suspend"; readonly replica: number; readonly forMs: number }
  /** It lives, works and reaches the store, but cannot say that it lives. */
  | { readonly type: "unheard"; readonly replica: number; readonly forMs: number }
  /** Brings the balance to exactly what is called low, where that can be. */
  | { readonly type: "to-the-line"; readonly accountId: AccountId; readonly lowNanos: bigint }
  /** What has happened is given out, by one of two deliverers. */
  | { readonly type: "give-out"; readonly holder: string }
  /** For one replica, or for all. */
  | {
      readonly type: "store-away";
      readonly from: number | null;
      readonly forMs: number;
      readonly repliesOnly: boolean;
    }
  | { readonly type: "drain"; readonly replica: number; readonly restartAfterMs: number };

const dayMs = 86_400_000;

/** The same with requests that arrive a few together, at one replica, most often of one key: they share what the store shares. */
export function inClumps(random: Sequence, plan: Plan): Plan {
  let [left, atMs, replica] = [0, 0, 0];
  let payer: Pick<RequestPlan, "accountId" | "key"> | null = null;
  const requests = plan.requests
    .toSorted((one, other) => one.atMs - other.atMs)
    .map((request) => {
      if (left === 0) {
        left = random.between(2, 5);
        ({ atMs, replica } = request);
        const { accountId, key } = request;
        payer = random.chance(0.6) ? { accountId, key } : null;
      }
      left -= 1;
      return { ...request, ...payer, atMs, replica };
    });
  return { ...plan, requests };
}

/** The plan of a seed. */
export function planOf(seed: number): Plan {
  const random = openSequence(seed);
  // Answers that take longer than a lease, and trouble that does.
  const long = random.chance(0.25);
  // One key and many requests, more than its rate allows, over longer than the rate's window.
  const busy = !long && random.chance(0.15);
  const rules = { ...rulesOf(random), ...(busy ? { perMinute: 2 } : {}) };
  // Where one stands still, another goes on taking tickets.
  const replicas = random.between(busy ? 2 : 1, 3);
  const eventful = openSequence(seed + 4_000_037);
  const accounts = (busy ? accountsOf(random).slice(0, 1) : accountsOf(random)).map((account) => ({
    ...account,
    lowNanos: lowOf(eventful, account.creditNanos),
  }));
  const count = busy ? random.between(9, 14) : random.between(2, 9);
  const spanMs = spanOf(random, long, busy);
  const requests: RequestPlan[] = [];
  for (let index = 0; index < count; index += 1)
    requests.push(requestOf(random, { accounts, index, long, replicas, spanMs }));
  const incidents: Incident[] = [];
  if (busy) incidents.push(stopOnTheWay(random, requests));
  for (let left = random.between(0, 5); left > 0; left -= 1)
    incidents.push(incidentOf(random, { accounts, long, requests, replicas, spanMs }));
  incidents.push(...cancelsOf(openSequence(seed + 1_000_003), requests));
  const prices = openingPricesOf(seed, accounts);
  if (prices.length > 0)
    incidents.push(...priceChangesOf(openSequence(seed + 3_000_017), requests));
  const policies = policiesOf(openSequence(seed + 5_000_011), { accounts, requests, spanMs });
  incidents.push(...givingOutOf(eventful, { requests, accounts, spanMs }));
  incidents.push(...creditsOf(openSequence(seed + 1_000_033), requests));
  incidents.push(...creditsOnceOf(openSequence(seed + 11_000_027), requests, spanMs));
  incidents.push(...versionsOf(openSequence(seed + 12_000_017), requests));
  const plan: Plan = {
    staged: busy,
    rules,
    replicas,
    accounts,
    requests: withCachedInput(openSequence(seed + 9_000_011), policies.requests),
    incidents: [...incidents, ...policies.incidents],
    prices,
    questions: [],
    weather: random.chance(0.5) ? 0 : random.pick([0.02, 0.1]),
    startsAtMs: 1_800_000_000_000,
  };
  const budgeted = withBudgets(openSequence(seed + 8_000_009), plan, spanMs);
  const granted = withGrants(openSequence(seed + 6_000_011), budgeted);
  const books = bookkeepingOf(openSequence(seed + 10_000_019), { ...granted, spanMs });
  return {
    ...granted,
    incidents: [...granted.incidents, ...books.incidents],
    questions: books.questions,
  };
}

/** Some accounts are granted credit each day; a sequence of its own. */
function withGrants(random: Sequence, plan: Plan): Plan {
  if (!random.chance(0.4)) return plan;
  const grantOf = (): GrantPlan => ({
    amountNanos: BigInt(random.pick([1, 2, 5, 20]) * 1_000_000 + random.between(0, 999)),
    carryOver: random.chance(0.3),
  });
  const accounts = plan.accounts.map((account) => ({
    ...account,
    grant: random.chance(0.8) ? grantOf() : null,
  }));
  const incidents = [...plan.incidents];
  // Taken away and given again within a day, too.
  for (let left = random.pick([0, 0, 1, 2, 4]); left > 0; left -= 1) {
    const { accountId, id } = random.pick(plan.requests);
    const grant = random.chance(0.4) ? null : grantOf();
    const when = { requestId: id, phase: random.pick(phases) };
    incidents.push({ when, what: { type: "grant", accountId, grant } });
  }
  return withMidnight(random, { ...plan, accounts, incidents });
}

/** Some keys get budgets, which end a period in the run; a sequence of its own, which moves nothing else of the plan. */
function withBudgets(random: Sequence, plan: Plan, spanMs: number): Plan {
  if (!random.chance(0.5)) return plan;
  const budgetOf = (): BudgetPlan => ({
    // In thousandths of a credit, as the credit of accounts: some requests fit, some do not.
    amountNanos: BigInt(random.pick([0, 1, 2, 4, 8, 20]) * 1_000_000 + random.between(0, 999)),
    period: random.chance(0.7) ? "day" : "total",
  });
  const accounts = plan.accounts.map((account) => ({
    ...account,
    keys: account.keys.map((key) => ({ ...key, budget: random.chance(0.7) ? budgetOf() : null })),
  }));
  const keys = new Map(accounts.flatMap((account) => account.keys.map((key) => [key.id, key])));
  const requests = plan.requests.map((one) => ({ ...one, key: keys.get(one.key.id) ?? one.key }));
  const incidents = [...plan.incidents];
  for (let left = random.between(0, 2); left > 0; left -= 1) {
    const { id, key } = random.pick(requests);
    const budget = random.chance(0.2) ? null : budgetOf();
    const when = { requestId: id, phase: random.pick(phases) };
    incidents.push({ when, what: { type: "budget", keyId: key.id, budget } });
  }
  // Often a midnight in the middle of the run.
  const midnightMs = random.chance(0.6) ? random.between(1, spanMs + 30_000) : dayMs / 2;
  const startsAtMs = Math.ceil(plan.startsAtMs / dayMs) * dayMs - midnightMs;
  return { ...plan, accounts, requests, incidents, startsAtMs };
}

/** Often a midnight in the middle of the run, and around it requests of one key. */
function withMidnight(random: Sequence, plan: Plan): Plan {
  if (!random.chance(0.7)) return plan;
  const { atMs, key } = random.pick(plan.requests);
  const midnightMs = atMs + random.between(1, 4_000);
  const requests = plan.requests.map((one) =>
    one.key.id === key.id && random.chance(0.6)
      ? { ...one, atMs: Math.max(midnightMs + random.between(-2_000, 1_000), 0) }
      : one,
  );
  const startsAtMs = Math.ceil(plan.startsAtMs / dayMs) * dayMs - midnightMs;
  return { ...plan, requests, startsAtMs };
}

/** A low balance that the account may cross, from above or from below. */
function lowOf(random: Sequence, creditNanos: bigint): bigint | null {
  if (random.chance(0.3)) return null;
  return (creditNanos * BigInt(random.pick([50, 90, 99, 100, 101, 150]))) / 100n;
}

/** Looks at the outbox, and credit that goes up and down where the balance is low; a sequence of its own. */
function givingOutOf(
  random: Sequence,
  {
    accounts,
    requests,
    spanMs,
  }: {
    readonly accounts: readonly AccountPlan[];
    readonly requests: readonly RequestPlan[];
    readonly spanMs: number;
  },
): Incident[] {
  const what: Happening[] = [];
  for (let left = random.between(0, 3); left > 0; left -= 1)
    what.push({ type: "give-out", holder: random.pick(["one", "two"]) });
  if (random.chance(0.4)) {
    const { creditNanos, id: accountId, lowNanos } = random.pick(accounts);
    for (let left = random.between(1, 6); left > 0; left -= 1)
      if (lowNanos !== null && random.chance(0.4))
        what.push({ type: "to-the-line", accountId, lowNanos });
      else
        what.push(
          random.chance(0.5)
            ? { type: "takeback", accountId, percent: random.pick([1, 10, 60]) }
            : {
                type: "credit",
                accountId,
                nanos: creditNanos / BigInt(random.between(2, 20)) + 1n,
              },
        );
  }
  return what.map((one) => ({
    when: random.chance(0.5)
      ? { requestId: random.pick(requests).id, phase: random.pick(phases) }
      : { atMs: random.between(0, spanMs + 30_000) },
    what: one,
  }));
}

/** An operator cancels a request; a sequence of its own, which moves nothing else of the plan. */
function cancelsOf(random: Sequence, requests: readonly RequestPlan[]): Incident[] {
  if (!random.chance(0.3)) return [];
  const { id: requestId } = random.pick(requests);
  const phase = random.pick([...phases, "admitted", "accepted", "output", "output"] as const);
  return [{ when: { requestId, phase }, what: { type: "cancel", requestId } }];
}

/** Operators change prices in any moment of a request; a sequence of its own, too. */
function priceChangesOf(random: Sequence, requests: readonly RequestPlan[]): Incident[] {
  return Array.from({ length: random.between(0, 4) }, () => {
    const { accountId, id: requestId } = random.pick(requests);
    const what = priceHappeningOf(random, accountId);
    return { when: { requestId, phase: random.pick(phases) }, what };
  });
}

function withCachedInput(random: Sequence, requests: readonly RequestPlan[]): RequestPlan[] {
  return requests.map((request) => {
    const { script } = request;
    const { inputTokens } = script;
    const cachedTokens = random.pick([
      0,
      random.between(1, inputTokens),
      inputTokens,
      inputTokens + 9,
    ]);
    return { ...request, script: { ...script, cachedTokens } };
  });
}

/** Payments that arrive more than once and refunds that come too often; a sequence of their own. */
function creditsOf(random: Sequence, requests: readonly RequestPlan[]): Incident[] {
  const incidents: Incident[] = [];
  for (let left = random.pick([0, 0, 2, 5]); left > 0; left -= 1) {
    const { accountId, id: requestId } = random.pick(requests);
    const when = {
      requestId,
      phase: random.pick(["settle-sent", "settle-done", "ended"] as const),
    };
    // Few names and amounts, so that they meet, also in two accounts.
    const reference = random.pick(["pi_1", "pi_2"]);
    const nanos = random.pick([700_001n, 700_001n, 5_000n]);
    const percent = random.pick([40, 40, 70, 100, -30]);
    incidents.push({ when, what: { type: "top-up", accountId, nanos, reference } });
    incidents.push({ when, what: { type: "refund", requestId, percent } });
  }
  return incidents;
}

/** A replica stands still with a call on its way, for longer than the rate's window and until others have filled the next. */
function stopOnTheWay(random: Sequence, requests: readonly RequestPlan[]): Incident {
  const early = requests.toSorted((one, other) => one.atMs - other.atMs).slice(0, 3);
  const { id, replica } = random.pick(early);
  return {
    when: { requestId: id, phase: random.pick(["authorize-sent", "authorize-sent", "admit-sent"]) },
    what: { type: "freeze", replica, forMs: random.between(75_000, 110_000) },
  };
}

function spanOf(random: Sequence, long: boolean, busy: boolean): number {
  if (busy) return 180_000;
  return random.pick(long ? [30_000, 90_000, 150_000] : [10, 3_000, 30_000, 90_000]);
}

function rulesOf(random: Sequence): Rules {
  const [inputNanosPerMillion, outputNanosPerMillion] = random.pick([
    [1_000_000_000n, 4_000_000_000n],
    [333_333_333n, 1_234_567_891n],
    [70_000_001n, 290_000_003n],
    [999_999n, 1n],
  ] as const);
  return {
    inputNanosPerMillion,
    outputNanosPerMillion,
    concurrency: random.pick([1, 2, 2, 4]),
    perMinute: random.pick([2, 3, 600]),
    leaseMs: 60_000,
    contextTokens: random.pick([null, null, 600]),
  };
}

function accountsOf(random: Sequence): Omit<AccountPlan, "lowNanos">[] {
  const names = random.chance(0.4) ? ["A", "B"] : ["A"];
  return names.map((name) => ({
    id: `acct_${name}` as const,
    // In thousandths of a credit: some requests fit, some do not.
    creditNanos:
      BigInt(random.pick([0, 1, 3, 8, 40, 500])) * 1_000_000n + BigInt(random.between(0, 999)),
    keys: (random.chance(0.4) ? ["1", "2"] : ["1"]).map((key) => ({
      id: `key_${name}${key}` as const,
      presented: `trib_${name}_${name}${key}_${name.repeat(42)}${key}`,
      budget: null,
    })),
    grant: null,
  }));
}

interface Surroundings {
  readonly accounts: readonly AccountPlan[];
  readonly replicas: number;
  readonly spanMs: number;
  readonly long: boolean;
}

function requestOf(
  random: Sequence,
  around: Surroundings & { readonly index: number },
): RequestPlan {
  const account = random.pick(around.accounts);
  const bytes = random.between(1, 1_200);
  const silent = random.chance(0.08);
  const slow = random.chance(around.long ? 0.8 : 0.2);
  return {
    id: `req_${String(around.index + 1)}`,
    atMs: random.between(0, around.spanMs),
    replica: random.between(0, around.replicas - 1),
    accountId: account.id,
    key: random.pick(account.keys),
    inputBound: bytes + 80,
    inputTokensEstimate: Math.ceil(bytes / 4),
    requested: random.pick([null, null, 1, 50, 400, 2_000]),
    label: bytes % 3 === 0 ? null : `user ${String(bytes % 4)}`,
    script: scriptOf(random, { silent, slow }),
    leavesAfterMs:
      silent || random.chance(0.3)
        ? random.pick([0, 3, 20, 300, 2_000, slow || silent ? 90_000 : 5_000])
        : null,
    admitFault: faultOf(random, 0.15),
    settleFaults: [faultOf(random, 0.3), faultOf(random, 0.15), faultOf(random, 0.1)],
  };
}

function faultOf(random: Sequence, probability: number): CallFault {
  return random.chance(probability)
    ? random.pick(["request-lost", "reply-lost", "twice", "slow"] as const)
    : "none";
}

function scriptOf(
  random: Sequence,
  { silent, slow }: { readonly silent: boolean; readonly slow: boolean },
): Script {
  const engineCounts = random.chance(0.4);
  const batches: Batch[] = [];
  for (let left = random.between(slow ? 2 : 0, slow ? 6 : 4); left > 0; left -= 1) {
    batches.push({
      afterMs: slow ? random.between(5_000, 45_000) : random.between(0, 200),
      deltas: random.between(0, 6),
      running: engineCounts ? reportOf(random) : null,
    });
  }
  return {
    acceptAfterMs: random.pick([0, 5, 50, 1_500]),
    refuses: random.chance(0.08),
    batches,
    ending: silent ? "silent" : random.chance(0.15) ? "failed" : "finished",
    reported: random.chance(0.2) ? null : reportOf(random),
    inputTokens: random.between(1, 80),
    cachedTokens: 0,
    charactersPerDelta: random.pick([1, 3, 3, 40] as const),
    cancelTakesMs: random.pick([0, 0, 4, 700]),
  };
}

function reportOf(random: Sequence): Report {
  return {
    input: random.pick(["true", "true", "true", "negative", "fractional", "missing", "above"]),
    output: random.pick([
      "true",
      "true",
      "true",
      "negative",
      "fractional",
      "missing",
      "above",
      "zero",
    ]),
  };
}

function incidentOf(
  random: Sequence,
  around: Surroundings & { readonly requests: readonly RequestPlan[] },
): Incident {
  const request = random.pick(around.requests);
  const account = random.pick(around.accounts);
  const atPhase = random.chance(0.7);
  const replica = atPhase ? request.replica : random.between(0, around.replicas - 1);
  const restartAfterMs = random.pick([0, 2_000, 50_000]);
  const accountId = random.chance(0.7) ? request.accountId : account.id;
  const long = around.long && random.chance(0.6);
  const what = random.pick<() => Happening>(
    long
      ? [
          () => ({
            type: "store-away",
            from: replica,
            forMs: random.pick([70_000, 150_000]),
            repliesOnly: random.chance(0.5),
          }),
          () => ({ type: "freeze", replica, forMs: random.pick([61_000, 75_000, 140_000]) }),
          () => ({ type: "suspend", replica, forMs: random.pick([61_000, 75_000, 140_000]) }),
          () => ({ type: "unheard", replica, forMs: random.pick([0, 15_000, 25_000]) }),
          () => ({ type: "unheard", replica, forMs: random.pick([15_000, 25_000]) }),
        ]
      : [
          () => ({ type: "credit", accountId, nanos: BigInt(random.between(1, 5_000_000)) }),
          () => ({ type: "credit", accountId, nanos: BigInt(random.between(1, 5_000_000)) }),
          () => ({ type: "takeback", accountId, percent: random.pick([30, 100, 100, 120]) }),
          () => ({ type: "revoke", keyId: random.pick(account.keys).id }),
          () => ({ type: random.pick(["disable", "enable"] as const), accountId }),
          () => ({
            type: "clock-jump",
            byMs: random.pick([-200_000, -20_000, 5_000, 61_000, 400_000]),
          }),
          () => ({
            type: "crash",
            replica,
            restartAfterMs: random.chance(0.2) ? null : restartAfterMs,
          }),
          () => ({
            type: "crash",
            replica,
            restartAfterMs: random.chance(0.2) ? null : restartAfterMs,
          }),
          () => ({
            type: "freeze",
            replica,
            forMs: random.pick([300, 30_000, 61_000, 75_000, 140_000]),
          }),
          () => ({ type: "freeze", replica, forMs: random.pick([61_000, 75_000, 140_000]) }),
          () => ({
            type: "store-away",
            from: random.chance(0.6) ? replica : null,
            forMs: random.pick([100, 3_000, 70_000, 150_000]),
            repliesOnly: random.chance(0.5),
          }),
          () => ({ type: "drain", replica, restartAfterMs }),
          () => ({ type: "suspend", replica, forMs: random.pick([2_000, 75_000, 140_000]) }),
          () => ({ type: "unheard", replica, forMs: random.pick([0, 15_000, 25_000]) }),
        ],
  )();
  return {
    when: atPhase
      ? { requestId: request.id, phase: random.pick(phases) }
      : { atMs: random.between(0, around.spanMs + 60_000) },
    what,
  };
}

/** What a reader of a trace has to know beforehand. */
export function prefaceOf({ accounts, prices, requests, rules }: Plan): string[] {
  const { concurrency, inputNanosPerMillion, outputNanosPerMillion, perMinute } = rules;
  return [
    `rules       ${String(inputNanosPerMillion)} and ${String(outputNanosPerMillion)} nanos a million tokens, ${String(concurrency)} at once, ${String(perMinute)} a minute`,
    ...accounts.map(({ creditNanos, id }) => `account     ${id} with ${String(creditNanos)} nanos`),
    ...prices.map((what) => `prices      ${describePrices(what)}`),
    ...accounts.flatMap(({ grant, id }) =>
      grant === null
        ? []
        : [
            `grant       ${id} of ${String(grant.amountNanos)} nanos a day${grant.carryOver ? ", carried over" : ""}`,
          ],
    ),
    ...accounts.flatMap(({ keys }) =>
      keys.flatMap(({ budget, id }) =>
        budget === null
          ? []
          : [`budget      ${id} has ${String(budget.amountNanos)} nanos a ${budget.period}`],
      ),
    ),
    ...requests.map(
      ({ id, inputBound, key, requested }) =>
        `request     ${id} of ${key.id}: bound ${String(inputBound)}, asks for ${requested === null ? "what it can get" : String(requested)}`,
    ),
  ];
}
