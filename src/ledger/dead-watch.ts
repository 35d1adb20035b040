import { Failure } from "../failure.ts";
import { limits } from "../limits.ts";
import type { Timers } from "../timers.ts";
import type { Ledger } from "./ledger.ts";
import { StoreFault } from "./store-fault.ts";

interface DeadWatchTelemetry {
  reservationsExpired(facts: { readonly count: number }): void;
  ledgerRetry(facts: { readonly operation: string; readonly cause: unknown }): void;
  lifecycle(event: string, fields: Readonly<Record<string, string>>): void;
}

/** What the watch works with. */
export interface DeadWatchParts {
  readonly timers: Timers;
  /** Milliseconds of a clock that never jumps, and stands still while the machine is suspended. */
  readonly monotonicMs: () => number;
  /** Milliseconds since 1970. */
  readonly wallMs: () => number;
  readonly everyMs: number;
  readonly telemetry: DeadWatchTelemetry;
  /** The store may have given back what this process holds: `renew` has to ask now. */
  readonly onDoubt: () => void;
}

/**
 * Calls `giveBackDead` every `everyMs`, which says that this process lives and gives back what dead processes held; where one
 * is missed that is not dead for sure yet, again at the moment in which it will be.
 * Calls `onDoubt` where the store had taken this process for dead, or its machine stood still: leases may have ended.
 */
export function openDeadWatch(
  ledger: Pick<Ledger, "giveBackDead">,
  parts: DeadWatchParts,
): AsyncDisposable {
  const { everyMs, monotonicMs, onDoubt, telemetry, timers, wallMs } = parts;
  const difference = (): number => wallMs() - monotonicMs();
  let differedMs = difference();
  let closed = false;
  let failing = false;
  let goneFor: string | null = null;
  let timer: unknown = null;
  let looking: Promise<void> = look();

  async function look(): Promise<void> {
    const differsMs = difference();
    if (Math.abs(differsMs - differedMs) > limits.clockStepMs) onDoubt();
    differedMs = differsMs;
    let nextMs = everyMs;
    try {
      const { againInMs, count, known } = await ledger.giveBackDead();
      failing = false;
      if (goneFor !== null) telemetry.lifecycle("ledger back", {});
      goneFor = null;
      if (count > 0) telemetry.reservationsExpired({ count });
      if (!known) onDoubt();
      nextMs = Math.min(everyMs, againInMs ?? everyMs);
    } catch (cause) {
      if (!closed) report(cause);
    }
    if (!closed) timer = timers.set(() => void (looking = look()), nextMs);
  }

  /** Reports the first of several failures in a row: the store is asked again every `everyMs`. */
  function report(cause: unknown): void {
    const reason = reasonOfGone(cause);
    if (reason === null && !failing) telemetry.ledgerRetry({ operation: "giveBackDead", cause });
    if (reason !== null && reason !== goneFor) telemetry.lifecycle("ledger gone", { reason });
    failing = true;
    goneFor = reason ?? goneFor;
  }

  return {
    async [Symbol.asyncDispose]() {
      closed = true;
      timers.clear(timer);
      await looking;
    },
  };
}

/** What became of the ledger's file, where that is why the store cannot be used; else null. */
function reasonOfGone(cause: unknown): string | null {
  const fault = cause instanceof Failure ? cause.facts.cause : cause;
  if (!(fault instanceof StoreFault)) return null;
  return fault.reason === "file-gone" || fault.reason === "file-moved" ? fault.message : null;
}
