import type { Ledger } from "./ledger.ts";
import type { RequestId } from "./scalars.ts";
import { limits } from "../limits.ts";
import { openDeadWatch, type DeadWatchParts } from "./dead-watch.ts";
import { systemTimers, type Timers } from "../timers.ts";

/** Keeps the leases of this process's reservations, and gives back what dead processes held. */
export interface LeaseKeeper extends AsyncDisposable {
  /**
   * From now on the lease is renewed; `onLost` is called once when that could not be done in time, or when an operator
   * cancelled the request. `askedAtMs` is the monotonic time just before the admission was asked for: the lease cannot
   * have begun earlier.
   */
  hold(requestId: RequestId, onLost: (why: LossReason) => void, askedAtMs?: number): void;
  /**
   * The settlement of this request has been sent: its lease is still renewed, but where `renew` no longer has it, that
   * settlement was committed, and there is nothing left to cancel.
   */
  settling(requestId: RequestId): void;
  drop(requestId: RequestId): void;
  /** Renews now, to learn what operators have cancelled. */
  look(): void;
}

/** Why a generation must end: its lease could not be renewed, or an operator cancelled it. */
export type LossReason = "lease-lost" | "cancelled-by-operator";

/** Business events of leases; telemetry/events.ts has them. */
export interface LeaseTelemetry {
  leasesLost(facts: { readonly count: number }): void;
  reservationsExpired(facts: { readonly count: number }): void;
  ledgerRetry(facts: { readonly operation: string; readonly cause: unknown }): void;
  lifecycle(event: string, fields: Readonly<Record<string, string>>): void;
}

/** How long leases are, and what the keeper works with. */
export interface LeaseKeeperParts {
  /** The length of the leases that `admit` and `renew` give. */
  readonly leaseMs: number;
  readonly telemetry: LeaseTelemetry;
  /** Milliseconds of a clock that never jumps. */
  readonly monotonicMs?: () => number;
  /** Milliseconds since 1970. */
  readonly wallMs?: () => number;
  readonly timers?: Timers;
  /** How often it looks for dead processes; absent: limits.ledgerDeadAskMs. */
  readonly deadAskMs?: number;
}

interface Held {
  /** By the monotonic clock. */
  endsAtMs: number;
  /** `onLost` is not called any more: the generation was cancelled, or its settlement is on the way. */
  over: boolean;
  readonly onLost: (why: LossReason) => void;
}

/** Renews the leases held here every third of a lease, and then gives back what other leases have ended; at once at the start. */
export function openLeaseKeeper(
  ledger: Pick<Ledger, "renew" | "cancelledGenerations" | "expire" | "giveBackDead">,
  parts: LeaseKeeperParts,
): LeaseKeeper {
  const { leaseMs, monotonicMs, telemetry, timers } = withDefaults(parts);
  const leases = openHeldLeases({ leaseMs, monotonicMs, telemetry, timers });
  let closed = false;
  let nextTick: unknown = null;
  let resting = false;
  let doubted = false;
  let ticking = tick();
  const deadWatch = openDeadWatch(ledger, {
    ...withDefaults(parts),
    onDoubt: look,
  });

  function look(): void {
    doubted = true;
    if (!resting || closed) return;
    timers.clear(nextTick);
    ticking = tick();
  }

  async function tick(): Promise<void> {
    const startedAtMs = monotonicMs();
    resting = false;
    doubted = false;
    // `renew` before `expire`: after a jump of the clock the leases of this process look as if they had ended, too.
    const renewed = await attempt("renew", async () => {
      const asked = leases.all();
      if (asked.size === 0) return;
      leases.renewed(asked, await ledger.renew([...asked.keys()]), startedAtMs);
      leases.cancelled(await ledger.cancelledGenerations());
    });
    const expired = await attempt("expire", async () => {
      const count = await ledger.expire();
      if (count > 0) telemetry.reservationsExpired({ count });
    });
    if (closed) return;
    resting = true;
    const periodMs = doubted ? 0 : renewed && expired ? leaseMs / 3 : leaseMs / 12;
    const delayMs = Math.max(startedAtMs + periodMs - monotonicMs(), 1);
    nextTick = timers.set(() => void (ticking = tick()), delayMs);
  }

  async function attempt(operation: string, step: () => Promise<void>): Promise<boolean> {
    try {
      await step();
      return true;
    } catch (cause) {
      if (!closed) telemetry.ledgerRetry({ operation, cause });
      return false;
    }
  }

  return {
    hold: leases.hold,
    settling: leases.settling,
    drop: leases.drop,
    look,
    async [Symbol.asyncDispose]() {
      closed = true;
      timers.clear(nextTick);
      leases.close();
      await deadWatch[Symbol.asyncDispose]();
      await ticking;
    },
  };
}

function withDefaults(parts: LeaseKeeperParts): HeldParts & DeadWatchTimes {
  return {
    leaseMs: parts.leaseMs,
    telemetry: parts.telemetry,
    monotonicMs: parts.monotonicMs ?? (() => performance.now()),
    wallMs: parts.wallMs ?? Date.now,
    timers: parts.timers ?? systemTimers,
    everyMs: parts.deadAskMs ?? limits.ledgerDeadAskMs,
  };
}

type DeadWatchTimes = Pick<DeadWatchParts, "everyMs" | "wallMs">;
type HeldParts = Required<Omit<LeaseKeeperParts, "wallMs" | "deadAskMs">>;

interface HeldLeases {
  readonly hold: LeaseKeeper["hold"];
  readonly settling: LeaseKeeper["settling"];
  readonly drop: LeaseKeeper["drop"];
  /** What is held at this moment. */
  all(): ReadonlyMap<RequestId, Held>;
  /** Of the leases asked for, those in `ours` run on from when they were asked for; the others are lost. */
  renewed(
    asked: ReadonlyMap<RequestId, Held>,
    ours: ReadonlySet<RequestId>,
    startedAtMs: number,
  ): void;
  /** Operators cancelled these, here or on other replicas. */
  cancelled(requestIds: readonly RequestId[]): void;
  close(): void;
}

/** Cancels each generation before its lease ends, whether or not the store answers. */
function openHeldLeases(parts: HeldParts): HeldLeases {
  const { leaseMs, monotonicMs, telemetry, timers } = parts;
  const safetyMs = leaseSafetyMs(leaseMs);
  const held = new Map<RequestId, Held>();
  let deadline: { readonly timer: unknown; readonly atMs: number } | null = null;
  let closed = false;

  function cancel(lost: readonly Held[]): void {
    const fresh = lost.filter((one) => !one.over);
    if (fresh.length === 0) return;
    telemetry.leasesLost({ count: fresh.length });
    for (const one of fresh) {
      one.over = true;
      one.onLost("lease-lost");
    }
  }

  function cancelWhatEnds(): void {
    deadline = null;
    const untilMs = monotonicMs() + safetyMs;
    cancel([...held.values()].filter((one) => one.endsAtMs <= untilMs));
    let next = Infinity;
    for (const one of held.values()) if (!one.over) next = Math.min(next, one.endsAtMs);
    if (next !== Infinity) watch(next - safetyMs);
  }

  // One timer, for the lease that ends first: most leases are renewed or dropped before it, and it is then set anew.
  function watch(atMs: number): void {
    if (closed || (deadline !== null && deadline.atMs <= atMs)) return;
    if (deadline !== null) timers.clear(deadline.timer);
    deadline = { timer: timers.set(cancelWhatEnds, Math.max(atMs - monotonicMs(), 0)), atMs };
  }

  return {
    hold(requestId, onLost, askedAtMs = monotonicMs()) {
      const endsAtMs = askedAtMs + leaseMs;
      held.set(requestId, { endsAtMs, over: false, onLost });
      watch(endsAtMs - safetyMs);
    },
    settling(requestId) {
      const one = held.get(requestId);
      if (one !== undefined) one.over = true;
    },
    drop: (requestId) => void held.delete(requestId),
    all: () => new Map(held),
    renewed(asked, ours, startedAtMs) {
      const lost: Held[] = [];
      for (const [requestId, one] of asked) {
        if (ours.has(requestId)) one.endsAtMs = startedAtMs + leaseMs;
        else if (held.delete(requestId)) lost.push(one);
      }
      cancel(lost);
    },
    cancelled(requestIds) {
      for (const requestId of requestIds) {
        const one = held.get(requestId);
        if (one === undefined || one.over) continue;
        // Its lease is still renewed, until its settlement is committed.
        one.over = true;
        one.onLost("cancelled-by-operator");
      }
    },
    close() {
      closed = true;
      if (deadline !== null) timers.clear(deadline.timer);
    },
  };
}

/** How long before its end a lease counts as lost: 10 s of the usual 60, in proportion for shorter ones. */
export function leaseSafetyMs(leaseMs: number): number {
  return Math.min(limits.leaseSafetyMs, leaseMs / 6);
}
