import { z } from "zod";
import { openaiErrorCodeSchema, openaiErrorSchema } from "./error.ts";

// Everything that a test's server writes is held against these schemas.

const count = z.int().min(0);

/** `undefined` is what a missing member is, and JSON has no such value. */
const anyJson = z
  .unknown()
  .refine((value): boolean => value !== undefined, { error: "it is missing" });

const usage = z
  .strictObject({
    input_tokens: count,
    input_tokens_details: z.strictObject({ cached_tokens: count, cache_write_tokens: count }),
    output_tokens: count,
    output_tokens_details: z.strictObject({ reasoning_tokens: count }),
    total_tokens: count,
  })
  .refine((sums) => sums.total_tokens === sums.input_tokens + sums.output_tokens, {
    error: "total_tokens is not the sum",
  });

const textPart = z.strictObject({
  type: z.literal("output_text"),
  text: z.string(),
  annotations: z.tuple([]),
  logprobs: z.tuple([]),
});
const reasoningPart = z.strictObject({ type: z.literal("reasoning_text"), text: z.string() });
const summaryPart = z.strictObject({ type: z.literal("summary_text"), text: z.string() });

const status = z.enum(["in_progress", "completed", "incomplete"]);
const called = {
  status,
  call_id: z.string().min(1),
  name: z.string().min(1),
  namespace: z.string().min(1).exactOptional(),
};

const item = z.discriminatedUnion("type", [
  z.strictObject({
    type: z.literal("reasoning"),
    id: z.string().regex(/^rs_[A-Za-z0-9]+$/u),
    status,
    summary: z.array(summaryPart),
    content: z.array(reasoningPart).exactOptional(),
    encrypted_content: z.string().min(1).exactOptional(),
  }),
  z.strictObject({
    type: z.literal("message"),
    id: z.string().regex(/^msg_[A-Za-z0-9]+$/u),
    status,
    role: z.literal("assistant"),
    content: z.array(textPart),
  }),
  z.strictObject({
    type: z.literal("function_call"),
    id: z.string().regex(/^fc_[A-Za-z0-9]+$/u),
    ...called,
    arguments: z.string(),
  }),
  z.strictObject({
    type: z.literal("custom_tool_call"),
    id: z.string().regex(/^ctc_[A-Za-z0-9]+$/u),
    ...called,
    input: z.string(),
  }),
]);
/** An item as it begins. */
export const begunItem = item.refine((begun) => begun.status === "in_progress", {
  error: "an item that begins has ended",
});
/** An item as it ends. */
export const endedItem = item
  .refine((ended) => ended.status !== "in_progress", {
    error: "an item that ended is in progress",
  })
  .refine(
    (ended) =>
      ended.type !== "reasoning" || ended.summary.length + (ended.content?.length ?? 0) === 1,
    { error: "reasoning is told once, as text or as a summary" },
  );

const head = {
  id: z.string().regex(/^resp_[A-Za-z0-9]+$/u),
  object: z.literal("response"),
  created_at: count,
  background: z.literal(false),
  instructions: z.string().nullable(),
  max_output_tokens: z.int().min(1).nullable(),
  max_tool_calls: z.null(),
  model: z.string(),
  parallel_tool_calls: z.boolean(),
  previous_response_id: z.null(),
  prompt_cache_key: z.string().nullable(),
  reasoning: z.strictObject({ effort: z.string().nullable(), summary: z.string().nullable() }),
  safety_identifier: z.null(),
  service_tier: z.literal("default"),
  store: z.literal(false),
  temperature: z.number(),
  text: z.strictObject({ format: z.strictObject({ type: z.enum(["text", "json_object"]) }) }),
  tool_choice: anyJson,
  tools: z.array(anyJson),
  top_logprobs: z.literal(0),
  top_p: z.number(),
  truncation: z.literal("disabled"),
  presence_penalty: z.literal(0),
  frequency_penalty: z.literal(0),
  access_programs: z.null(),
  metadata: z.record(z.string(), z.unknown()),
};

/** The response object while nothing has ended. */
export const inProgress = z.strictObject({
  ...head,
  status: z.literal("in_progress"),
  completed_at: z.null(),
  error: z.null(),
  incomplete_details: z.null(),
  output: z.tuple([]),
  usage: z.null(),
});

/** The same of an answer that was completed. */
export const completed = z.strictObject({
  ...head,
  status: z.literal("completed"),
  completed_at: count,
  error: z.null(),
  incomplete_details: z.null(),
  output: z.array(endedItem),
  usage,
});

/** The same of one that was cut. */
export const incomplete = z.strictObject({
  ...head,
  status: z.literal("incomplete"),
  completed_at: z.null(),
  error: z.null(),
  incomplete_details: z.strictObject({ reason: z.enum(["max_output_tokens", "content_filter"]) }),
  output: z.array(endedItem),
  usage,
});

/** The same of one that failed. */
export const failed = z.strictObject({
  ...head,
  status: z.literal("failed"),
  completed_at: z.null(),
  error: z.strictObject({
    code: z.enum([
      "server_error",
      "rate_limit_exceeded",
      "context_length_exceeded",
      "invalid_prompt",
    ]),
    message: z.string().min(1),
  }),
  incomplete_details: z.null(),
  output: z.array(endedItem),
  usage: z.null(),
});

/** The response object; a body is the one of an answer that was completed or cut. */
export const responsesBodySchema = z.discriminatedUnion("status", [
  inProgress,
  completed,
  incomplete,
  failed,
]);

/** A body: the object of an answer that ended well. */
export const responsesAnswerSchema = z.discriminatedUnion("status", [completed, incomplete]);

const numbered = { sequence_number: count };
const place = { ...numbered, item_id: z.string().min(1), output_index: count };
const inContent = { ...place, content_index: z.literal(0) };
const inSummary = { ...place, summary_index: z.literal(0) };
const contentPart = z.discriminatedUnion("type", [textPart, reasoningPart]);
const logprobs = z.tuple([]);

function type<Name extends string>(name: Name): { type: z.ZodLiteral<Name> } {
  return { type: z.literal(name) };
}

/** A frame of a stream. */
export const responsesStreamEventSchema = z.discriminatedUnion("type", [
  z.strictObject({
    type: z.enum(["response.created", "response.in_progress"]),
    ...numbered,
    response: inProgress,
  }),
  z.strictObject({ ...type("response.completed"), ...numbered, response: completed }),
  z.strictObject({ ...type("response.incomplete"), ...numbered, response: incomplete }),
  z.strictObject({ ...type("response.failed"), ...numbered, response: failed }),
  z.strictObject({
    ...type("response.output_item.added"),
    ...numbered,
    output_index: count,
    item: begunItem,
  }),
  z.strictObject({
    ...type("response.output_item.done"),
    ...numbered,
    output_index: count,
    item: endedItem,
  }),
  z.strictObject({
    type: z.enum(["response.content_part.added", "response.content_part.done"]),
    ...inContent,
    part: contentPart,
  }),
  z.strictObject({
    type: z.enum(["response.reasoning_summary_part.added", "response.reasoning_summary_part.done"]),
    ...inSummary,
    part: summaryPart,
  }),
  z.strictObject({
    ...type("response.output_text.delta"),
    ...inContent,
    delta: z.string(),
    logprobs,
  }),
  z.strictObject({
    ...type("response.output_text.done"),
    ...inContent,
    text: z.string(),
    logprobs,
  }),
  z.strictObject({ ...type("response.reasoning_text.delta"), ...inContent, delta: z.string() }),
  z.strictObject({ ...type("response.reasoning_text.done"), ...inContent, text: z.string() }),
  z.strictObject({
    ...type("response.reasoning_summary_text.delta"),
    ...inSummary,
    delta: z.string(),
  }),
  z.strictObject({
    ...type("response.reasoning_summary_text.done"),
    ...inSummary,
    text: z.string(),
  }),
  z.strictObject({
    type: z.enum([
      "response.function_call_arguments.delta",
      "response.custom_tool_call_input.delta",
    ]),
    ...place,
    delta: z.string(),
  }),
  z.strictObject({
    ...type("response.function_call_arguments.done"),
    ...place,
    name: z.string().min(1),
    arguments: z.string(),
  }),
  z.strictObject({ ...type("response.custom_tool_call_input.done"), ...place, input: z.string() }),
  z.strictObject({
    ...type("error"),
    ...numbered,
    code: openaiErrorCodeSchema,
    message: z.string().min(1),
    param: z.string().nullable(),
    error: openaiErrorSchema,
  }),
]);
