import { z } from "zod";
import { framesOf, readFrames } from "../reader/frames.ts";

// What Open Responses requires of an answer, in its strictest published form; fields beyond are allowed.

const integer = z.int();
const text = z.string();
const status = z.enum(["in_progress", "completed", "incomplete"]);

const outputText = z.object({
  type: z.literal("output_text"),
  text,
  annotations: z.array(z.unknown()),
  logprobs: z.array(z.unknown()),
});
const reasoningText = z.object({ type: z.literal("reasoning_text"), text });
const summaryText = z.object({ type: z.literal("summary_text"), text });
const part = z.discriminatedUnion("type", [outputText, reasoningText, summaryText]);

const item = z.discriminatedUnion("type", [
  z.object({
    type: z.literal("message"),
    id: text,
    status,
    role: z.literal("assistant"),
    content: z.array(outputText),
  }),
  z.object({
    type: z.literal("function_call"),
    id: text,
    status,
    call_id: text,
    name: text,
    arguments: text,
  }),
  z.object({
    type: z.literal("reasoning"),
    id: text,
    status,
    summary: z.array(summaryText),
    content: z.array(reasoningText).exactOptional(),
    encrypted_content: text.exactOptional(),
  }),
]);

const functionTool = z.object({
  type: z.literal("function"),
  name: text,
  description: text.nullable(),
  parameters: z.record(text, z.unknown()).nullable(),
  strict: z.boolean().nullable(),
});

const toolChoice = z.union([
  z.enum(["none", "auto", "required"]),
  z.object({ type: z.literal("function"), name: text }),
]);

const usage = z.object({
  input_tokens: integer,
  input_tokens_details: z.object({ cached_tokens: integer }),
  output_tokens: integer,
  output_tokens_details: z.object({ reasoning_tokens: integer }),
  total_tokens: integer,
});

const response = z.object({
  id: text,
  object: z.literal("response"),
  created_at: integer,
  completed_at: integer.nullable(),
  status: z.enum(["queued", "in_progress", "completed", "incomplete", "failed"]),
  incomplete_details: z.object({ reason: text }).nullable(),
  model: text,
  previous_response_id: text.nullable(),
  instructions: text.nullable(),
  output: z.array(item),
  error: z.object({ code: text, message: text }).nullable(),
  tools: z.array(functionTool),
  tool_choice: toolChoice,
  truncation: z.enum(["auto", "disabled"]),
  parallel_tool_calls: z.boolean(),
  text: z.object({ format: z.object({ type: text }) }),
  top_p: z.number(),
  presence_penalty: z.number(),
  frequency_penalty: z.number(),
  top_logprobs: integer,
  temperature: z.number(),
  reasoning: z.object({ effort: text.nullable(), summary: text.nullable() }).nullable(),
  usage: usage.nullable(),
  max_output_tokens: integer.nullable(),
  max_tool_calls: integer.nullable(),
  store: z.boolean(),
  background: z.boolean(),
  service_tier: text,
  metadata: z.record(text, z.unknown()),
  safety_identifier: text.nullable(),
  prompt_cache_key: text.nullable(),
});

/** The response object as Open Responses has it. */
export type ResponseObject = z.infer<typeof response>;

const numbered = { sequence_number: integer };
const placed = { ...numbered, output_index: integer };
const inItem = { ...placed, item_id: text };
const inContent = { ...inItem, content_index: integer };
const inSummary = { ...inItem, summary_index: integer };
const named = <Name extends string>(type: Name) => ({ type: z.literal(type) });
const logprobs = z.array(z.unknown());

const event = z.discriminatedUnion("type", [
  z.object({ ...named("response.created"), ...numbered, response }),
  z.object({ ...named("response.in_progress"), ...numbered, response }),
  z.object({ ...named("response.completed"), ...numbered, response }),
  z.object({ ...named("response.incomplete"), ...numbered, response }),
  z.object({ ...named("response.failed"), ...numbered, response }),
  z.object({ ...named("response.output_item.added"), ...placed, item }),
  z.object({ ...named("response.output_item.done"), ...placed, item }),
  z.object({ ...named("response.content_part.added"), ...inContent, part }),
  z.object({ ...named("response.content_part.done"), ...inContent, part }),
  z.object({ ...named("response.output_text.delta"), ...inContent, delta: text, logprobs }),
  z.object({ ...named("response.output_text.done"), ...inContent, text, logprobs }),
  z.object({ ...named("response.function_call_arguments.delta"), ...inItem, delta: text }),
  z.object({ ...named("response.function_call_arguments.done"), ...inItem, arguments: text }),
  z.object({ ...named("response.reasoning_text.delta"), ...inContent, delta: text }),
  z.object({ ...named("response.reasoning_text.done"), ...inContent, text }),
  z.object({ ...named("response.reasoning_summary_part.added"), ...inSummary, part }),
  z.object({ ...named("response.reasoning_summary_part.done"), ...inSummary, part }),
  z.object({ ...named("response.reasoning_summary_text.delta"), ...inSummary, delta: text }),
  z.object({ ...named("response.reasoning_summary_text.done"), ...inSummary, text }),
  z.object({ ...named("error"), ...numbered, message: text, param: text.nullable(), code: text }),
]);

/** One event of a stream. */
export type StreamEvent = z.infer<typeof event>;

/** The body of an error, besides what a service adds. */
const errorBody = z.object({
  error: z.object({ message: text, type: text, param: text.nullable(), code: text.nullable() }),
});

/** Reads a whole answer. Throws at the first thing that Open Responses requires and is not there. */
export function readResponseObject(value: unknown): ResponseObject {
  const read = response.parse(value);
  ensureStatuses(read);
  return read;
}

/** Reads an error. */
export function readErrorBody(value: unknown): z.infer<typeof errorBody>["error"] {
  return errorBody.parse(value).error;
}

/** Reads a stream: its events, and the response object that ends it. */
export function readEvents(stream: string): {
  readonly events: readonly StreamEvent[];
  readonly last: ResponseObject;
} {
  const events = framesOf(readFrames(stream)).map(({ data, event: name }, index) => {
    const read = event.parse(JSON.parse(data));
    ensure(name === read.type, `the event's name is its type: ${read.type}`);
    ensure(read.sequence_number === index, `sequence_number ${String(index)}`);
    return read;
  });
  ensure(events[0]?.type === "response.created", "it begins with response.created");
  ensure(events[1]?.type === "response.in_progress", "then response.in_progress");
  const ending = events.at(-1);
  ensure(ending !== undefined && "response" in ending, "it ends with the response object");
  ensure(ending.type === `response.${ending.response.status}`, "the last event is of its status");
  ensureLifecycles(events);
  ensureStatuses(ending.response);
  return { events, last: ending.response };
}

/** An item that is incomplete is the last one, and its response is incomplete too. */
function ensureStatuses({ completed_at, output, status: whole }: ResponseObject): void {
  ensure((completed_at !== null) === (whole === "completed"), "completed_at when completed");
  for (const [index, one] of output.entries()) {
    const isLast = index === output.length - 1;
    ensure(one.status !== "in_progress", `${one.type} has ended`);
    ensure(one.status === "completed" || (isLast && whole === "incomplete"), "incomplete at last");
  }
}

const partKinds: Readonly<Record<string, string>> = {
  "response.output_text": "response.content_part",
  "response.reasoning_text": "response.content_part",
  "response.reasoning_summary_text": "response.reasoning_summary_part",
};

/** Items are added, then filled part by part, then done; what the pieces add up to is what their end says. */
function ensureLifecycles(events: readonly StreamEvent[]): void {
  let open: { readonly index: number; readonly id: string } | null = null;
  let openPart: string | null = null;
  let pieces = "";
  let count = 0;
  for (const one of events) {
    if (one.type === "response.output_item.added") {
      ensure(open === null && one.output_index === count, "one item after the other");
      ensure(one.item.status === "in_progress", "an item that begins is in progress");
      open = { index: count, id: one.item.id };
      pieces = "";
      continue;
    }
    if ("item_id" in one) {
      const { item_id: id, output_index: index } = one;
      ensure(open?.id === id && open.index === index, `${one.type} is of the item that is open`);
    }
    if ("part" in one) {
      const ends = one.type.endsWith(".done");
      ensure((openPart !== null) === ends, `${one.type} where it belongs`);
      openPart = ends ? null : one.type.slice(0, -".added".length);
    }
    if ("delta" in one) {
      const kind = one.type.slice(0, -".delta".length);
      const wanted = partKinds[kind] ?? null;
      ensure(openPart === wanted, `${one.type} is backed by a part`);
      pieces += one.delta;
    }
    if (one.type === "response.output_text.done" || one.type === "response.reasoning_text.done") {
      ensure(one.text === pieces, "the text is its pieces");
    }
    if (one.type === "response.function_call_arguments.done") {
      ensure(one.arguments === pieces, "the arguments are their pieces");
    }
    if (one.type === "response.output_item.done") {
      ensure(open?.id === one.item.id && openPart === null, "the open item is done, its parts too");
      ensure(one.item.status !== "in_progress", "an item that is done has ended");
      open = null;
      count += 1;
    }
  }
  const failed = events.at(-1)?.type === "response.failed";
  ensure(failed || open === null, "every item is done");
}

function ensure(holds: boolean, otherwise: string): asserts holds {
  if (!holds) throw new Error(otherwise);
}
