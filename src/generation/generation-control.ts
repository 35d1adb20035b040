import type { RunningGeneration } from "../deployment/deployment.ts";
import type { Failure } from "../failure.ts";
import type { SettlementOutcome } from "../ledger/receipt.ts";

/** A generation in the hands of its caller, from before it is admitted until after it has ended. */
export interface ServedGeneration extends RunningGeneration {
  /** Ends it for a reason of ours: the caller gets the failure and pays nothing. */
  fail(failure: Failure): void;
}

/** A fault on our side of a generation that the deployment was serving well. */
export interface OurFailure {
  readonly failure: Failure;
  readonly outcome: SettlementOutcome;
}

/** What else ends a generation, and what has ended it. */
export interface Control extends ServedGeneration {
  /** Whether anyone wants it to end. */
  readonly stopped: boolean;
  readonly ours: OurFailure | null;
  attach(upstream: RunningGeneration): void;
  stop(failure: Failure, outcome: SettlementOutcome): void;
}

/** Opens the control of a generation that is not started yet. */
export function openControl(): Control {
  let upstream: RunningGeneration | null = null;
  let paused = false;
  let stopped = false;
  let ours: OurFailure | null = null;

  function cancel(): void {
    stopped = true;
    upstream?.cancel();
  }

  function stop(failure: Failure, outcome: SettlementOutcome): void {
    // A client that is gone already has its own ending.
    if (stopped) return;
    ours = { failure, outcome };
    cancel();
  }

  return {
    get stopped() {
      return stopped;
    },
    get ours() {
      return ours;
    },
    attach(started) {
      upstream = started;
      if (paused) upstream.pause();
    },
    pause() {
      paused = true;
      upstream?.pause();
    },
    resume() {
      paused = false;
      upstream?.resume();
    },
    cancel,
    stop,
    fail: (failure) => stop(failure, "failed"),
  };
}
