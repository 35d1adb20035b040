import type { GenerationEvent, Usage } from "../conversation/generation-event.ts";
import { limits } from "../limits.ts";

/** What one generation has used so far. */
export interface Meter {
  /** Whether the model said anything yet: from then on a client that leaves pays for what was made. */
  readonly outputBegan: boolean;
  add(batch: readonly GenerationEvent[], running: Usage | null): void;
  /** Usage up to now, in tokens; `reported` (the deployment's last word) wins wherever it makes sense. */
  usage(reported: Usage | null): Usage;
}

/** Opens a meter. `inputTokensEstimate` stands in until the deployment says what the input was. */
export function openMeter(inputTokensEstimate: number): Meter {
  let running: Usage | null = null;
  let deltas = 0;
  let characters = 0;
  let reasoningDeltas = 0;

  function count(event: GenerationEvent): void {
    switch (event.type) {
      case "reasoning-delta":
        reasoningDeltas += 1;
        deltas += 1;
        characters += event.text.length;
        return;
      case "text-delta":
        deltas += 1;
        characters += event.text.length;
        return;
      case "tool-call-delta":
        deltas += 1;
        characters += event.arguments.length;
        return;
      case "tool-call-start":
        deltas += 1;
        return;
      case "reasoning-start":
      case "reasoning-end":
      case "text-start":
      case "text-end":
      case "tool-call-end":
        return;
      default:
        event satisfies never;
    }
  }

  return {
    get outputBegan() {
      return deltas > 0;
    },
    add(batch, usage) {
      if (usage !== null) running = usage;
      for (const event of batch) count(event);
    },
    usage(reported) {
      // Engines send a token a delta; where they send more at once, the length tells.
      const outputCounted = Math.max(
        deltas,
        Math.ceil(characters / limits.charactersPerTokenCount),
      );
      const counted = {
        inputTokens: inputTokensEstimate,
        cachedInputTokens: 0,
        outputTokens: outputCounted,
        reasoningTokens: Math.min(reasoningDeltas, outputCounted),
      };
      return sensible([reported, running, counted]);
    },
  };
}

/** Field by field the first figure that can be a number of tokens. */
function sensible(candidates: readonly (Usage | null)[]): Usage {
  const pick = (field: keyof Usage): number => {
    for (const candidate of candidates) {
      const value = candidate?.[field];
      if (value !== undefined && Number.isSafeInteger(value) && value >= 0) return value;
    }
    return 0;
  };
  const inputTokens = pick("inputTokens");
  const outputTokens = pick("outputTokens");
  return {
    inputTokens,
    cachedInputTokens: Math.min(pick("cachedInputTokens"), inputTokens),
    outputTokens,
    reasoningTokens: Math.min(pick("reasoningTokens"), outputTokens),
  };
}
