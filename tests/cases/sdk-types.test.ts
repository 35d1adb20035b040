import type { ModelInfo } from "@anthropic-ai/sdk/resources/models";
import type {
  ContentBlock,
  Message,
  MessageCreateParams,
  MessageDeltaUsage,
  MessageTokensCount,
  RawMessageDeltaEvent,
  RawMessageStreamEvent,
  TextBlock,
  ThinkingBlock,
  ToolUseBlock,
  Usage,
} from "@anthropic-ai/sdk/resources/messages/messages";
import type { ErrorResponse, ErrorType } from "@anthropic-ai/sdk/resources/shared";
import type {
  ChatCompletion,
  ChatCompletionChunk as SdkChatCompletionChunk,
  ChatCompletionCreateParams,
} from "openai/resources/chat/completions/completions";
import type { Model } from "openai/resources/models";
import type {
  Response,
  ResponseCreateParams,
  ResponseOutputItem,
  ResponseStreamEvent,
} from "openai/resources/responses/responses";
import type { ErrorObject } from "openai/resources/shared";
import { describe, expect, it } from "vitest";
import type { z } from "zod";
import { chatCompletionsFormat } from "../../src/formats/chat-completions/format.ts";
import type {
  ChatCompletionBody,
  ChatCompletionChunk,
} from "../../src/formats/chat-completions/wire.ts";
import type { MessagesErrorBody, OpenaiErrorBody } from "../../src/formats/error-wire.ts";
import { messagesFormat } from "../../src/formats/messages/format.ts";
import type {
  MessageBody,
  MessagesBlock,
  MessagesStreamEvent,
  MessagesUsage,
} from "../../src/formats/messages/wire.ts";
import { responsesFormat } from "../../src/formats/responses/format.ts";
import type {
  OutputItem,
  ResponsesBody,
  ResponsesStreamEvent,
} from "../../src/formats/responses/wire.ts";
import type {
  messagesModelSchema,
  openaiModelSchema,
  tokenCountSchema,
} from "../wire/service-schema.ts";
import { testReasoning } from "./context.ts";

/** The SDKs' types have no readonly members; nothing else is changed for the comparison. */
type Writable<Value> = Value extends object
  ? { -readonly [Key in keyof Value]: Writable<Value[Key]> }
  : Value;

/** Compiles only when what is sent can be read through the SDK's type. */
type Readable<Ours extends Theirs, Theirs> = Ours;

type ChatChunk = Writable<ChatCompletionChunk>;
type ResponsesEvent = Writable<ResponsesStreamEvent>;
type ResponsesState = Extract<ResponsesEvent, { readonly response: unknown }>;
type MessagesEvent = Writable<MessagesStreamEvent>;
type MessagesEventOf<Type> = Extract<MessagesEvent, { readonly type: Type }>;
type Block<Type> = Extract<MessagesBlock, { readonly type: Type }>;
/** What the SDK's own events have at their beginning, without what is added to blocks by tools that run on a server. */
type StartedBlock =
  | Omit<TextBlock, "citations">
  | ThinkingBlock
  | Omit<ToolUseBlock, "caller">
  | ContentBlock;

/** Every type here is a comparison that the compiler makes. */
export interface ComparedTypes {
  readonly chat: Readable<Writable<ChatCompletionBody>, ChatCompletion>;
  /** Reasoning is an extension that engines and clients share. */
  readonly chatChunk: Readable<
    ChatChunk["choices"][number],
    Omit<SdkChatCompletionChunk.Choice, "delta"> & {
      delta: SdkChatCompletionChunk.Choice["delta"] & { reasoning_content?: string };
    }
  >;
  readonly chatChunkHead: Readable<
    Omit<ChatChunk, "choices">,
    Omit<SdkChatCompletionChunk, "choices">
  >;
  /** Echoes are compared at run time: they are what the client sent. `output_text` is the SDK's own, `store` is not in its type. */
  readonly response: Readable<
    Omit<
      Writable<ResponsesBody>,
      "output" | "tools" | "tool_choice" | "usage" | "error" | "reasoning" | "metadata"
    >,
    Omit<
      Response,
      | "output"
      | "tools"
      | "tool_choice"
      | "usage"
      | "error"
      | "reasoning"
      | "metadata"
      | "output_text"
    >
  >;
  readonly usage: Readable<
    NonNullable<Writable<ResponsesBody>["usage"]>,
    NonNullable<Response["usage"]>
  >;
  readonly item: Readable<Writable<OutputItem>, ResponseOutputItem>;
  readonly responsesEvent: Readable<Exclude<ResponsesEvent, ResponsesState>, ResponseStreamEvent>;
  /** What these carry is compared above. */
  readonly responsesState: Readable<
    Omit<ResponsesState, "response">,
    Omit<Extract<ResponseStreamEvent, { readonly response: Response }>, "response">
  >;
  /** The SDK's type has members of hosted tools and tiers beside these, which are not offered. */
  readonly message: Readable<
    Omit<Writable<MessageBody>, "content" | "usage">,
    Omit<Message, "content" | "usage" | "container" | "diagnostics" | "stop_details">
  >;
  readonly messagesUsage: Readable<MessagesUsage, Pick<Usage, keyof MessagesUsage>>;
  readonly text: Readable<Block<"text">, Omit<TextBlock, "citations">>;
  readonly thinking: Readable<Block<"thinking">, ThinkingBlock>;
  readonly call: Readable<Block<"tool_use">, Omit<ToolUseBlock, "caller">>;
  readonly opening: Readable<
    Omit<MessagesEventOf<"message_start">["message"], "usage">,
    Omit<Message, "usage" | "container" | "diagnostics" | "stop_details">
  >;
  readonly blockStart: Readable<
    MessagesEventOf<"content_block_start">,
    { type: "content_block_start"; index: number; content_block: StartedBlock }
  >;
  readonly messageDelta: Readable<
    MessagesEventOf<"message_delta">,
    {
      type: "message_delta";
      delta: Omit<RawMessageDeltaEvent.Delta, "container" | "stop_details">;
      usage: Pick<MessageDeltaUsage, keyof MessagesUsage>;
    }
  >;
  /** A ping is not in the SDK's type, which passes over it. */
  readonly messagesEvent: Readable<
    Exclude<
      MessagesEvent,
      MessagesEventOf<"message_start" | "content_block_start" | "message_delta" | "ping">
    >,
    RawMessageStreamEvent
  >;
  readonly openaiError: Readable<OpenaiErrorBody["error"], ErrorObject>;
  /** The word for a body that is too large is in the vendor's documents, not in its type. */
  readonly messagesErrorType: Readable<
    Exclude<MessagesErrorBody["error"]["type"], "request_too_large">,
    ErrorType
  >;
  readonly messagesError: Readable<Omit<MessagesErrorBody, "error">, Omit<ErrorResponse, "error">>;
  readonly model: Readable<z.infer<typeof openaiModelSchema>, Model>;
  /** Of lifecycles and sizes the service knows nothing. */
  readonly messagesModel: Readable<
    z.infer<typeof messagesModelSchema>,
    Pick<ModelInfo, "type" | "id" | "display_name" | "created_at">
  >;
  readonly tokenCount: Readable<z.infer<typeof tokenCountSchema>, MessageTokensCount>;
}

const schema = { type: "object" as const, properties: { city: { type: "string" } } };

const chat = {
  model: "service-llm",
  messages: [
    { role: "system", content: "Be brief." },
    { role: "developer", content: [{ type: "text", text: "Use metres." }] },
    { role: "user", content: [{ type: "text", text: "Weather?" }] },
    {
      role: "assistant",
      content: null,
      tool_calls: [
        { id: "call_1", type: "function", function: { name: "weather", arguments: "{}" } },
        { id: "call_2", type: "custom", custom: { name: "run", input: "x" } },
      ],
    },
    { role: "tool", tool_call_id: "call_1", content: "Rain" },
    { role: "tool", tool_call_id: "call_2", content: [{ type: "text", text: "ok" }] },
  ],
  tools: [
    {
      type: "function",
      function: { name: "weather", description: "d", parameters: schema, strict: false },
    },
    { type: "custom", custom: { name: "run", format: { type: "text" } } },
  ],
  tool_choice: { type: "function", function: { name: "weather" } },
  parallel_tool_calls: true,
  max_completion_tokens: 100,
  temperature: 0.5,
  top_p: 0.9,
  stop: ["END"],
  seed: 7,
  presence_penalty: 0.1,
  frequency_penalty: 0.1,
  reasoning_effort: "low",
  response_format: { type: "json_object" },
  stream: true,
  stream_options: { include_usage: true },
  n: 1,
  user: "u",
  metadata: { a: "b" },
  store: false,
  service_tier: "auto",
  prediction: { type: "content", content: "x" },
} satisfies ChatCompletionCreateParams;

const responses = {
  model: "service-llm",
  instructions: "Be brief.",
  input: [
    { role: "developer", content: "Use metres." },
    { type: "message", role: "user", content: [{ type: "input_text", text: "Weather?" }] },
    { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "sealed:Hm." },
    { type: "function_call", call_id: "call_1", name: "weather", arguments: "{}" },
    { type: "function_call", call_id: "call_2", name: "read", namespace: "files", arguments: "{}" },
    { type: "custom_tool_call", call_id: "call_3", name: "run", input: "x" },
    { type: "function_call_output", call_id: "call_1", output: "Rain" },
    {
      type: "function_call_output",
      call_id: "call_2",
      output: [{ type: "input_text", text: "ok" }],
    },
    { type: "custom_tool_call_output", call_id: "call_3", output: "ok" },
  ],
  tools: [
    { type: "function", name: "weather", parameters: schema, strict: false },
    {
      type: "custom",
      name: "run",
      format: { type: "grammar", syntax: "lark", definition: "start: x" },
    },
    {
      type: "namespace",
      name: "files",
      description: "Files",
      tools: [{ type: "function", name: "read", parameters: schema }],
    },
    { type: "web_search" },
  ],
  tool_choice: { type: "function", name: "weather" },
  parallel_tool_calls: false,
  max_output_tokens: 100,
  temperature: 0.5,
  top_p: 0.9,
  reasoning: { effort: "low", summary: "auto" },
  text: { format: { type: "json_object" }, verbosity: "low" },
  include: ["reasoning.encrypted_content"],
  stream: true,
  store: false,
  metadata: { a: "b" },
  truncation: "disabled",
  prompt_cache_key: "k",
} satisfies ResponseCreateParams;

const messages = {
  model: "service-llm",
  max_tokens: 100,
  system: [{ type: "text", text: "Be brief.", cache_control: { type: "ephemeral" } }],
  messages: [
    { role: "user", content: [{ type: "text", text: "Weather?" }] },
    {
      role: "assistant",
      content: [
        { type: "thinking", thinking: "Hm.", signature: "signed:Hm." },
        { type: "redacted_thinking", data: "x" },
        { type: "tool_use", id: "t1", name: "weather", input: {} },
      ],
    },
    {
      role: "user",
      content: [
        {
          type: "tool_result",
          tool_use_id: "t1",
          is_error: true,
          content: [{ type: "text", text: "No" }],
        },
        { type: "text", text: "So?" },
      ],
    },
    { role: "system", content: "Now in French." },
  ],
  tools: [
    { name: "weather", description: "d", input_schema: schema, defer_loading: true },
    { type: "web_search_20250305", name: "web_search" },
  ],
  tool_choice: { type: "tool", name: "weather", disable_parallel_tool_use: true },
  stop_sequences: ["END"],
  stream: true,
  thinking: { type: "enabled", budget_tokens: 1024 },
  output_config: { effort: "high" },
  service_tier: "auto",
  metadata: { user_id: "u" },
} satisfies MessageCreateParams;

describe("a request that the vendor's SDK can write", () => {
  it("is understood by Chat Completions", () => {
    const { conversation, options, toolCount } = chatCompletionsFormat.parseRequest(
      chat,
      testReasoning,
    );
    expect(conversation.turns.map((turn) => turn.role)).toEqual([
      "system",
      "user",
      "assistant",
      "tool",
      "tool",
    ]);
    expect(conversation.toolChoice).toEqual({ type: "tool", name: "weather" });
    expect(options).toMatchObject({
      seed: 7,
      reasoningEffort: "low",
      responseFormat: "json-object",
    });
    expect(toolCount).toBe(2);
  });

  it("is understood by Responses, and its settings come back in the answer", () => {
    const parsed = responsesFormat.parseRequest(responses, testReasoning);
    expect(parsed.conversation.turns.map((turn) => turn.role)).toEqual([
      "system",
      "user",
      "assistant",
      "tool",
      "tool",
      "tool",
    ]);
    expect(parsed.conversation.tools.map((tool) => tool.name)).toEqual([
      "weather",
      "run",
      "files__read",
    ]);
    expect(parsed.toolCount).toBe(4);
    expect(parsed.echo).toMatchObject({
      tools: responses.tools,
      toolChoice: responses.tool_choice,
    });
  });

  it("is understood by Messages", () => {
    const { conversation, toolCount } = messagesFormat.parseRequest(messages, testReasoning);
    expect(conversation.turns.map((turn) => turn.role)).toEqual([
      "system",
      "user",
      "assistant",
      "tool",
      "user",
      "system",
    ]);
    expect(conversation.parallelToolCalls).toBe(false);
    expect(toolCount).toBe(2);
  });
});
