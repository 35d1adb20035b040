import { openEventOrderCheck } from "../../../src/conversation/check-event-order.ts";
import type { GenerationEvent, Usage } from "../../../src/conversation/generation-event.ts";
import { openAnswerReader } from "../../../src/deployment/openai-compatible/answer-reader.ts";
import { failureOfStreamError } from "../../../src/deployment/openai-compatible/engine-failure.ts";
import { Failure } from "../../../src/failure.ts";

/** A whole answer as it was understood. */
export interface ReadAnswer {
  readonly events: readonly GenerationEvent[];
  readonly ending: unknown;
  /** What came with each read that had events. */
  readonly running: readonly (Usage | null)[];
}

/** Reads the body of an answer, given in reads, as the deployment does; illegal orders of events throw. */
export function readAnswer(
  reads: readonly Uint8Array[],
  contentType = "text/event-stream",
): ReadAnswer {
  const order = openEventOrderCheck();
  const events: GenerationEvent[] = [];
  const running: (Usage | null)[] = [];
  let ids = 0;
  const reader = openAnswerReader(contentType, {
    newId: (prefix) => `${prefix}${(ids += 1)}`,
    inputTokensMax: 2_000,
    outputTokensMax: 1_000,
    failureOf: (error) =>
      failureOfStreamError(error, {
        inputTokensEstimate: 10,
        outputTokensMax: 100,
        contextTokens: null,
        retryAfter: null,
        nowMs: 0,
      }),
  });
  const take = () => {
    const batch = reader.takeEvents();
    order.add(batch);
    events.push(...batch);
    if (batch.length > 0) running.push(reader.takeUsage());
  };
  try {
    for (const read of reads) {
      reader.add(read);
      take();
    }
    reader.end();
    take();
    const ending = reader.finish();
    take();
    order.end();
    return { events, ending, running };
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    take();
    return { events, ending: { type: "failed", code: error.code }, running };
  }
}

/** Cuts bytes at the given places, whatever their order and size. */
export function cutAt(bytes: Uint8Array, cuts: readonly number[]): readonly Uint8Array[] {
  const reads: Uint8Array[] = [];
  let from = 0;
  for (const cut of cuts.map((each) => each % (bytes.length + 1)).toSorted((a, b) => a - b)) {
    reads.push(bytes.subarray(from, cut));
    from = cut;
  }
  reads.push(bytes.subarray(from));
  return reads;
}
