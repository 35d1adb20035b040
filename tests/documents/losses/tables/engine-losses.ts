import type { GenerationOptions } from "../../../../src/conversation/conversation.ts";

/** What becomes of a part of a conversation on its way to an engine. lost: the engine hears nothing of it. */
export interface EngineLoss {
  readonly fate: "carried" | "converted" | "lost";
  /** What it becomes; "": there is nothing to say. */
  readonly how: string;
}

const conversationTopics = [
  "laterSystem",
  "orderOfParts",
  "earlierReasoning",
  "emptyArguments",
  "brokenArguments",
  "severalCalls",
  "toolWithoutParameters",
  "strictTools",
  "noTool",
  "anyTool",
  "oneTool",
  "parallelToolCalls",
  "loneSurrogates",
] as const;

// Whole by its type: an option more does not compile without its place here.
const optionTopics: Readonly<Record<keyof GenerationOptions, true>> = {
  temperature: true,
  topP: true,
  topK: true,
  stopSequences: true,
  seed: true,
  presencePenalty: true,
  frequencyPenalty: true,
  reasoningEffort: true,
  responseFormat: true,
};

/** What a conversation has that an engine may not take: every option, and some of what is said. */
export type EngineTopic = keyof GenerationOptions | (typeof conversationTopics)[number];

/** All of them, in the order in which documents tell them. */
export const engineTopics: readonly EngineTopic[] = [
  ...(Object.keys(optionTopics) as (keyof GenerationOptions)[]),
  ...conversationTopics,
];

/** The table of one engine: docs/losses.md shows it, and tests hold a deployment to it. */
export type EngineLosses = Readonly<Record<EngineTopic, EngineLoss>>;

/** It goes to the engine as it is. */
export function carried(how = ""): EngineLoss {
  return { fate: "carried", how };
}

/** It goes to the engine in another form. */
export function converted(how: string): EngineLoss {
  return { fate: "converted", how };
}

/** The engine hears nothing of it. */
export function lost(how = ""): EngineLoss {
  return { fate: "lost", how };
}
