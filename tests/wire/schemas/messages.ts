import { z } from "zod";

// Everything that a test's server writes is held against these schemas.

const count = z.int().min(0);

const usage = z.strictObject({
  input_tokens: count,
  output_tokens: count,
  cache_creation_input_tokens: z.literal(0),
  cache_read_input_tokens: count,
});

/** `undefined` is what a missing member is, and JSON has no such value. */
const anyJson = z
  .unknown()
  .refine((value): boolean => value !== undefined, { error: "it is missing" });

const block = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("text"), text: z.string() }),
  z.strictObject({ type: z.literal("thinking"), thinking: z.string(), signature: z.string() }),
  z.strictObject({
    type: z.literal("tool_use"),
    id: z.string().min(1),
    name: z.string().min(1),
    input: anyJson,
  }),
]);

const stopAtSequence = {
  stop_reason: z.literal("stop_sequence"),
  stop_sequence: z.string(),
};
const stopOtherwise = {
  stop_reason: z.enum(["end_turn", "max_tokens", "tool_use", "refusal"]),
  stop_sequence: z.null(),
};

const head = {
  id: z.string().regex(/^msg_[A-Za-z0-9]+$/u),
  type: z.literal("message"),
  role: z.literal("assistant"),
  model: z.string(),
  usage,
};

/** The body of an answer. */
export const messageBodySchema = z.discriminatedUnion("stop_reason", [
  z.strictObject({ ...head, content: z.array(block), ...stopOtherwise }),
  z.strictObject({ ...head, content: z.array(block), ...stopAtSequence }),
]);

const opening = z.strictObject({
  ...head,
  content: z.tuple([]),
  stop_reason: z.null(),
  stop_sequence: z.null(),
});

const emptyBlock = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("text"), text: z.literal("") }),
  z.strictObject({
    type: z.literal("thinking"),
    thinking: z.literal(""),
    signature: z.literal(""),
  }),
  z.strictObject({
    type: z.literal("tool_use"),
    id: z.string().min(1),
    name: z.string().min(1),
    input: z.strictObject({}),
  }),
]);

const delta = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("text_delta"), text: z.string() }),
  z.strictObject({ type: z.literal("thinking_delta"), thinking: z.string() }),
  z.strictObject({ type: z.literal("signature_delta"), signature: z.string() }),
  z.strictObject({ type: z.literal("input_json_delta"), partial_json: z.string() }),
]);

/** A frame of a stream, but for the frame of an error. */
export const messagesStreamEventSchema = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("message_start"), message: opening }),
  z.strictObject({
    type: z.literal("content_block_start"),
    index: count,
    content_block: emptyBlock,
  }),
  z.strictObject({ type: z.literal("content_block_delta"), index: count, delta }),
  z.strictObject({ type: z.literal("content_block_stop"), index: count }),
  z.strictObject({
    type: z.literal("message_delta"),
    delta: z.discriminatedUnion("stop_reason", [
      z.strictObject(stopOtherwise),
      z.strictObject(stopAtSequence),
    ]),
    usage,
  }),
  z.strictObject({ type: z.literal("message_stop") }),
  z.strictObject({ type: z.literal("ping") }),
]);
