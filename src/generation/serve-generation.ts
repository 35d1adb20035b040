import type {
  Deployment,
  Ending,
  GenerationSink,
  Prompt,
  RunningGeneration,
} from "../deployment/deployment.ts";
import type { Finish, GenerationEvent, Usage } from "../conversation/generation-event.ts";
import { Failure, failureFromUnknown } from "../failure.ts";
import type { Admission, Caller, Ledger, RequestId, SettlementOutcome } from "../ledger/ledger.ts";
import { limits } from "../limits.ts";
import type { GenerationFacts, Telemetry } from "../telemetry/events.ts";
import { openMeter, type Meter } from "./meter.ts";

/** One request, parsed and prepared. Tokens, except where named. */
export interface GenerationOrder {
  readonly requestId: RequestId;
  readonly caller: Caller;
  readonly format: string;
  readonly streamed: boolean;
  readonly prompt: Prompt;
  readonly inputBound: number;
  readonly inputTokensEstimate: number;
  /** null: the caller named none. */
  readonly outputTokensRequested: number | null;
}

/** How a generation ended for the caller; the settlement is behind it. */
export type AnswerEnding =
  | { readonly type: "finished"; readonly finish: Finish }
  | { readonly type: "failed"; readonly failure: Failure }
  | { readonly type: "cancelled" };

/** Where the answer goes. Called synchronously, never before `serveGeneration` has returned. */
export interface AnswerSink {
  admitted(admission: Admission): void;
  accepted(): void;
  /** Once per upstream read. */
  events(batch: readonly GenerationEvent[]): void;
  /** Once, last. `facts` is null when nothing was admitted. */
  end(ending: AnswerEnding, facts: GenerationFacts | null): void;
}

/** Keeps the leases of running reservations; `onLost` is called when one could not be renewed. */
export interface Leases {
  hold(requestId: RequestId, onLost: () => void): void;
  drop(requestId: RequestId): void;
}

/** What `serveGeneration` works with. */
export interface GenerationParts {
  readonly ledger: Ledger;
  readonly deployment: Deployment;
  readonly leases: Leases;
  readonly telemetry: Telemetry;
  /** Milliseconds of a clock that never jumps. */
  readonly monotonicMs: () => number;
}

/** Admits, generates, meters and settles: the only place that knows this order. */
export function serveGeneration(
  order: GenerationOrder,
  sink: AnswerSink,
  parts: GenerationParts,
): RunningGeneration {
  const control = openControl();
  // Nothing in it can reject: what goes wrong becomes the answer's end.
  void admitAndStart(order, sink, { ...parts, control });
  return control;
}

type WithControl = GenerationParts & { readonly control: Control };

async function admitAndStart(
  order: GenerationOrder,
  sink: AnswerSink,
  parts: WithControl,
): Promise<void> {
  const { control, deployment, ledger } = parts;
  let admission: Admission;
  try {
    admission = await ledger.admit({
      requestId: order.requestId,
      caller: order.caller,
      inputBound: order.inputBound,
      outputTokensRequested: order.outputTokensRequested,
      outputTokensFitting: fitting(deployment.describe().contextTokens, order.inputTokensEstimate),
      format: order.format,
      streamed: order.streamed,
    });
  } catch (error) {
    sink.end(refusal(error, control), null);
    return;
  }
  const generation = openAdmittedGeneration(order, admission, { ...parts, sink });
  if (control.cancelled) {
    generation.end({ type: "cancelled" });
    return;
  }
  sink.admitted(admission);
  parts.leases.hold(order.requestId, generation.loseLease);
  control.attach(deployment.start(order.prompt, admission.allowance, generation));
}

function refusal(error: unknown, control: Control): AnswerEnding {
  return control.cancelled
    ? { type: "cancelled" }
    : { type: "failed", failure: failureFromUnknown(error) };
}

/** An estimate may cut an allowance, it never refuses: at least one token always fits. */
function fitting(contextTokens: number | null, inputTokensEstimate: number): number | null {
  return contextTokens === null ? null : Math.max(contextTokens - inputTokensEstimate, 1);
}

/** From here on a reservation is open: whatever happens, it is settled once and the sink hears one end. */
function openAdmittedGeneration(
  order: GenerationOrder,
  admission: Admission,
  parts: WithControl & { readonly sink: AnswerSink },
): GenerationSink & { readonly loseLease: () => void } {
  const { control, ledger, sink, telemetry } = parts;
  const meter = openMeter(order.inputTokensEstimate);
  const admittedAtMs = parts.monotonicMs();
  let firstOutputMs: number | null = null;
  let accepted = false;
  let leaseLost = false;

  const elapsedMs = (): number => Math.round(parts.monotonicMs() - admittedAtMs);

  async function settleAndEnd(ending: Ending): Promise<void> {
    const resolved = resolve(ending, { meter, accepted, leaseLost });
    const totalMs = elapsedMs();
    const settling = ledger
      .settle({
        requestId: order.requestId,
        accountId: order.caller.accountId,
        outcome: resolved.outcome,
        usage: resolved.usage,
        firstOutputMs,
        totalMs,
      })
      .catch((error: unknown) => {
        telemetry.failed({ requestId: order.requestId, code: "internal", cause: error });
        return null;
      })
      // The lease is renewed until then: a settlement that must wait for the store is not overtaken by expiry.
      .finally(() => parts.leases.drop(order.requestId));
    const settled = await withinMs(settling, limits.settlementWaitMs);
    if (settled === "late") telemetry.settlementLate({ requestId: order.requestId });
    sink.end(resolved.answer, {
      format: order.format,
      streamed: order.streamed,
      outcome: resolved.outcome,
      allowance: admission.allowance,
      inputTokens: resolved.usage?.inputTokens ?? 0,
      outputTokens: resolved.usage?.outputTokens ?? 0,
      cachedInputTokens: resolved.usage?.cachedInputTokens ?? 0,
      chargedNanos: settled === "late" || settled === null ? 0n : settled.chargedNanos,
      firstOutputMs,
      totalMs,
    });
  }

  return {
    accepted() {
      accepted = true;
      sink.accepted();
    },
    events(batch, running) {
      meter.add(batch, running);
      if (firstOutputMs === null && meter.outputBegan) firstOutputMs = elapsedMs();
      sink.events(batch);
    },
    end(ending) {
      void settleAndEnd(ending);
    },
    loseLease: () => {
      leaseLost = true;
      control.cancelUpstream();
    },
  };
}

interface Resolved {
  readonly answer: AnswerEnding;
  readonly outcome: SettlementOutcome;
  readonly usage: Usage | null;
}

/** The charge of every ending: what was delivered is paid, what failed is not. */
function resolve(
  ending: Ending,
  facts: { readonly meter: Meter; readonly accepted: boolean; readonly leaseLost: boolean },
): Resolved {
  switch (ending.type) {
    case "finished": {
      const usage = facts.meter.usage(ending.usage);
      return {
        answer: { type: "finished", finish: { ...ending.finish, usage } },
        outcome: "completed",
        usage,
      };
    }
    case "failed":
      return {
        answer: { type: "failed", failure: ending.failure },
        outcome: facts.accepted ? "failed" : "refused",
        usage: null,
      };
    case "cancelled":
      if (facts.leaseLost)
        return {
          answer: { type: "failed", failure: leaseFailure() },
          outcome: "lease-lost",
          usage: null,
        };
      return facts.meter.outputBegan
        ? {
            answer: { type: "cancelled" },
            outcome: "cancelled",
            usage: facts.meter.usage(null),
          }
        : { answer: { type: "cancelled" }, outcome: "cancelled-before-output", usage: null };
    default:
      return ending satisfies never;
  }
}

function leaseFailure(): Failure {
  return new Failure(
    "overloaded",
    "The service lost its connection to the ledger while this answer was running. Nothing was charged. Try again.",
    { retryAfterSeconds: 5 },
  );
}

/** The caller's hand on a generation, from before it is admitted until after it has ended. */
interface Control extends RunningGeneration {
  readonly cancelled: boolean;
  attach(upstream: RunningGeneration): void;
  cancelUpstream(): void;
}

function openControl(): Control {
  let upstream: RunningGeneration | null = null;
  let paused = false;
  let cancelled = false;
  return {
    get cancelled() {
      return cancelled;
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
    cancel() {
      cancelled = true;
      upstream?.cancel();
    },
    cancelUpstream() {
      upstream?.cancel();
    },
  };
}

async function withinMs<Value>(promise: Promise<Value>, waitMs: number): Promise<Value | "late"> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<"late">((resolveLate) => {
    timer = setTimeout(resolveLate, waitMs, "late");
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
