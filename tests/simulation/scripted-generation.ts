import type {
  Deployment,
  Ending,
  GenerationSink,
  RunningGeneration,
} from "../../src/deployment/deployment.ts";
import type { GenerationEvent, Usage } from "../../src/conversation/generation-event.ts";
import { Failure } from "../../src/failure.ts";
import type { Batch, RequestPlan } from "./plan.ts";
import type { Process, World } from "./world.ts";

/** What a deployment has said so far, as it said it. */
export interface Said {
  accepted: boolean;
  deltas: number;
  characters: number;
  running: Usage | null;
  ending: Ending["type"] | null;
}

/** Follows the script of a request; what it says is delivered to the replica that asked. */
export function startScripted(
  plan: RequestPlan,
  sink: GenerationSink,
  parts: { readonly world: World; readonly replica: Process; readonly said: Said },
): RunningGeneration {
  const { replica, said, world } = parts;
  const { script } = plan;
  let cancelled = false;

  function later(delayMs: number, run: () => void): void {
    world.after(delayMs, `${plan.id} deployment`, replica, () => {
      if (said.ending === null) run();
    });
  }

  function end(ending: Ending): void {
    said.ending = ending.type;
    world.note(() => `deployment  ${plan.id} ${ending.type}`);
    sink.end(ending);
  }

  function next(index: number): void {
    const batch = script.batches[index];
    if (batch !== undefined) {
      later(batch.afterMs, () => {
        say(batch);
        next(index + 1);
      });
      return;
    }
    const { reported } = script;
    if (script.ending === "finished")
      later(1, () => {
        end({ type: "finished", finish: { reason: "stop", stopSequence: null }, usage: reported });
      });
    if (script.ending === "failed")
      later(1, () => {
        end({ type: "failed", failure: new Failure("deployment_failed", "Simulated.") });
      });
  }

  function say(batch: Batch): void {
    said.deltas += batch.deltas;
    said.characters += batch.deltas * batch.charactersPerDelta;
    if (batch.running !== null) said.running = batch.running;
    world.note(() => `deployment  ${plan.id} says ${String(batch.deltas)} deltas`);
    sink.events(eventsOf(batch), batch.running);
  }

  later(script.acceptAfterMs, () => {
    if (script.refuses) {
      end({ type: "failed", failure: new Failure("refused_by_deployment", "Simulated.") });
      return;
    }
    said.accepted = true;
    world.note(() => `deployment  ${plan.id} accepted`);
    sink.accepted();
    next(0);
  });
  return {
    pause() {},
    resume() {},
    cancel() {
      if (cancelled) return;
      cancelled = true;
      // What was on its way may still arrive, even the end.
      later(script.cancelTakesMs, () => {
        end({ type: "cancelled" });
      });
    },
  };
}

function eventsOf(batch: Batch): GenerationEvent[] {
  const text = "x".repeat(batch.charactersPerDelta);
  return Array.from({ length: batch.deltas }, () => ({ type: "text-delta", text }));
}

/** The parts of a deployment that a request goes through; the others are never asked. */
export function deploymentOf(contextTokens: number | null, start: Deployment["start"]): Deployment {
  const never = (): never => {
    throw new Error("the simulation does not get here");
  };
  return {
    recipe: never,
    prepare: never,
    whenReady: () => Promise.resolve(),
    start,
    describe: () => ({ ready: true, model: "simulated", contextTokens, takesTools: true }),
    check: () => Promise.resolve(),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}
