/**
 * What a model says, piece by piece. Parts come strictly one after another: a start is followed by its deltas and its
 * end before the next start, whatever order an engine used. No finish among them, so that settlement can come first.
 */
export type GenerationEvent =
  | { readonly type: "reasoning-start" }
  | { readonly type: "reasoning-delta"; readonly text: string }
  | { readonly type: "reasoning-end" }
  | { readonly type: "text-start" }
  | { readonly type: "text-delta"; readonly text: string }
  | { readonly type: "text-end" }
  | { readonly type: "tool-call-start"; readonly id: string; readonly name: string }
  | { readonly type: "tool-call-delta"; readonly arguments: string }
  | { readonly type: "tool-call-end" };

/** Tokens of one request. `cachedInputTokens` is part of `inputTokens`, `reasoningTokens` of `outputTokens`. */
export interface Usage {
  readonly inputTokens: number;
  readonly cachedInputTokens: number;
  readonly outputTokens: number;
  readonly reasoningTokens: number;
}

/** Why the model stopped. `tool-calls` exactly when a call was made and the answer was not cut. */
export type FinishReason = "stop" | "length" | "tool-calls" | "content-filter";

/** How a generation ended well, as the deployment reports it. `stopSequence`: the one that was met, where the engine names it. */
export interface EngineFinish {
  readonly reason: FinishReason;
  readonly stopSequence: string | null;
}

/** How a generation ended well, with the usage that was settled. */
export interface Finish extends EngineFinish {
  readonly usage: Usage;
}
