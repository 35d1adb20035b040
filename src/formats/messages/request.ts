import type { Conversation, GenerationOptions } from "../../conversation/conversation.ts";
import { joinTurns } from "../../conversation/join-turns.ts";
import { Failure } from "../../failure.ts";
import { type Counted, ensureCountedLimits } from "../counted-limits.ts";
import {
  type Fields,
  isAbsent,
  readInputItems,
  readModel,
  readOptionalBoolean,
  readOptionalInteger,
  readOptionalNumber,
  readOutputTokens,
  readStopSequences,
  refuseJsonSchemaOutput,
} from "../read-fields.ts";
import { resolveToolChoice } from "../read-tools.ts";
import type { ParsedRequest, ReasoningVerifier } from "../wire-format.ts";
import { readMessagesTurns, readSystemTurns } from "./messages.ts";
import { readMessagesToolChoice, readMessagesTools } from "./tools.ts";
import type { MessagesEcho } from "./wire.ts";

/** Parses a Messages body. Throws a Failure that names the field. */
export function parseMessagesRequest(
  body: Fields,
  reasoning: ReasoningVerifier,
): ParsedRequest<MessagesEcho> {
  const echo = { model: readModel(body["model"]) };
  const { conversation, counted } = parseMessagesConversation(body, reasoning);
  const parsed = {
    conversation,
    options: readOptions(body),
    stream: readOptionalBoolean(body["stream"], "stream") ?? false,
    outputTokensRequested: readOutputTokens(body["max_tokens"], "max_tokens"),
    itemCount: counted.itemCount,
    toolCount: counted.tools.count,
    echo,
  };
  ensureCountedLimits(counted);
  return parsed;
}

/** The conversation of a Messages body, and the counts that its limits are about: the caller checks them, last. */
export function parseMessagesConversation(
  body: Fields,
  reasoning: ReasoningVerifier,
): {
  readonly conversation: Conversation;
  readonly counted: Counted;
} {
  refuseJsonSchemaOutput(body);
  refuseThread(body["thread"]);
  const items = readInputItems(body["messages"], "messages");
  const offered = readMessagesTools(body["tools"]);
  const { choice, parallelToolCalls } = readMessagesToolChoice(body["tool_choice"]);
  const turns = [...readSystemTurns(body["system"]), ...readMessagesTurns(items, reasoning)];
  return {
    conversation: {
      turns: joinTurns(turns),
      tools: offered.tools,
      toolChoice: resolveToolChoice(choice, offered),
      parallelToolCalls,
    },
    counted: { itemsParam: "messages", itemCount: items.length, tools: offered.counted },
  };
}

// Ignored, whatever their values: thinking, output_config, context_management, mcp_servers, container, betas,
// service_tier, metadata, safeguards and cache_control anywhere.
function readOptions(body: Fields): GenerationOptions {
  const wholeFromZero = { min: 0, max: Number.MAX_SAFE_INTEGER };
  return {
    // The vendor's own service stops at 1; engines take more, so up to 2 is passed on.
    temperature: readOptionalNumber(body["temperature"], "temperature", { min: 0, max: 2 }),
    topP: readOptionalNumber(body["top_p"], "top_p", { min: 0, max: 1 }),
    topK: readOptionalInteger(body["top_k"], "top_k", wholeFromZero),
    stopSequences: readStopSequences(body["stop_sequences"], "stop_sequences"),
    seed: null,
    presencePenalty: null,
    frequencyPenalty: null,
    reasoningEffort: null,
    responseFormat: "text",
  };
}

/** The SDK's tool runner sends whole histories once it reads these details. */
function refuseThread(value: unknown): void {
  if (isAbsent(value)) return;
  throw new Failure(
    "not_offered",
    "thread: conversations are not kept here. Leave it out and send the whole history in messages.",
    {
      param: "thread",
      messagesDetails: { error_code: "thread_unsupported_request", unsupported: ["thread"] },
    },
  );
}
