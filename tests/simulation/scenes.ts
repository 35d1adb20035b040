import {
  type AccountPlan,
  type BudgetPlan,
  type GrantPlan,
  type Happening,
  type Incident,
  type KeyPlan,
  type Phase,
  type Plan,
  phases,
  type RequestPlan,
} from "./plan.ts";
import { costOf } from "./prices.ts";
import type { Sequence } from "./random.ts";

const dayMs = 86_400_000;

/** Adds to a plan what by chance alone hardly meets in one: a few requests, and the trouble that is theirs. */
export function withScenes(random: Sequence, plan: Plan): Plan {
  if (plan.staged) return plan;
  const left = [...scenes];
  let played = plan;
  for (let count = random.pick([1, 1, 2, 2]); count > 0; count -= 1) {
    const scene = random.pick(left);
    left.splice(left.indexOf(scene), 1);
    played = scene(random, played);
  }
  return played;
}

type Scene = (random: Sequence, plan: Plan) => Plan;

const scenes: readonly Scene[] = [
  cancelledAlone,
  cutOff,
  stopped,
  stopped,
  leaving,
  clockAhead,
  clockBack,
  overMidnight,
  emptied,
  spentBudget,
  endingKey,
  grantedAnew,
  crowd,
];

/** What an operator cancels is the only thing that its replica runs. */
function cancelledAlone(random: Sequence, plan: Plan): Plan {
  const { long, request } = withLongRequest(random, plan);
  const phase = random.pick<Phase>(["admitted", "accepted", "output", "output"]);
  const calm = random.chance(0.8) ? untroubled(long, request) : long;
  return withIncidents(calm, at(request, phase, { type: "cancel", requestId: request.id }));
}

/** A replica is away from its store for longer than its leases, while its request goes on. */
function cutOff(random: Sequence, plan: Plan): Plan {
  const { long, request } = withLongRequest(random, withOthers(plan), talkative);
  const phase = random.pick<Phase>(["accepted", "output"]);
  return withIncidents(
    untroubled(long, request),
    at(request, phase, {
      type: "store-away",
      from: request.replica,
      forMs: random.pick([70_000, 150_000, 150_000]),
      repliesOnly: random.chance(0.3),
    }),
  );
}

/** A replica stands still, or cannot say that it lives, while its request has more to say. */
function stopped(random: Sequence, plan: Plan): Plan {
  const { long, request } = withLongRequest(random, withOthers(plan), talkative);
  const { replica } = request;
  const what = random.pick<Happening>([
    { type: "suspend", replica, forMs: random.pick([61_000, 75_000, 140_000]) },
    { type: "suspend", replica, forMs: random.pick([61_000, 75_000, 140_000]) },
    { type: "freeze", replica, forMs: random.pick([61_000, 75_000, 140_000]) },
    { type: "unheard", replica, forMs: random.pick([0, 15_000, 25_000]) },
    { type: "unheard", replica, forMs: random.pick([15_000, 25_000]) },
  ]);
  const phase = random.pick<Phase>(["admitted", "accepted", "output"]);
  return withIncidents(untroubled(long, request), at(request, phase, what));
}

const beforeAdmitted = ["admit-sent", "admit-sent", "admit-sent", "admit-done"] as const;

/** Clients leave in a named moment of their requests. */
function leaving(random: Sequence, plan: Plan): Plan {
  const incidents = Array.from({ length: random.between(1, 3) }, () => {
    const request = random.pick(plan.requests);
    const phase = random.pick<Phase>([...beforeAdmitted, ...beforeAdmitted, ...phases]);
    return at(request, phase, { type: "leave", requestId: request.id });
  });
  return withIncidents(plan, ...incidents);
}

/** A lease begins while the clock is far ahead. */
function clockAhead(random: Sequence, plan: Plan): Plan {
  const { long, request } = withLongRequest(random, withOthers(plan));
  const byMs = 400_000;
  const { replica } = request;
  return withIncidents(
    long,
    at(request, "authorize-sent", { type: "clock-jump", byMs }),
    at(request, random.pick(["admitted", "accepted"]), { type: "clock-jump", byMs: -byMs }),
    ...(random.chance(0.4)
      ? [at(request, "output", { type: "crash", replica, restartAfterMs: null })]
      : []),
  );
}

/** The clock is set back by more than the window of a rate, in which a key has tickets, and comes to where it was. */
function clockBack(random: Sequence, plan: Plan): Plan {
  const first = random.pick(plan.requests);
  const byMs = -random.pick([65_000, 90_000, 200_000]);
  const later = -byMs - 60_000 + random.between(-5_000, 40_000);
  const requests = plan.requests.map((one) => {
    if (one === first || one.key.id !== first.key.id) return one;
    return { ...one, atMs: first.atMs + Math.max(later, 1_000) + random.between(0, 5_000) };
  });
  const phase = random.pick<Phase>(["authorized", "admitted", "ended"]);
  return withIncidents({ ...plan, requests }, at(first, phase, { type: "clock-jump", byMs }));
}

/** A request of a key with a budget ends in the period after its own, which another one has begun meanwhile. */
function overMidnight(random: Sequence, plan: Plan): Plan {
  const { long, request } = withLongRequest(random, plan);
  const budget = {
    amountNanos: BigInt(random.between(20, 400)) * 1_000_000n,
    period: "day",
  } as const;
  const midnightMs = request.atMs + random.between(1_000, 12_000);
  const budgeted = withBudget(long, request.key.id, budget);
  const others = budgeted.requests.filter(
    ({ id, key }) => id !== request.id && key.id === request.key.id,
  );
  const second = others.length === 0 ? null : random.pick(others);
  const requests = budgeted.requests.map((one) =>
    one === second ? { ...one, atMs: midnightMs + random.between(10, 3_000), requested: 1 } : one,
  );
  return { ...budgeted, requests, startsAtMs: startOf(plan, midnightMs) };
}

/** Requests that an account cannot pay for, credit that is not enough either, and more requests. */
function emptied(random: Sequence, plan: Plan): Plan {
  const { accountId } = random.pick(plan.requests);
  const accounts = plan.accounts.map((account) =>
    account.id === accountId
      ? { ...account, grant: null, creditNanos: BigInt(random.between(0, 900)) }
      : account,
  );
  const turnMs = 3_000;
  let turn = 0;
  const incidents: Incident[] = [];
  const requests = plan.requests.map((one) => {
    if (one.accountId !== accountId) return one;
    turn += 1;
    if (random.chance(0.6))
      incidents.push({
        when: { atMs: turn * turnMs + random.between(1_000, 2_500) },
        what: { type: "credit", accountId, nanos: BigInt(random.between(1, 900)) },
      });
    return { ...one, atMs: turn * turnMs, requested: random.pick([400, 2_000]) };
  });
  return withIncidents({ ...plan, accounts, requests }, ...incidents);
}

/**
 * Requests that cost what they reserve spend the budget of a key to the last, step by step or at once, in one period and
 * most often in the next.
 */
function spentBudget(random: Sequence, plan: Plan): Plan {
  const { accountId, key } = random.pick(plan.requests);
  const costNanos = costOfExact(plan);
  const hundredth = (costNanos + 99n) / 100n;
  const budgetOf = (): BudgetPlan => ({
    amountNanos: random.pick([
      ...[100n, 103n, 110n, 124n, 126n, 200n, 210n].map((share) => hundredth * share),
      // A large one and then some small ones, which is all of it.
      ...[1n, 1n, 1n, 2n].map((count) => costNanos + count * costOfExact(plan, smallOutput)),
    ]),
    period: random.chance(0.8) ? "day" : "total",
  });
  const budget = budgetOf();
  const enough = withRequests({ ...plan, prices: [] }, accountId, 5);
  const budgeted = withBudget(enough, key.id, budget);
  const turnMs = 4_000;
  const turns = budgeted.requests.filter((one) => one.accountId === accountId).length;
  const lastOfDay = random.between(1, turns - 1);
  let turn = 0;
  const requests = budgeted.requests.map((one): RequestPlan => {
    if (one.accountId !== accountId) return one;
    turn += 1;
    const turned = { ...exact(one), key: { ...key, budget }, atMs: turn * turnMs };
    // A large one first in each period; when most is spent most often a small one, which a large one after it would not be.
    const place = turn > lastOfDay ? turn - lastOfDay : turn;
    const requested = random.pick([1, smallOutput, smallOutput, smallOutput]);
    return place > 1 && random.chance(place === 2 ? 0.9 : 0.5) ? { ...turned, requested } : turned;
  });
  const again: Incident = {
    when: { atMs: turnMs * random.between(1, turn) + random.pick([2_000, 3_000]) },
    what: { type: "budget", keyId: key.id, budget: random.chance(0.2) ? null : budgetOf() },
  };
  const midnightMs = lastOfDay * turnMs + 2_500;
  const played = {
    ...budgeted,
    accounts: budgeted.accounts.map((one) => (one.id === accountId ? ample(one) : one)),
    requests,
    startsAtMs: startOf(plan, random.chance(0.7) ? midnightMs : dayMs / 2),
  };
  const taken = random.chance(0.8) ? withoutTrouble(withoutRefusals(played)) : played;
  return random.chance(0.5) ? withIncidents(taken, again) : taken;
}

const exactTokens = { input: 4, output: 50 };
/** As many as the deployment's smallest piece has; of fewer it says nothing. */
const smallOutput = 10;

/** A request that is charged what it reserves, at the prices of the settings. */
function exact(one: RequestPlan): RequestPlan {
  return {
    ...one,
    requested: exactTokens.output,
    inputBound: exactTokens.input,
    inputTokensEstimate: exactTokens.input,
    admitFault: "none",
    leavesAfterMs: null,
    script: {
      ...one.script,
      acceptAfterMs: 5,
      refuses: false,
      inputTokens: exactTokens.input,
      cachedTokens: 0,
      charactersPerDelta: 40,
      batches: [{ afterMs: 20, deltas: 6, running: null }],
      ending: "finished",
      reported: null,
    },
  };
}

function costOfExact({ rules }: Plan, output = exactTokens.output): bigint {
  const { inputNanosPerMillion, outputNanosPerMillion } = rules;
  return costOf(
    { ...exactTokens, output, cached: 0 },
    { input: inputNanosPerMillion, cached: null, output: outputNanosPerMillion },
  );
}

/** Requests of one key at one moment, of which a budget, the credit or the places hold one or two. */
function crowd(random: Sequence, few: Plan): Plan {
  const { accountId, atMs, key, replica } = random.pick(few.requests);
  const plan = withRequests(few, accountId, 4);
  const held = (costOfExact(plan) * BigInt(random.pick([110, 210]))) / 100n;
  const tight = random.pick(["budget", "credit", "places"] as const);
  const requests = plan.requests.map((one) =>
    one.accountId === accountId ? { ...exact(one), key, replica, atMs } : one,
  );
  const free = withoutRefusals({ ...plan, requests, prices: [] });
  const accounts = free.accounts.map((account) => {
    if (account.id !== accountId) return account;
    return tight === "credit" ? { ...account, creditNanos: held, grant: null } : ample(account);
  });
  const concurrency = tight === "places" ? random.between(1, 2) : 8;
  const crowded = { ...free, accounts, rules: { ...free.rules, concurrency } };
  const budget: BudgetPlan = { amountNanos: held, period: random.pick(["day", "total"]) };
  return tight === "budget" ? withBudget(crowded, key.id, budget) : crowded;
}

/** A key that ends within a day is announced again and again, and gets another end. */
function endingKey(random: Sequence, plan: Plan): Plan {
  const { key } = random.pick(plan.requests);
  const what: Happening[] = [];
  for (let left = random.between(1, 2); left > 0; left -= 1) {
    const expiresInMs = random.pick([30_000, 3_600_000, dayMs, dayMs + 40_000]);
    what.push({ type: "change-key", keyId: key.id, patch: { expiresInMs } });
    for (let looks = random.between(1, 3); looks > 0; looks -= 1) what.push({ type: "announce" });
  }
  const incidents = what.map((one, index) => ({ when: { atMs: 500 + index * 9_000 }, what: one }));
  return withIncidents(plan, ...incidents);
}

/** A grant is changed between the begin of a day and what pays it, and taken away and given again within the day. */
function grantedAnew(random: Sequence, plan: Plan): Plan {
  const { accountId } = random.pick(plan.requests);
  const grantOf = (): GrantPlan => ({
    amountNanos: BigInt(random.between(1, 9)) * 1_000_000n,
    carryOver: random.chance(0.4),
  });
  const midnightMs = random.between(1_000, 15_000);
  const changes = [grantOf(), random.chance(0.5) ? null : grantOf(), grantOf()];
  const incidents = changes.map((grant, index): Incident => ({
    when: { atMs: midnightMs + 50 + index * 1_500 },
    what: { type: "grant", accountId, grant },
  }));
  const accounts = plan.accounts.map((account) =>
    account.id === accountId ? { ...account, grant: grantOf() } : account,
  );
  return withIncidents({ ...plan, accounts, startsAtMs: startOf(plan, midnightMs) }, ...incidents);
}

function withBudget(plan: Plan, keyId: string, budget: BudgetPlan): Plan {
  const keyed = (key: KeyPlan): KeyPlan => (key.id === keyId ? { ...key, budget } : key);
  return {
    ...plan,
    accounts: plan.accounts.map((account) => ({ ...account, keys: account.keys.map(keyed) })),
    requests: plan.requests.map((one) => ({ ...one, key: keyed(one.key) })),
  };
}

/** When a run starts whose midnight is so long after. */
function startOf({ startsAtMs }: Plan, midnightMs: number): number {
  return Math.ceil(startsAtMs / dayMs) * dayMs - midnightMs;
}

/** Output every few seconds, for longer than a lease and what befalls it. */
const talkative: {
  readonly atLeast: number;
  readonly atMost: number;
  readonly afterMs: readonly [number, number];
} = { atLeast: 12, atMost: 20, afterMs: [4_000, 12_000] };

/** One request of the plan becomes the first, runs for a minute or two, and its account can pay for it. */
function withLongRequest(
  random: Sequence,
  plan: Plan,
  says: typeof talkative = { atLeast: 4, atMost: 7, afterMs: [5_000, 28_000] },
): { readonly long: Plan; readonly request: RequestPlan } {
  const picked = random.pick(plan.requests);
  const silent = random.chance(0.3);
  const request: RequestPlan = {
    ...picked,
    atMs: random.between(0, 200),
    requested: random.pick([null, 400]),
    leavesAfterMs: silent ? 160_000 : null,
    admitFault: "none",
    script: {
      ...picked.script,
      acceptAfterMs: 5,
      refuses: false,
      batches: Array.from({ length: random.between(says.atLeast, says.atMost) }, () => ({
        afterMs: random.between(...says.afterMs),
        deltas: random.between(1, 6),
        running: null,
      })),
      ending: silent ? "silent" : "finished",
    },
  };
  const accounts = plan.accounts.map((account) =>
    account.id === request.accountId ? ample(account) : account,
  );
  const apart = plan.replicas > 1 && random.chance(0.7);
  const requests = plan.requests.map((one) => {
    if (one === picked) return request;
    const replica = (request.replica + 1) % plan.replicas;
    return apart && one.replica === request.replica ? { ...one, replica } : one;
  });
  const long = { ...plan, accounts, requests };
  return { long: random.chance(0.7) ? withoutRefusals(long) : long, request };
}

function ample(account: AccountPlan): AccountPlan {
  const creditNanos = 800_000_000n;
  return account.creditNanos < creditNanos ? { ...account, creditNanos } : account;
}

/** Without limits, prices and changes of keys that would have requests refused or cost something else. */
function withoutRefusals(plan: Plan): Plan {
  const refusing: ReadonlySet<string> = new Set([
    "limit",
    "change-key",
    "rotate",
    "revoke",
    "disable",
    "takeback",
    "prices-made",
    "prices-changed",
  ]);
  const incidents = plan.incidents.filter(({ what }) => !refusing.has(what.type));
  const rules = { ...plan.rules, concurrency: 4, perMinute: 600 };
  // Without rotations there is one secret.
  return {
    ...plan,
    rules,
    incidents,
    requests: plan.requests.map((one) => ({ ...one, secret: 0 })),
  };
}

/** With one replica at least to see what becomes of another. */
function withOthers(plan: Plan): Plan {
  return { ...plan, replicas: Math.max(plan.replicas, 2) };
}

/** Without what else could befall the replica of a request. */
function untroubled(plan: Plan, { replica }: RequestPlan): Plan {
  const incidents = plan.incidents.filter(
    ({ what }) => what.type !== "store-away" && !("replica" in what && what.replica === replica),
  );
  return { ...plan, incidents, weather: 0 };
}

/** Without what befalls any replica. */
function withoutTrouble(plan: Plan): Plan {
  const incidents = plan.incidents.filter(
    ({ what }) => what.type !== "store-away" && !("replica" in what),
  );
  return { ...plan, incidents, weather: 0 };
}

/** With so many requests of an account at least. */
function withRequests(plan: Plan, accountId: string, count: number): Plan {
  const its = plan.requests.filter((one) => one.accountId === accountId);
  const more = Array.from({ length: Math.max(count - its.length, 0) }, (_, index) =>
    its.slice(index % its.length, (index % its.length) + 1).map((one) => ({
      ...one,
      id: `req_${String(plan.requests.length + index + 1)}` as const,
    })),
  );
  return { ...plan, requests: [...plan.requests, ...more.flat()] };
}

function at({ id: requestId }: RequestPlan, phase: Phase, what: Happening): Incident {
  return { when: { requestId, phase }, what };
}

function withIncidents(plan: Plan, ...incidents: readonly Incident[]): Plan {
  return { ...plan, incidents: [...plan.incidents, ...incidents] };
}
