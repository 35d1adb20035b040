import type { Generation } from "../../conversation/collect-generation.ts";
import type { ToolCall } from "../../conversation/conversation.ts";
import type { FinishReason, Usage } from "../../conversation/generation-event.ts";
import { decodeCustomToolInput } from "../custom-tool-input.ts";
import type { AnswerContext } from "../wire-format.ts";
import type {
  ChatCompletionBody,
  ChatCompletionsEcho,
  ChatFinishReason,
  ChatToolCall,
  ChatUsage,
} from "./wire.ts";

/** The body of a whole answer. */
export function buildChatCompletion(
  generation: Generation,
  context: AnswerContext<ChatCompletionsEcho>,
): ChatCompletionBody {
  const texts: string[] = [];
  const reasonings: string[] = [];
  const toolCalls: ChatToolCall[] = [];
  for (const part of generation.parts) {
    if (part.type === "text") texts.push(part.text);
    else if (part.type === "reasoning") reasonings.push(part.text);
    else toolCalls.push(buildToolCall(part, context.echo.customTools));
  }
  const text = texts.join("");
  return {
    id: context.newId("chatcmpl-"),
    object: "chat.completion",
    created: Math.floor(context.createdAtMs / 1000),
    model: context.echo.model,
    choices: [
      {
        index: 0,
        message: {
          role: "assistant",
          content: text === "" && toolCalls.length > 0 ? null : text,
          refusal: null,
          ...(reasonings.length === 0 ? {} : { reasoning_content: reasonings.join("") }),
          ...(toolCalls.length === 0 ? {} : { tool_calls: toolCalls }),
        },
        logprobs: null,
        finish_reason: buildFinishReason(generation.finish.reason),
      },
    ],
    usage: buildChatUsage(generation.finish.usage),
  };
}

/** Why an answer stopped, as this format has it. */
export function buildFinishReason(reason: FinishReason): ChatFinishReason {
  switch (reason) {
    case "tool-calls":
      return "tool_calls";
    case "content-filter":
      return "content_filter";
    case "stop":
    case "length":
      return reason;
    default:
      return reason satisfies never;
  }
}

/** Tokens of one request, as this format has them. */
export function buildChatUsage(usage: Usage): ChatUsage {
  return {
    prompt_tokens: usage.inputTokens,
    completion_tokens: usage.outputTokens,
    total_tokens: usage.inputTokens + usage.outputTokens,
    prompt_tokens_details: { cached_tokens: usage.cachedInputTokens },
    completion_tokens_details: { reasoning_tokens: usage.reasoningTokens },
  };
}

function buildToolCall(call: ToolCall, customTools: readonly string[]): ChatToolCall {
  const { id, name } = call;
  return customTools.includes(name)
    ? { id, type: "custom", custom: { name, input: decodeCustomToolInput(call.arguments) } }
    : { id, type: "function", function: { name, arguments: call.arguments } };
}
