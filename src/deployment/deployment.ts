import type { Conversation, GenerationOptions } from "../conversation/conversation.ts";
import type { EngineFinish, GenerationEvent, Usage } from "../conversation/generation-event.ts";
import type { Failure } from "../failure.ts";

/**
 * Exactly one of these ends a generation. `usage`: as the deployment reported it, unchecked, NaN for figures
 * that it left out; null: it reported none.
 */
export type Ending =
  | { readonly type: "finished"; readonly finish: EngineFinish; readonly usage: Usage | null }
  | { readonly type: "failed"; readonly failure: Failure }
  | { readonly type: "cancelled" };

/** Called synchronously, never before `start` has returned; `events` once per upstream read. */
export interface GenerationSink {
  /** The deployment said yes: status and opening frames may go out. */
  accepted(): void;
  /** `batch` is empty where usage came alone, before the end. `usage`: running usage where the engine reports it, unchecked; NaN for figures that it left out. */
  events(batch: readonly GenerationEvent[], usage: Usage | null): void;
  /** Once, last. Every part that was begun has been ended when `ending` is "finished". */
  end(ending: Ending): void;
}

/** A generation under way. After `cancel`, `end` comes with "cancelled" unless it came already. */
export interface RunningGeneration {
  pause(): void;
  resume(): void;
  cancel(): void;
}

/** What is sent to the deployment, but for the output limit, which is spliced in at the start. */
export interface Prompt {
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** The most tokens that it can be; absent: the most that any request can be. */
  readonly inputTokensMax?: number;
  /** W3C trace context of the span that asks; absent: there is none. */
  readonly traceparent?: string;
}

/** How one deployment wants its prompts: plain data, with which any thread can prepare one. */
export type PromptSettings = { readonly kind: string } & Readonly<Record<string, unknown>>;

/** What is known of a deployment. */
export interface DeploymentDescription {
  /** Whether a generation would be tried now. */
  readonly ready: boolean;
  /** The deployment's own name of its model; never shown to callers. */
  readonly model: string;
  readonly contextTokens: number | null;
  readonly takesTools: boolean;
}

/** Where tokens come from. */
export interface Deployment extends AsyncDisposable {
  /** Changes when the deployment's model becomes known; read it for every request. */
  promptSettings(): PromptSettings;
  /** Pure, no I/O. Throws a Failure for what this deployment cannot take. */
  prepare(conversation: Conversation, options: GenerationOptions): Prompt;
  /**
   * Resolves when a generation may be tried (at once when ready); rejects with a Failure (`overloaded`, with retry
   * advice) when that does not come soon. Called before anything is reserved.
   */
  whenReady(signal: AbortSignal): Promise<void>;
  /** Never throws: what goes wrong comes as `end`. */
  start(prompt: Prompt, outputTokensMax: number, sink: GenerationSink): RunningGeneration;
  describe(): DeploymentDescription;
  /**
   * The tokens of a prompt by the deployment's own tokenizer; null: it has none, or does not answer in time. Never rejects,
   * and takes at most `limits.countTokensAskMs`.
   */
  countTokens?(prompt: Prompt, signal: AbortSignal): Promise<number | null>;
  /** Asks the deployment whether it is there; rejects with a Failure. For /readyz and doctor. */
  check(signal: AbortSignal): Promise<void>;
}
