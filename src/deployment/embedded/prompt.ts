import type { Conversation, GenerationOptions } from "../../conversation/conversation.ts";
import type { Prompt, PromptRecipe } from "../deployment.ts";

/** The recipe of every embedded engine: the template lies in the model's file, which only the child reads. */
export const embeddedRecipe: PromptRecipe = { kind: "embedded" };

/** What the child reads from a Prompt's bytes. */
export interface EmbeddedPrompt {
  readonly conversation: Conversation;
  readonly options: GenerationOptions;
}

const encoder = new TextEncoder();

/** Pure; the bytes are JSON, rendered and counted by the child. */
export function prepareEmbeddedPrompt(
  _recipe: PromptRecipe,
  conversation: Conversation,
  options: GenerationOptions,
): Prompt {
  const prompt: EmbeddedPrompt = { conversation, options };
  return { bytes: encoder.encode(JSON.stringify(prompt)) };
}

const decoder = new TextDecoder();

/** What `prepareEmbeddedPrompt` was given; our own bytes, so that nothing is checked again. */
export function readEmbeddedPrompt(bytes: Uint8Array): EmbeddedPrompt {
  return JSON.parse(decoder.decode(bytes)) as EmbeddedPrompt;
}
