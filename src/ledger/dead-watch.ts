import { Failure } from "../failure.ts";
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
  /** What this process holds may be lost: it has to be asked for now. */
  readonly onDoubt: () => void;
}

// More than clocks are corrected by in one step, less than any lease that is worth having.
const clocksDifferMs = 500;

/**
 * Says again and again that this process lives, and has given back what others held that do not. A process that was
 * taken for dead, or whose machine stood still, learns here that it has to ask what is still its own.
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
    if (Math.abs(differsMs - differedMs) > clocksDifferMs) onDoubt();
    differedMs = differsMs;
    try {
      const { count, known } = await ledger.giveBackDead();
      failing = false;
      if (goneFor !== null) telemetry.lifecycle("ledger back", {});
      goneFor = null;
      if (count > 0) telemetry.reservationsExpired({ count });
      if (!known) onDoubt();
    } catch (cause) {
      if (!closed) tell(cause);
    }
    if (!closed) timer = timers.set(() => void (looking = look()), everyMs);
  }

  /** Once: a store that is away is asked again a moment later. */
  function tell(cause: unknown): void {
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
