import type { Generation } from "../../conversation/collect-generation.ts";
import type { AssistantPart } from "../../conversation/conversation.ts";
import type { EngineFinish, Usage } from "../../conversation/generation-event.ts";
import type { AnswerContext, ReasoningSigner } from "../wire-format.ts";
import { parseToolInput } from "./parse-tool-input.ts";
import type {
  MessageBody,
  MessagesBlock,
  MessagesEcho,
  MessagesStop,
  MessagesStopReason,
  MessagesUsage,
} from "./wire.ts";

/** The body of a whole answer. */
export function buildMessage(
  generation: Generation,
  context: AnswerContext<MessagesEcho>,
): MessageBody {
  const { finish } = generation;
  return {
    id: context.newId("msg_"),
    type: "message",
    role: "assistant",
    model: context.echo.model,
    content: generation.parts.map((part) => buildBlock(part, context.reasoning)),
    ...buildStop(finish),
    usage: buildMessagesUsage(finish.usage),
  };
}

/** Why an answer stopped; with a stop sequence only where the deployment names the one that was met. */
export function buildStop({ reason, stopSequence }: EngineFinish): MessagesStop {
  if (reason === "stop" && stopSequence !== null)
    return { stop_reason: "stop_sequence", stop_sequence: stopSequence };
  return { stop_reason: stopReasons[reason], stop_sequence: null };
}

const stopReasons = {
  stop: "end_turn",
  length: "max_tokens",
  "tool-calls": "tool_use",
  "content-filter": "refusal",
} as const satisfies Record<EngineFinish["reason"], MessagesStopReason>;

/** Tokens of one request. `input_tokens` is without the cached ones, so that both add up to the prompt. */
export function buildMessagesUsage(usage: Usage): MessagesUsage {
  return {
    input_tokens: usage.inputTokens - usage.cachedInputTokens,
    output_tokens: usage.outputTokens,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: usage.cachedInputTokens,
  };
}

function buildBlock(part: AssistantPart, reasoning: ReasoningSigner): MessagesBlock {
  switch (part.type) {
    case "text":
      return { type: "text", text: part.text };
    case "reasoning": {
      const signer = reasoning.openSigner();
      signer.update(part.text);
      return { type: "thinking", thinking: part.text, signature: signer.finish() };
    }
    case "tool-call": {
      const input = parseToolInput(part.arguments);
      return { type: "tool_use", id: part.id, name: part.name, input };
    }
    default:
      return part satisfies never;
  }
}
