import { z } from "zod";
import { limits } from "../../../src/limits.ts";

// What the parsers of the formats take: callers-document.test.ts holds each rule here against them, in both directions.

type Extra = Readonly<Record<string, unknown>>;

/** Anything but what these keywords of JSON Schema say; `null` of an optional member counts as absent. */
const not = (refused: Extra): z.ZodType => z.unknown().optional().meta({ not: refused });
const absent = z.null().optional();
const text = z.string();
const named = z.string().min(1);
const ratio = (max: number): z.ZodType => z.number().min(0).max(max).nullish();
const whole = z.number().meta({ type: "integer" });
const anything = z.unknown();

/** A number of output tokens: larger ones than may be are cut to what may. */
const outputTokens = (description: string): z.ZodType =>
  whole.min(1).meta({ type: "integer", description }).nullish();

const jsonSchemaOutput: Extra = {
  type: "object",
  required: ["type"],
  properties: { type: { const: "json_schema" } },
};
/** Refused under these names whatever the format of the request is; else no field of it. */
const noJsonSchema = {
  response_format: not(jsonSchemaOutput),
  output_format: not(jsonSchemaOutput),
  text: not({ type: "object", required: ["format"], properties: { format: jsonSchemaOutput } }),
};

const common = {
  model: z
    .string()
    .max(limits.modelNameCharactersMax)
    .nullish()
    .meta({ description: "any name reaches the one model, and the answer repeats it" }),
  stream: z
    .boolean()
    .nullish()
    .meta({ description: "true: server-sent events in the place of one body" }),
  temperature: ratio(2),
  top_p: ratio(1),
};

const toolName = z
  .string()
  .regex(new RegExp(`^[A-Za-z0-9_.-]{1,${String(limits.toolNameCharactersMax)}}$`, "u"));
const parameters = z
  .looseObject({})
  .nullish()
  .meta({ description: "a JSON Schema of the arguments" });
const functionTool = { name: toolName, description: text.nullish(), parameters };
const grammar = { syntax: z.enum(["lark", "regex"]), definition: text };
const customTool = {
  name: toolName,
  description: text.nullish(),
  format: z
    .union([
      z.looseObject({ type: z.literal("text") }),
      z.looseObject({ type: z.literal("grammar"), grammar: z.looseObject(grammar) }),
      z.looseObject({ type: z.literal("grammar"), grammar: absent, ...grammar }),
    ])
    .nullish(),
};
const media = z.looseObject({
  type: z.enum([
    "image",
    "image_url",
    "input_image",
    "audio",
    "input_audio",
    "file",
    "input_file",
    "document",
    "video",
    "video_url",
    "input_video",
  ]),
});
const items = (item: z.ZodType): z.ZodType => z.array(item).min(1).max(limits.inputItemsMax);
const tools = (tool: z.ZodType): z.ZodType => z.array(tool).max(limits.toolsMax).nullish();

const chatText = z.looseObject({ type: z.literal("text"), text });
const chatRefusal = z.looseObject({ type: z.literal("refusal"), refusal: text });
const chatCall = z.union([
  z.looseObject({
    id: named,
    type: z.literal("function").nullish(),
    function: z.looseObject({ name: text, arguments: text }),
  }),
  z.looseObject({
    id: named,
    type: z.literal("custom"),
    custom: z.looseObject({ name: text, input: text }),
  }),
]);
const chatMessage = z.union([
  z.looseObject({
    role: z.enum(["system", "developer", "user"]),
    content: z.union([text, z.array(chatText)]),
  }),
  z.looseObject({
    role: z.literal("assistant"),
    content: z.union([text, z.array(z.union([chatText, chatRefusal]))]).nullish(),
    reasoning_content: text.nullish(),
    tool_calls: z.array(chatCall).nullish(),
    function_call: absent,
    audio: absent,
  }),
  z.looseObject({
    role: z.literal("tool"),
    tool_call_id: text,
    content: z.union([text, z.array(z.union([chatText, media]))]),
  }),
]);
const penalty = z.number().min(-2).max(2).nullish();
const choiceOf = (...plain: readonly string[]) => z.enum(plain);

/** The body of a Chat Completions request. */
export const chatCompletionsRequestSchema = z.looseObject({
  ...noJsonSchema,
  ...common,
  messages: items(chatMessage),
  max_completion_tokens: outputTokens("goes before `max_tokens`; larger ones are cut to 65,536"),
  max_tokens: outputTokens("without either as many as can be paid for, up to 32,768"),
  stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
  tools: tools(
    z.union([
      z.looseObject({ type: z.literal("function"), function: z.looseObject(functionTool) }),
      z.looseObject({ type: z.literal("custom"), custom: z.looseObject(customTool) }),
    ]),
  ),
  tool_choice: z
    .union([
      choiceOf("auto", "none", "required"),
      z.looseObject({ type: z.literal("function"), function: z.looseObject({ name: text }) }),
      z.looseObject({ type: z.literal("custom"), custom: z.looseObject({ name: text }) }),
    ])
    .nullish(),
  parallel_tool_calls: z.boolean().nullish(),
  response_format: z.looseObject({ type: z.enum(["text", "json_object"]) }).nullish(),
  stop: z.union([named, z.array(named)]).nullish(),
  seed: z.int().nullish(),
  presence_penalty: penalty,
  frequency_penalty: penalty,
  reasoning_effort: text.nullish(),
  n: z.literal(1).nullish(),
  logprobs: z.literal(false).nullish(),
  top_logprobs: z.number().min(Number.MIN_SAFE_INTEGER).max(0).nullish(),
  modalities: z.array(z.literal("text")).nullish(),
  audio: not({ type: "object" }),
  functions: absent,
  function_call: absent,
});

const responsesText = z.union([
  z.looseObject({ type: z.enum(["input_text", "output_text", "text"]), text }),
  chatRefusal,
]);
const responsesContent = z.union([text, z.array(responsesText)]);
const isMessage = z.literal("message").nullish();
const callOutput = z.union([text, z.array(z.union([responsesText, media]))]);
const responsesTool = z.union([
  z.looseObject({ type: z.literal("function"), ...functionTool }),
  z.looseObject({ type: z.literal("custom"), ...customTool }),
  z.looseObject({
    type: z
      .string()
      .meta({ not: { enum: ["function", "custom", "namespace"] } })
      .meta({ description: "a hosted tool, which is left out" }),
  }),
]);
const responsesTools = z.array(
  z.union([
    responsesTool,
    z.looseObject({
      type: z.literal("namespace"),
      name: toolName,
      description: text.nullish(),
      tools: z.array(z.union([responsesTool, z.looseObject({ type: z.literal("namespace") })])),
    }),
  ]),
);
const responsesItem = z.union([
  z.looseObject({
    type: isMessage,
    role: z.enum(["system", "developer", "user"]),
    content: responsesContent,
  }),
  z.looseObject({
    type: isMessage,
    role: z.literal("assistant"),
    content: responsesContent.nullish(),
  }),
  z.looseObject({
    type: z.literal("function_call"),
    call_id: named,
    name: text,
    namespace: text.nullish(),
    arguments: text,
  }),
  z.looseObject({
    type: z.literal("custom_tool_call"),
    call_id: named,
    name: text,
    namespace: text.nullish(),
    input: text,
  }),
  z.looseObject({
    type: z.enum(["function_call_output", "custom_tool_call_output"]),
    call_id: named,
    output: callOutput,
  }),
  z.looseObject({ type: z.literal("reasoning"), encrypted_content: anything.optional() }),
  z.looseObject({ type: z.literal("additional_tools"), tools: responsesTools }),
  z.looseObject({
    type: z
      .enum([
        "web_search_call",
        "file_search_call",
        "code_interpreter_call",
        "image_generation_call",
        "mcp_list_tools",
        "mcp_approval_request",
        "mcp_approval_response",
        "mcp_call",
      ])
      .meta({ description: "of tools that another service ran; left out" }),
  }),
]);

/** The body of a Responses request. */
export const responsesRequestSchema = z.looseObject({
  ...noJsonSchema,
  ...common,
  input: z.union([text, items(responsesItem)]),
  instructions: text.nullish(),
  max_output_tokens: outputTokens("without it as many as can be paid for, up to 32,768"),
  tools: responsesTools.nullish(),
  tool_choice: z
    .union([
      choiceOf("auto", "none", "required"),
      z.looseObject({
        type: z.enum(["function", "custom"]),
        name: text,
        namespace: text.nullish(),
      }),
    ])
    .nullish(),
  parallel_tool_calls: z.boolean().nullish(),
  text: z
    .looseObject({
      format: z.looseObject({ type: z.enum(["text", "json_object"]) }).nullish(),
    })
    .nullish(),
  reasoning: z.looseObject({ effort: text.nullish(), summary: text.nullish() }).nullish(),
  include: z
    .array(anything)
    .nullish()
    .meta({ description: "`reasoning.encrypted_content`: reasoning that can be sent back" }),
  background: z.literal(false).nullish(),
  previous_response_id: absent,
  conversation: absent,
  prompt: absent,
});

const textBlock = z.looseObject({ type: z.literal("text"), text });
const resultContent = z.union([
  text,
  z.array(
    z.union([
      textBlock,
      media,
      z.looseObject({ type: z.literal("tool_reference"), tool_name: text }),
      z.looseObject({ type: z.literal("search_result"), content: z.array(textBlock) }),
    ]),
  ),
]);
const toolChange = z.looseObject({
  type: z.enum(["tool_addition", "tool_removal"]),
  tool: z.union([
    z.looseObject({ type: z.literal("tool_reference"), name: text }),
    z.looseObject({ type: z.enum(["mcp_tool_reference", "mcp_toolset_reference"]) }),
  ]),
});
const messagesMessage = z.union([
  z.looseObject({
    role: z.literal("user"),
    content: z.union([
      text,
      z.array(
        z.union([
          textBlock,
          z.looseObject({
            type: z.literal("tool_result"),
            tool_use_id: text,
            is_error: z.boolean().nullish(),
            content: resultContent.nullish(),
          }),
        ]),
      ),
    ]),
  }),
  z.looseObject({
    role: z.literal("assistant"),
    content: z.union([
      text,
      z.array(
        z.union([
          textBlock,
          z.looseObject({
            type: z.literal("tool_use"),
            id: named,
            name: text,
            input: anything.optional(),
          }),
          z.looseObject({
            type: z.literal("thinking"),
            thinking: text,
            signature: anything.optional(),
          }),
          z.looseObject({ type: z.literal("redacted_thinking") }),
        ]),
      ),
    ]),
  }),
  z.looseObject({
    role: z.literal("system"),
    content: z.union([text, z.array(z.union([textBlock, toolChange]))]),
  }),
]);
const disableParallel = { disable_parallel_tool_use: z.boolean().nullish() };
const conversation = {
  ...noJsonSchema,
  messages: items(messagesMessage),
  system: z.union([text, z.array(textBlock)]).nullish(),
  tools: tools(
    z.union([
      z.looseObject({
        type: z.literal("custom").nullish(),
        name: toolName,
        description: text.nullish(),
        input_schema: parameters,
      }),
      z.looseObject({
        type: z
          .string()
          .regex(/_[0-9]{8}$|^mcp_toolset$|^tool_search_tool_(?:bm25|regex)$/u)
          .meta({ description: "a hosted tool, which is left out" }),
      }),
    ]),
  ),
  tool_choice: z
    .union([
      z.looseObject({ type: z.enum(["auto", "any", "none"]), ...disableParallel }),
      z.looseObject({ type: z.literal("tool"), name: text, ...disableParallel }),
    ])
    .nullish(),
  thread: absent,
};

/** The body of a Messages request. */
export const messagesRequestSchema = z.looseObject({
  ...conversation,
  ...common,
  max_tokens: outputTokens("without it as many as can be paid for, up to 32,768"),
  stop_sequences: z.array(named).nullish(),
  top_k: z.int().min(0).nullish(),
});

/** The body of a request to count tokens. */
export const countTokensRequestSchema = z.looseObject(conversation);
