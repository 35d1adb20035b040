import { carried, converted, type EngineLosses, lost } from "./engine-losses.ts";

/** What becomes of a conversation on its way to the embedded engine. */
export const embeddedLosses: EngineLosses = {
  temperature: carried(),
  topP: carried(),
  topK: carried("from 1 on; at 0 the model's own holds"),
  stopSequences: carried("in text, neither in reasoning nor in calls"),
  seed: carried("of 32 bits; a larger one is folded"),
  presencePenalty: carried("over the last 512 tokens of the answer"),
  frequencyPenalty: carried("over the last 512 tokens of the answer"),
  reasoningEffort: lost(),
  responseFormat: carried("`json_object` is enforced by a grammar"),
  laterSystem: carried("as far as the model's template takes it, else the request is refused"),
  orderOfParts: converted("reasoning, text, then the calls"),
  earlierReasoning: converted("within the turn under way; that of earlier turns is left out"),
  emptyArguments: carried(),
  brokenArguments: carried("where the model's template writes JSON itself, as a JSON string"),
  severalCalls: carried("the answer itself has one call at most"),
  toolWithoutParameters: converted("an object without properties"),
  strictTools: lost("a forced call keeps to its schema whatever it says"),
  noTool: converted("the tools are not shown"),
  anyTool: carried("enforced by a grammar"),
  oneTool: carried("enforced by a grammar"),
  parallelToolCalls: lost("one call a turn"),
  loneSurrogates: converted("the replacement character"),
};
