import type { WireFormatName } from "../../../src/formats/wire-format.ts";
import { chatCompletionsExamples } from "./chat-completions.ts";
import type { Example, SealedReasoning } from "./example.ts";
import { messagesExamples } from "./messages.ts";
import { responsesExamples } from "./responses.ts";

/** The examples of a format's table, by topics. */
export function examplesOf(
  format: WireFormatName,
  seal: SealedReasoning,
): Readonly<Record<string, readonly Example[]>> {
  if (format === "messages") return messagesExamples(seal);
  return format === "responses" ? responsesExamples(seal) : chatCompletionsExamples;
}
