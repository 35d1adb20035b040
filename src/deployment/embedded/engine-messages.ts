import type { FailureData } from "../../failure.ts";
import type { FinishReason, Usage } from "../../conversation/generation-event.ts";

/** Sampling that applies where the caller said nothing; what a model's authors recommend, or llama.cpp's defaults. */
export interface SamplingDefaults {
  readonly temperature: number;
  readonly topP: number;
  readonly topK: number;
  readonly minP: number;
  /** By how much what was said in the last tokens becomes less likely; 1: not at all. */
  readonly repeatPenalty: number;
}

/** What the child loads, once, before anything else. */
export interface LoadOrder {
  readonly type: "load";
  readonly modelFile: string;
  /** null: what the model was trained for, at most 8,192. */
  readonly contextTokens: number | null;
  /** null: by free memory, at most four. */
  readonly slots: number | null;
  /** null: as many as the machine has to spare. */
  readonly threads: number | null;
  readonly sampling: SamplingDefaults;
  /** Whether a GPU may be used where one is found. */
  readonly gpu: boolean;
}

/** What the service tells the child. */
export type EngineOrder =
  | LoadOrder
  | {
      readonly type: "generate";
      readonly id: number;
      /** The bytes of the Prompt, as `prepareEmbeddedPrompt` made them. */
      readonly prompt: Uint8Array;
      readonly outputTokensMax: number;
    }
  | { readonly type: "pause" | "resume" | "cancel"; readonly id: number }
  | { readonly type: "count" };

/** What the child did since it started; tests compare these before and after. */
export interface EngineCounts {
  /** Slices of prompts evaluated. */
  readonly slices: number;
  /** Evaluations that gave a token. */
  readonly steps: number;
  /** What went to the model at once: slices and steps of one generation, or of several. */
  readonly batches: number;
  /** Generations that hold a slot. */
  readonly running: number;
  /** Generations that wait for one. */
  readonly queued: number;
}

/** What is known once the model is loaded. */
export interface EngineFacts {
  readonly model: string;
  readonly contextTokens: number;
  /** Whether the context has room for tools, and the model was trained on conversations. */
  readonly takesTools: boolean;
  readonly slots: number;
  /** At most. */
  readonly threads: number;
  /** Which kind of GPU runs it; null: the processor does. */
  readonly gpu: string | null;
  /** Names of its GPUs; null without any. */
  readonly devices: string | null;
  /** Which llama.cpp it is, and how it was built. */
  readonly build: string;
  readonly loadMs: number;
}

/** One thing that happened to one generation. */
export type EngineNews =
  | { readonly id: number; readonly type: "accepted" }
  /** Prompt or text went on without text to show yet. */
  | { readonly id: number; readonly type: "progress"; readonly usage: Usage }
  | {
      readonly id: number;
      readonly type: "text";
      readonly kind: "text" | "reasoning";
      readonly text: string;
      readonly usage: Usage;
    }
  /** A call began. What follows of it, until something else or the end comes, are its arguments. */
  | {
      readonly id: number;
      readonly type: "call";
      readonly callId: string;
      readonly name: string;
      readonly usage: Usage;
    }
  | {
      readonly id: number;
      readonly type: "arguments";
      readonly text: string;
      readonly usage: Usage;
    }
  | {
      readonly id: number;
      readonly type: "finished";
      readonly reason: FinishReason;
      readonly stopSequence: string | null;
      readonly usage: Usage;
    }
  | { readonly id: number; readonly type: "failed"; readonly failure: FailureData };

/** What the child tells the service. `news` holds everything of one turn of its event loop. */
export type EngineReport =
  | { readonly type: "loaded"; readonly facts: EngineFacts }
  | { readonly type: "load-failed"; readonly message: string }
  | { readonly type: "warning"; readonly message: string }
  | { readonly type: "news"; readonly news: readonly EngineNews[] }
  | { readonly type: "counts"; readonly counts: EngineCounts };
