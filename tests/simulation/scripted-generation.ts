import type {
  Deployment,
  Ending,
  GenerationSink,
  RunningGeneration,
} from "../../src/deployment/deployment.ts";
import type { GenerationEvent, Usage } from "../../src/conversation/generation-event.ts";
import { Failure } from "../../src/failure.ts";
import type { Batch, FigureKind, Report, RequestPlan } from "./plan.ts";
import type { Process, World } from "./world.ts";

/** What a deployment has said so far, as it said it. */
export interface Said {
  accepted: boolean;
  deltas: number;
  /** Tokens of its output, as they are counted where it does not tell. */
  counted: number;
  /** The last of its running figures that were true. */
  runningInput: number | null;
  runningOutput: number | null;
  ending: Ending["type"] | null;
}

/** Tokens that a delta of so many characters is counted as. */
const countedOf = { 1: 1, 3: 1, 40: 10 } as const;

/** The ways in which a figure cannot be. */
const absurd: Readonly<Record<Exclude<FigureKind, "true">, number>> = {
  negative: -1,
  fractional: 2.5,
  missing: Number.NaN,
  above: 9_000_000,
  zero: 0,
};

/** The true output: never what is counted, so that one is not taken for the other. */
export function trueOutput({ counted }: Said): number {
  return counted > 1 ? counted - 1 : counted;
}

/** Follows the script of a request; what it says is delivered to the replica that asked. */
export function startScripted(
  plan: RequestPlan,
  sink: GenerationSink,
  parts: {
    readonly world: World;
    readonly replica: Process;
    readonly said: Said;
    readonly outputTokensMax: number;
  },
): RunningGeneration {
  const { outputTokensMax, replica, said, world } = parts;
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
    const reported = script.reported === null ? null : usageOf(script.reported);
    if (script.ending === "finished")
      later(1, () => {
        end({ type: "finished", finish: { reason: "stop", stopSequence: null }, usage: reported });
      });
    if (script.ending === "failed")
      later(1, () => {
        end({ type: "failed", failure: new Failure("deployment_failed", "Simulated.") });
      });
  }

  function usageOf(report: Report): Usage {
    const { input, output } = report;
    return {
      inputTokens: input === "true" ? script.inputTokens : absurd[input],
      cachedInputTokens: script.cachedTokens,
      outputTokens: output === "true" ? trueOutput(said) : absurd[output],
      reasoningTokens: 0,
    };
  }

  function say(batch: Batch): void {
    const perDelta = countedOf[script.charactersPerDelta];
    const deltas = Math.min(batch.deltas, Math.floor((outputTokensMax - said.counted) / perDelta));
    said.deltas += deltas;
    said.counted += deltas * perDelta;
    const { running } = batch;
    if (running?.input === "true") said.runningInput = script.inputTokens;
    if (running?.output === "true" && trueOutput(said) > 0) said.runningOutput = trueOutput(said);
    world.note(() => `deployment  ${plan.id} says ${String(deltas)} deltas`);
    const text = "x".repeat(script.charactersPerDelta);
    sink.events(eventsOf(deltas, text), running === null ? null : usageOf(running));
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

function eventsOf(count: number, text: string): GenerationEvent[] {
  const deltas = Array.from({ length: count }, () => ({ type: "text-delta", text }) as const);
  return [{ type: "text-start" }, ...deltas, { type: "text-end" }];
}

/** The parts of a deployment that a request goes through; the others are never asked. */
export function deploymentOf(contextTokens: number | null, start: Deployment["start"]): Deployment {
  const never = (): never => {
    throw new Error("the simulation does not get here");
  };
  return {
    promptSettings: never,
    prepare: never,
    whenReady: () => Promise.resolve(),
    start,
    describe: () => ({ ready: true, model: "simulated", contextTokens, takesTools: true }),
    check: () => Promise.resolve(),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}
