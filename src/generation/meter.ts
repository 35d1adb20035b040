import { credibleUsage, unknownUsage } from "../conversation/credible-usage.ts";
import type { GenerationEvent, Usage } from "../conversation/generation-event.ts";
import { limits } from "../limits.ts";

/** What one generation has used so far. */
export interface Meter {
  /** Whether the model said anything yet: from then on a client that leaves pays for what was made. */
  readonly outputBegan: boolean;
  add(batch: readonly GenerationEvent[], running: Usage | null): void;
  /** Usage up to now, in tokens; `reported` (what the deployment said at the end) wins wherever it is credible. */
  usage(reported: Usage | null): Usage;
}

/** What is known of a generation before it begins, in tokens. */
export interface MeterFacts {
  /** Stands in until the deployment says what the input was. */
  readonly inputTokensEstimate: number;
  /** The bound that was admitted. */
  readonly inputTokensMax: number;
  /** The allowance that was sent. */
  readonly outputTokensMax: number;
}

/** Opens a meter. No figure of its usage exceeds what was admitted, whatever the deployment says. */
export function openMeter(facts: MeterFacts): Meter {
  const { inputTokensMax, outputTokensMax } = facts;
  let running: Usage = unknownUsage;
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

  function bounds() {
    return { inputTokensMax, outputTokensMin: deltas > 0 ? 1 : 0, outputTokensMax };
  }

  function counted(): Usage {
    // Most engines send one token a delta; for those that send several, the characters are counted.
    const tokens = Math.max(deltas, Math.ceil(characters / limits.charactersPerTokenCount));
    const outputTokens = Math.min(tokens, outputTokensMax);
    return {
      inputTokens: Math.min(facts.inputTokensEstimate, inputTokensMax),
      cachedInputTokens: 0,
      outputTokens,
      reasoningTokens: Math.min(reasoningDeltas, outputTokens),
    };
  }

  return {
    get outputBegan() {
      return deltas > 0;
    },
    add(batch, usage) {
      for (const event of batch) count(event);
      if (usage !== null) running = credibleUsage(usage, running, bounds());
    },
    usage(reported) {
      // `add` may have taken 0 output tokens from before the first delta; after it they are not credible.
      const before = credibleUsage(running, counted(), bounds());
      return reported === null ? before : credibleUsage(reported, before, bounds());
    },
  };
}
