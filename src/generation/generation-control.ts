import type { RunningGeneration } from "../deployment/deployment.ts";
import type { Failure } from "../failure.ts";
import type { SettlementOutcome } from "../ledger/receipt.ts";

/** A generation in the hands of its caller, from before it is admitted until after it has ended. */
export interface ServedGeneration extends RunningGeneration {
  /** Where it is, for operators. */
  readonly progress: Progress;
  /** Ends it for a fault of the service: the caller gets the failure and pays nothing. */
  fail(failure: Failure): void;
}

/** How far a generation is. */
export interface Progress {
  readonly requestId: string;
  /** As far as they are known while it runs. */
  readonly outputTokens: number;
}

/** A fault of the service, in a generation that the deployment was serving well. */
export interface ServiceFault {
  readonly failure: Failure;
  readonly outcome: SettlementOutcome;
}

/** A generation in the hands of `serveGeneration`: what else ends it, and what has ended it. */
export interface Control extends ServedGeneration {
  /** Whether it was cancelled or stopped. */
  readonly stopped: boolean;
  readonly fault: ServiceFault | null;
  /** From now on the progress has these tokens. */
  count(outputTokens: () => number): void;
  attach(upstream: RunningGeneration): void;
  stop(failure: Failure, outcome: SettlementOutcome): void;
}

/** Opens the control of a generation that is not started yet. */
export function openControl(requestId: string): Control {
  let outputTokens = none;
  let upstream: RunningGeneration | null = null;
  let paused = false;
  let stopped = false;
  let fault: ServiceFault | null = null;

  function cancel(): void {
    stopped = true;
    upstream?.cancel();
  }

  function stop(failure: Failure, outcome: SettlementOutcome): void {
    // A generation that its client has cancelled keeps that ending.
    if (stopped) return;
    fault = { failure, outcome };
    cancel();
  }

  return {
    get progress() {
      return { requestId, outputTokens: outputTokens() };
    },
    count: (tokens) => void (outputTokens = tokens),
    get stopped() {
      return stopped;
    },
    get fault() {
      return fault;
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

function none(): number {
  return 0;
}
