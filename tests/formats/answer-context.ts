import type { GenerationEvent } from "../../src/conversation/generation-event.ts";
import type { Finish } from "../../src/conversation/generation-event.ts";
import { Failure } from "../../src/failure.ts";
import type { AnswerContext, ReasoningVerifier } from "../../src/formats/wire-format.ts";

/** A context whose signatures can be read: `signed(...)` of the pieces as they came. */
export function openAnswerContext<Echo>(echo: Echo): AnswerContext<Echo> {
  let ids = 0;
  return {
    createdAtMs: 1_700_000_000_999,
    echo,
    inputTokensEstimate: 21,
    outputTokensMax: 100,
    newId: (prefix) => `${prefix}${String((ids += 1))}`,
    now: () => 1_700_000_001_999,
    reasoning: {
      seal: (text) => `sealed(${text})`,
      openSigner() {
        let text = "";
        return {
          update(piece) {
            text += piece;
          },
          finish: () => `signed(${text})`,
        };
      },
    },
    requestId: "req_1",
  };
}

/** Takes back what `openAnswerContext` signed and nothing else. */
export const signedOnly: ReasoningVerifier = {
  unseal: () => null,
  verify: (text, signature) => signature === `signed(${text})`,
};

/** A finish with usage in which every number differs. */
export function finishOf(reason: Finish["reason"], stopSequence: string | null = null): Finish {
  const usage = { inputTokens: 100, cachedInputTokens: 30, outputTokens: 7, reasoningTokens: 2 };
  return { reason, stopSequence, usage };
}

/** The events of one part. */
export function partEvents(
  type: "text" | "reasoning",
  ...texts: readonly string[]
): readonly GenerationEvent[] {
  return [
    { type: `${type}-start` },
    ...texts.map((text) => ({ type: `${type}-delta` as const, text })),
    { type: `${type}-end` },
  ];
}

/** The events of one call. */
export function callEvents(
  id: string,
  name: string,
  ...pieces: readonly string[]
): readonly GenerationEvent[] {
  return [
    { type: "tool-call-start", id, name },
    ...pieces.map((piece) => ({ type: "tool-call-delta" as const, arguments: piece })),
    { type: "tool-call-end" },
  ];
}

/** The failure that a refused request is answered with. */
export function refusalOf(act: () => unknown): Failure {
  try {
    act();
  } catch (error) {
    if (error instanceof Failure) return error;
    throw error;
  }
  throw new Error("nothing was refused");
}

/** The data of every frame, parsed; `[DONE]` stays text. */
export function dataOf(frames: string): readonly unknown[] {
  return frames
    .split("\n")
    .filter((line) => line.startsWith("data: "))
    .map((line) => (line === "data: [DONE]" ? "[DONE]" : JSON.parse(line.slice(6))));
}
