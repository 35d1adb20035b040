import { limits } from "../limits.ts";

/** Upper bound of the input's tokens, from its size alone: no token is shorter than a byte. */
export function inputBound(bodyBytes: number, itemCount: number, toolCount: number): number {
  return (
    bodyBytes +
    limits.inputBoundPerItem * itemCount +
    limits.inputBoundPerTool * toolCount +
    limits.inputBoundPerRequest
  );
}

/**
 * A quick guess at the input's tokens, for what may be wrong by a factor: it cuts an allowance, it refuses nothing. A
 * body may be long by escapes, by images that are left out and by ignored fields, a prompt by what is added to it.
 */
export function inputTokensEstimate(bodyBytes: number, promptBytes: number): number {
  return Math.ceil(Math.min(bodyBytes, promptBytes) / limits.bytesPerTokenEstimate);
}
