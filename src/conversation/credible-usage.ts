import type { Usage } from "./generation-event.ts";

/** Between which figures the usage of one generation can be, in tokens. */
export interface UsageBounds {
  readonly inputTokensMax: number;
  /** 1 once output began: an engine that says 0 then has not counted. */
  readonly outputTokensMin: number;
  readonly outputTokensMax: number;
}

/** A usage of which nothing is known: figures that are not known are NaN. */
export const unknownUsage: Usage = {
  inputTokens: Number.NaN,
  cachedInputTokens: Number.NaN,
  outputTokens: Number.NaN,
  reasoningTokens: Number.NaN,
};

/**
 * The figures of `found` that can be, and those of `before` in place of the others: the rule of every settlement. What is
 * part of a figure (cached of input, reasoning of output) is taken with it, and is never more than the whole.
 */
export function credibleUsage(found: Usage, before: Usage, bounds: UsageBounds): Usage {
  const { inputTokens, outputTokens } = found;
  const hasInput = isBetween(inputTokens, 0, bounds.inputTokensMax);
  const hasOutput = isBetween(outputTokens, bounds.outputTokensMin, bounds.outputTokensMax);
  return {
    inputTokens: hasInput ? inputTokens : before.inputTokens,
    cachedInputTokens: hasInput
      ? partOf(inputTokens, found.cachedInputTokens, before.cachedInputTokens)
      : before.cachedInputTokens,
    outputTokens: hasOutput ? outputTokens : before.outputTokens,
    reasoningTokens: hasOutput
      ? partOf(outputTokens, found.reasoningTokens, before.reasoningTokens)
      : before.reasoningTokens,
  };
}

function isBetween(figure: number, least: number, most: number): boolean {
  return Number.isSafeInteger(figure) && figure >= least && figure <= most;
}

function partOf(whole: number, found: number, before: number): number {
  if (isBetween(found, 0, Number.MAX_SAFE_INTEGER)) return Math.min(found, whole);
  return Number.isNaN(before) ? 0 : Math.min(before, whole);
}
