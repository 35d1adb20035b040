import { openEventOrderCheck } from "../../src/conversation/check-event-order.ts";
import type { GenerationEvent, Usage } from "../../src/conversation/generation-event.ts";
import type {
  Deployment,
  Ending,
  GenerationSink,
  Prompt,
  RunningGeneration,
} from "../../src/deployment/deployment.ts";

/** More than any answer of a test has. */
const outputTokensMax = 65_536;

/** What a sink was called with. The promise of the end rejects when the deployment did what its interface forbids. */
export interface Recording {
  readonly generation: RunningGeneration;
  readonly acceptedCalls: number;
  /** Resolves when it was accepted. */
  readonly accepted: Promise<void>;
  readonly batches: readonly (readonly GenerationEvent[])[];
  readonly usages: readonly (Usage | null)[];
  /** All text of the answer. */
  readonly text: string;
  readonly ended: Promise<Ending>;
  /** Resolves when the first events have come. */
  readonly begun: Promise<void>;
}

/** Starts a generation and records it; `onEvents` runs in the middle of each call of `events`. */
export function record(
  deployment: Pick<Deployment, "start">,
  prompt: Prompt,
  onEvents: (batch: readonly GenerationEvent[], generation: RunningGeneration) => void = () =>
    undefined,
): Recording {
  const order = openEventOrderCheck();
  const batches: (readonly GenerationEvent[])[] = [];
  const usages: (Usage | null)[] = [];
  const ended = Promise.withResolvers<Ending>();
  const accepted = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  let acceptedCalls = 0;
  let over = false;
  let started: RunningGeneration | null = null;

  function check(what: string): void {
    if (over) throw new Error(`${what} was called after the end`);
    if (started === null) ended.reject(new Error(`${what} was called before start has returned`));
  }

  const sink: GenerationSink = {
    accepted() {
      check("accepted");
      acceptedCalls += 1;
      accepted.resolve();
    },
    events(batch, usage) {
      check("events");
      order.add(batch);
      batches.push(batch);
      usages.push(usage);
      begun.resolve();
      if (started !== null) onEvents(batch, started);
    },
    end(ending) {
      check("end");
      over = true;
      try {
        if (ending.type === "finished") order.end();
        ended.resolve(ending);
      } catch (error) {
        ended.reject(error);
      }
    },
  };
  const generation = deployment.start(prompt, outputTokensMax, sink);
  started = generation;
  return {
    generation,
    get acceptedCalls() {
      return acceptedCalls;
    },
    accepted: accepted.promise,
    batches,
    usages,
    get text() {
      return batches
        .flat()
        .map((event) => (event.type === "text-delta" ? event.text : ""))
        .join("");
    },
    ended: ended.promise,
    begun: begun.promise,
  };
}
