import { type EventOrderCheck, openEventOrderCheck } from "../conversation/check-event-order.ts";
import type { Deployment, Ending, GenerationSink, Prompt } from "../deployment/deployment.ts";
import { DeploymentRefusal } from "../deployment/deployment-refusal.ts";
import type { Finish, GenerationEvent, Usage } from "../conversation/generation-event.ts";
import { Failure, failureFromUnknown } from "../failure.ts";
import type { Admission, Caller, Ledger, Settlement } from "../ledger/ledger.ts";
import type { LossReason } from "../ledger/lease-keeper.ts";
import type { RequestId } from "../ledger/scalars.ts";
import type { SettlementOutcome } from "../ledger/receipt.ts";
import { systemTimers, type Timers } from "../timers.ts";
import { limits } from "../limits.ts";
import type { GenerationFacts, Telemetry } from "../telemetry/events.ts";
import {
  type Control,
  openControl,
  type ServiceFault,
  type ServedGeneration,
} from "./generation-control.ts";
import { openMeter, type Meter } from "./meter.ts";
import { openSilences } from "./silences.ts";
import { withinMs } from "./within-ms.ts";
import { openAsking } from "./asking.ts";
import type { RequestTrace } from "../telemetry/request-trace.ts";

/** One request, parsed and prepared. Tokens, except where named. */
export interface GenerationOrder {
  readonly requestId: RequestId;
  /** Absent or null: there are no traces. */
  readonly trace?: RequestTrace | null;
  readonly caller: Caller;
  readonly format: string;
  readonly streamed: boolean;
  /** For whom of its account's users it is, for the receipt alone. */
  readonly label: string | null;
  readonly prompt: Prompt;
  readonly inputBound: number;
  readonly inputTokensEstimate: number;
  /** null: the caller named none. */
  readonly outputTokensRequested: number | null;
}

/** How a generation ended for the caller, once it is settled. */
export type AnswerEnding =
  | { readonly type: "finished"; readonly finish: Finish }
  | { readonly type: "failed"; readonly failure: Failure }
  | { readonly type: "cancelled" };

/** Where the answer goes. Called synchronously, never before `serveGeneration` has returned. */
export interface AnswerSink {
  admitted(admission: Admission): void;
  /** The deployment has room for this much output only. False: headers with another allowance are out already. */
  reduced(allowance: number): boolean;
  accepted(): void;
  /** Once per upstream read. */
  events(batch: readonly GenerationEvent[]): void;
  /** Once, last. `facts` is null when nothing was admitted. */
  end(ending: AnswerEnding, facts: GenerationFacts | null): void;
}

/** Keeps the leases of running reservations; `onLost` is called when one could not be renewed, or its request was cancelled. */
export interface Leases {
  /** `askedAtMs`: monotonic time just before the admission was asked for; the lease cannot have begun earlier. */
  hold(requestId: RequestId, onLost: (why: LossReason) => void, askedAtMs: number): void;
  settling(requestId: RequestId): void; // its settlement is sent now: it can no longer be lost
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
  readonly timers?: Timers;
}

/** Admits, generates, meters and settles: the only place that knows this order. */
export function serveGeneration(
  order: GenerationOrder,
  sink: AnswerSink,
  parts: GenerationParts,
): ServedGeneration {
  const control = openControl(order.requestId);
  // It never rejects: what goes wrong becomes the answer's end.
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
  const askedAtMs = parts.monotonicMs();
  let admission: Admission;
  try {
    const admitting = ledger.admit({
      requestId: order.requestId,
      caller: order.caller,
      inputBound: order.inputBound,
      outputTokensRequested: order.outputTokensRequested,
      outputTokensFitting: fitting(deployment.describe().contextTokens, order.inputTokensEstimate),
      format: order.format,
      streamed: order.streamed,
      label: order.label,
    });
    order.trace?.follow("admit", admitting);
    admission = await admitting;
  } catch (error) {
    void releasePossibleReservation(order, error, ledger);
    sink.end(refusal(error, control), null);
    return;
  }
  const generation = openAdmittedGeneration(order, admission, { ...parts, sink });
  if (control.stopped) {
    generation.end({ type: "cancelled" });
    return;
  }
  try {
    sink.admitted(admission);
  } catch (error) {
    control.fail(failureFromUnknown(error));
    generation.end({ type: "cancelled" });
    return;
  }
  const loseLease = (why: LossReason): void =>
    control.stop(why === "lease-lost" ? leaseFailure() : cancelledFailure(), why);
  parts.leases.hold(order.requestId, loseLease, askedAtMs);
  generation.start();
}

/** Settles a reservation that may stand though its admission failed: its slot would be held until the lease ends. */
async function releasePossibleReservation(
  order: GenerationOrder,
  error: unknown,
  ledger: Ledger,
): Promise<void> {
  if (failureFromUnknown(error).kind.status < 500) return;
  try {
    await ledger.settle({
      requestId: order.requestId,
      accountId: order.caller.accountId,
      outcome: "failed",
      usage: null,
      firstOutputMs: null,
      totalMs: 0,
    });
  } catch {
    // The store is still away; the lease ends the reservation.
  }
}

function refusal(error: unknown, control: Control): AnswerEnding {
  if (control.fault === null && control.stopped) return { type: "cancelled" };
  return { type: "failed", failure: control.fault?.failure ?? failureFromUnknown(error) };
}

/** An estimate may cut an allowance, it never refuses: at least one token always fits. */
function fitting(contextTokens: number | null, inputTokensEstimate: number): number | null {
  return contextTokens === null ? null : Math.max(contextTokens - inputTokensEstimate, 1);
}

/** From here on a reservation is open: whatever happens, it is settled once and the sink gets one end. */
function openAdmittedGeneration(
  order: GenerationOrder,
  admission: Admission,
  parts: WithControl & { readonly sink: AnswerSink },
): GenerationSink & { start(): void } {
  const { control, sink } = parts;
  const admittedAtMs = parts.monotonicMs();
  let firstOutputMs: number | null = null;
  const silences = openSilences();
  let accepted = false;
  let { allowance } = admission;
  let meter = meterOf(order, allowance);
  const asking = openAsking(order, parts.deployment);
  let cuts = 0;
  const eventOrder = openEventOrderCheck();
  control.count(() => meter.usage(null).outputTokens);

  const elapsedMs = (): number => Math.round(parts.monotonicMs() - admittedAtMs);

  async function settleAndEnd(ending: Ending): Promise<void> {
    const resolved = resolve(ending, { meter, accepted, fault: control.fault });
    const times = { firstOutputMs, totalMs: elapsedMs() };
    asking.end(resolved.answer, { firstOutputMs, usage: resolved.usage });
    const chargedNanos = await settle(order, { ...resolved, ...times }, parts);
    const facts = factsOf(order, resolved);
    sink.end(resolved.answer, { ...facts, allowance, chargedNanos, ...times, ...silences.facts });
  }

  /** Starts the deployment again with a smaller allowance, which the same reservation pays, where the last was too large. */
  function startAgainWithLess(failure: Failure): boolean {
    const less = accepted || control.stopped ? null : outputTokensLeft(failure);
    if (less === null || cuts >= limits.outputAllowanceCutsMax) return false;
    if (!isReduced(less, sink, control)) return false;
    cuts += 1;
    allowance = less;
    meter = meterOf(order, allowance);
    asking.end({ type: "failed", failure }, { firstOutputMs, usage: null });
    generation.start();
    return true;
  }

  const generation: GenerationSink & { start(): void } = {
    start: () => control.attach(asking.start(allowance, generation)),
    accepted() {
      accepted = true;
      sink.accepted();
    },
    events(batch, running) {
      meter.add(batch, running);
      if (firstOutputMs === null && meter.outputBegan) firstOutputMs = elapsedMs();
      // A batch is empty where running usage came alone.
      if (batch.length > 0 && meter.outputBegan) silences.end(parts.monotonicMs());
      if (control.fault !== null || batch.length === 0) return;
      try {
        eventOrder.add(batch);
        sink.events(batch);
      } catch (error) {
        control.fail(failureFromUnknown(error));
      }
    },
    end(ending) {
      if (ending.type === "failed") {
        logRefusal(order.requestId, ending.failure, parts.telemetry);
        if (startAgainWithLess(ending.failure)) return;
      }
      void settleAndEnd(wholeOrFailed(ending, eventOrder));
    },
  };
  return generation;
}

function factsOf({ format, streamed }: GenerationOrder, { outcome, usage }: Resolved) {
  return {
    format,
    streamed,
    outcome,
    inputTokens: usage?.inputTokens ?? 0,
    outputTokens: usage?.outputTokens ?? 0,
    cachedInputTokens: usage?.cachedInputTokens ?? 0,
  };
}

/** A finish in the middle of a part is a bug of the service: such an answer ends as failed, not as whole. */
function wholeOrFailed(ending: Ending, eventOrder: EventOrderCheck): Ending {
  if (ending.type !== "finished") return ending;
  try {
    eventOrder.end();
    return ending;
  } catch (error) {
    return { type: "failed", failure: failureFromUnknown(error) };
  }
}

function meterOf(order: GenerationOrder, allowance: number): Meter {
  return openMeter({
    inputTokensEstimate: order.inputTokensEstimate,
    inputTokensMax: order.inputBound,
    outputTokensMax: allowance,
  });
}

function isReduced(allowance: number, sink: AnswerSink, control: Control): boolean {
  try {
    return sink.reduced(allowance);
  } catch (error) {
    control.fail(failureFromUnknown(error));
    return false;
  }
}

function outputTokensLeft({ cause }: Failure): number | null {
  return cause instanceof DeploymentRefusal ? cause.outputTokensFitting : null;
}

function logRefusal(requestId: RequestId, { cause }: Failure, telemetry: Telemetry): void {
  if (cause instanceof DeploymentRefusal)
    telemetry.deploymentRefused({ requestId, ...cause.fields });
}

/** Settles, and waits a little for it; the answer's end does not wait for a store that is slow. */
async function settle(
  order: GenerationOrder,
  facts: Pick<Settlement, "outcome" | "usage" | "firstOutputMs" | "totalMs">,
  parts: GenerationParts,
): Promise<bigint> {
  const { requestId, caller } = order;
  const { outcome, usage, firstOutputMs, totalMs } = facts;
  parts.leases.settling(requestId);
  const asked = { requestId, accountId: caller.accountId, outcome, usage, firstOutputMs, totalMs };
  const settled = parts.ledger.settle(asked);
  order.trace?.follow("settle", settled);
  const settling = settled
    .then(({ chargedNanos }) => chargedNanos)
    .catch((error: unknown) => {
      parts.telemetry.failed({ requestId, code: "internal", cause: error });
      return 0n;
    })
    // The lease is renewed until then, so that a settlement which waits for the store is not overtaken by expiry.
    .finally(() => parts.leases.drop(requestId));
  const charged = await withinMs(settling, limits.settlementWaitMs, parts.timers ?? systemTimers);
  if (charged !== "late") return charged;
  parts.telemetry.settlementLate({ requestId });
  return 0n;
}

interface Resolved {
  readonly answer: AnswerEnding;
  readonly outcome: SettlementOutcome;
  readonly usage: Usage | null;
}

/** The charge of every ending: what was delivered is paid, what failed is not. */
function resolve(
  ending: Ending,
  facts: { readonly meter: Meter; readonly accepted: boolean; readonly fault: ServiceFault | null },
): Resolved {
  const { meter, fault } = facts;
  if (fault !== null)
    return {
      answer: { type: "failed", failure: fault.failure },
      outcome: fault.outcome,
      usage: null,
    };
  switch (ending.type) {
    case "finished": {
      const usage = meter.usage(ending.usage);
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
      return meter.outputBegan
        ? { answer: { type: "cancelled" }, outcome: "cancelled", usage: meter.usage(null) }
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

function cancelledFailure(): Failure {
  return new Failure(
    "cancelled_by_operator",
    "An operator of this service has cancelled the request. Nothing was charged. Ask the operator before you send it again.",
  );
}
