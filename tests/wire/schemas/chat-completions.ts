import { z } from "zod";

// Everything that a test's server writes is held against these schemas.

const count = z.int().min(0);

const usage = z
  .strictObject({
    prompt_tokens: count,
    completion_tokens: count,
    total_tokens: count,
    prompt_tokens_details: z.strictObject({ cached_tokens: count }),
    completion_tokens_details: z.strictObject({ reasoning_tokens: count }),
  })
  .refine((sums) => sums.total_tokens === sums.prompt_tokens + sums.completion_tokens, {
    error: "total_tokens is not the sum",
  });

const finishReason = z.enum(["stop", "length", "tool_calls", "content_filter"]);
const callId = z.string().min(1);
const toolName = z.string().min(1);

const toolCall = z.discriminatedUnion("type", [
  z.strictObject({
    id: callId,
    type: z.literal("function"),
    function: z.strictObject({ name: toolName, arguments: z.string() }),
  }),
  z.strictObject({
    id: callId,
    type: z.literal("custom"),
    custom: z.strictObject({ name: toolName, input: z.string() }),
  }),
]);

const id = z.string().regex(/^chatcmpl-[A-Za-z0-9]+$/u);

/** The body of an answer. */
export const chatCompletionBodySchema = z.strictObject({
  id,
  object: z.literal("chat.completion"),
  created: count,
  model: z.string(),
  choices: z.tuple([
    z.strictObject({
      index: z.literal(0),
      message: z.strictObject({
        role: z.literal("assistant"),
        content: z.string().nullable(),
        refusal: z.null(),
        reasoning_content: z.string().exactOptional(),
        tool_calls: z.array(toolCall).min(1).exactOptional(),
      }),
      logprobs: z.null(),
      finish_reason: finishReason,
    }),
  ]),
  usage,
});

const chunkHead = {
  id,
  object: z.literal("chat.completion.chunk"),
  created: count,
  model: z.string(),
};

const callStart = z.discriminatedUnion("type", [
  z.strictObject({
    index: count,
    id: callId,
    type: z.literal("function"),
    function: z.strictObject({ name: toolName, arguments: z.literal("") }),
  }),
  z.strictObject({
    index: count,
    id: callId,
    type: z.literal("custom"),
    custom: z.strictObject({ name: toolName, input: z.literal("") }),
  }),
]);

const callPiece = z.union([
  z.strictObject({ index: count, function: z.strictObject({ arguments: z.string() }) }),
  z.strictObject({ index: count, custom: z.strictObject({ input: z.string() }) }),
]);

// The commonest first: a union tries one after another.
const delta = z.union([
  z.strictObject({ content: z.string() }),
  z.strictObject({ reasoning_content: z.string() }),
  z.strictObject({ tool_calls: z.tuple([z.union([callPiece, callStart])]) }),
  z.strictObject({ role: z.literal("assistant"), content: z.literal("") }),
]);

/** A frame of a stream, but for `[DONE]` and the frame of an error. */
export const chatCompletionChunkSchema = z.union([
  z.strictObject({
    ...chunkHead,
    choices: z.tuple([z.strictObject({ index: z.literal(0), delta, finish_reason: z.null() })]),
    usage: z.null().exactOptional(),
  }),
  z.strictObject({
    ...chunkHead,
    choices: z.tuple([
      z.strictObject({
        index: z.literal(0),
        delta: z.strictObject({}),
        finish_reason: finishReason,
      }),
    ]),
    usage: z.null().exactOptional(),
  }),
  z.strictObject({ ...chunkHead, choices: z.tuple([]), usage }),
]);
