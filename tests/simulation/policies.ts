import { hash } from "node:crypto";
import type { AccountId, KeyId, RequestId } from "../../src/ledger/scalars.ts";
import type { Sequence } from "./random.ts";

/** What an operator sets of accounts and keys while requests run. */
export type PolicyChange =
  | ({
      readonly type: "limit";
      readonly accountId: AccountId;
      readonly limits: AccountLimitsPatch;
    } & OfVersion)
  | ({
      readonly type: "change-key";
      readonly keyId: KeyId;
      readonly patch: KeyPatchPlan;
    } & OfVersion)
  /** The key's next secret; the one before is good for so long. */
  | { readonly type: "rotate"; readonly keyId: KeyId; readonly overlapMs: number };

/** A change that an operator makes for the version that was read so many changes ago; null: for any; absent: the service makes it. */
interface OfVersion {
  readonly versionsLate?: number | null;
}

export interface AccountLimitsPatch {
  readonly concurrentRequests?: number | null;
  readonly requestsPerMinute?: number | null;
  readonly outputTokensMax?: number | null;
}

export interface KeyPatchPlan {
  readonly status?: "active" | "paused";
  readonly scopes?: readonly ("generate" | "read")[];
  /** From when it is set; null: it does not expire. */
  readonly expiresInMs?: number | null;
  readonly limits?: Omit<AccountLimitsPatch, "concurrentRequests">;
}

/** What of a plan's request a change is made for. */
interface PlannedRequest {
  readonly id: RequestId;
  readonly accountId: AccountId;
  readonly key: { readonly id: KeyId };
}

/** The moments of a request at which policies change. */
type PolicyPhase = "authorize-sent" | "authorized" | "admit-sent" | "admitted" | "ended";

/** A change, and when it happens. */
interface PolicyIncident {
  readonly when:
    | { readonly atMs: number }
    | { readonly requestId: RequestId; readonly phase: PolicyPhase };
  readonly what: PolicyChange;
}

/** Changes of policies, and which of a key's secrets each request presents; a sequence of its own. */
export function policiesOf<Request extends PlannedRequest>(
  random: Sequence,
  plan: {
    readonly accounts: readonly {
      readonly id: AccountId;
      readonly keys: readonly { readonly id: KeyId }[];
    }[];
    readonly requests: readonly Request[];
    readonly spanMs: number;
  },
): {
  readonly incidents: readonly PolicyIncident[];
  readonly requests: readonly (Request & { readonly secret?: number })[];
} {
  if (!random.chance(0.5)) return { incidents: [], requests: plan.requests };
  const incidents: PolicyIncident[] = [];
  // Most limits are there before the first request, as a request that nothing holds back shows none of them.
  for (const { id: accountId, keys } of plan.accounts) {
    if (random.chance(0.5))
      incidents.push(first({ type: "limit", accountId, limits: accountLimitsOf(random) }));
    for (const { id: keyId } of keys)
      if (random.chance(0.4))
        incidents.push(
          first({ type: "change-key", keyId, patch: { limits: keyLimitsOf(random) } }),
        );
  }
  for (let left = random.between(0, 4); left > 0; left -= 1) {
    const request = random.pick(plan.requests);
    const when = random.chance(0.7)
      ? {
          requestId: request.id,
          phase: random.pick<PolicyPhase>([
            "authorize-sent",
            "authorized",
            "authorized",
            "admit-sent",
            "admitted",
            "ended",
          ]),
        }
      : { atMs: random.between(0, plan.spanMs) };
    incidents.push({ when, what: withVersion(random, changeOf(random, request)) });
  }
  // Between the two looks at a request: what was read at the first does not count at the second.
  for (let left = random.between(0, 5); left > 0; left -= 1) {
    const request = random.pick(plan.requests);
    const { accountId, key } = request;
    const what = random.pick<() => PolicyChange>([
      () => ({ type: "limit", accountId, limits: { concurrentRequests: random.pick([1, 1, 8]) } }),
      () => ({ type: "change-key", keyId: key.id, patch: { limits: keyLimitsOf(random) } }),
      () => ({
        type: "change-key",
        keyId: key.id,
        patch: { status: random.pick(["paused", "active"]) },
      }),
    ])();
    const phase = random.pick<PolicyPhase>(["authorized", "authorized", "admit-sent"]);
    incidents.push({ when: { requestId: request.id, phase }, what });
  }
  const rotates = incidents.some(({ what }) => what.type === "rotate");
  const requests = plan.requests.map((request) =>
    rotates ? { ...request, secret: random.pick([0, 0, 1, 1, 2]) } : request,
  );
  return { incidents, requests };
}

/** Changes of one account or key, one after another, some for a version and some for any; a sequence of its own. */
export function versionsOf(
  random: Sequence,
  requests: readonly PlannedRequest[],
): readonly PolicyIncident[] {
  if (!random.chance(0.3)) return [];
  const { accountId, id: requestId, key } = random.pick(requests);
  const ofKey = random.chance(0.5);
  const when = { requestId, phase: random.pick<PolicyPhase>(["authorized", "ended"]) };
  return Array.from({ length: random.between(2, 5) }, () => {
    // More than any request has, so that none is refused for it.
    const limits = { outputTokensMax: random.between(60_000, 60_002) };
    const what: PolicyChange = ofKey
      ? { type: "change-key", keyId: key.id, patch: { limits } }
      : { type: "limit", accountId, limits };
    return { when, what: { ...what, versionsLate: random.pick([null, null, 0, 0, 1]) } };
  });
}

function first(what: PolicyChange): PolicyIncident {
  return { when: { atMs: 0 }, what };
}

function withVersion(random: Sequence, what: PolicyChange): PolicyChange {
  if (what.type === "rotate" || !random.chance(0.4)) return what;
  return { ...what, versionsLate: random.pick([0, 0, 1, -1]) };
}

function changeOf(
  random: Sequence,
  { accountId, key: { id: keyId } }: PlannedRequest,
): PolicyChange {
  return random.pick<() => PolicyChange>([
    () => ({ type: "limit", accountId, limits: accountLimitsOf(random) }),
    () => ({ type: "limit", accountId, limits: accountLimitsOf(random) }),
    () => ({ type: "change-key", keyId, patch: { limits: keyLimitsOf(random) } }),
    () => ({
      type: "change-key",
      keyId,
      patch: { status: random.pick(["paused", "paused", "active"]) },
    }),
    () => ({
      type: "change-key",
      keyId,
      patch: { expiresInMs: random.pick([0, 1, 20_000, 60_000, null]) },
    }),
    () => ({
      type: "change-key",
      keyId,
      patch: { scopes: random.pick([["read"], ["generate"], ["generate", "read"]] as const) },
    }),
    () => ({ type: "rotate", keyId, overlapMs: random.pick([0, 0, 20_000, 60_000]) }),
    () => ({ type: "rotate", keyId, overlapMs: random.pick([0, 5_000, 60_000]) }),
  ])();
}

function accountLimitsOf(random: Sequence): AccountLimitsPatch {
  return {
    concurrentRequests: random.pick([null, 1, 1, 2, 8]),
    requestsPerMinute: random.pick([null, 1, 2, 5, 1_000]),
    outputTokensMax: random.pick([null, null, 1, 40, 300]),
  };
}

function keyLimitsOf(random: Sequence): Omit<AccountLimitsPatch, "concurrentRequests"> {
  return {
    requestsPerMinute: random.pick([null, 1, 3, 1_000]),
    outputTokensMax: random.pick([null, 20, 250, 3_000]),
  };
}

/** The secret of a key after so many rotations. */
export function secretOf(presented: string, rotations: number): string {
  return rotations === 0
    ? presented
    : `${presented.slice(0, -1)}${"rst".charAt((rotations - 1) % 3)}`;
}

export function secretHashOf(secret: string): Uint8Array {
  return new Uint8Array(hash("sha256", secret, "buffer"));
}
