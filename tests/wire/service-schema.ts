import { z } from "zod";
import { requestIdSchema } from "./schemas/error.ts";

// What the service says besides generations and errors: these bodies have no types of their own to be compared with.

const count = z.int().min(0);
const credit = z.string().regex(/^-?\d+(?:\.\d+)?$/u);
const time = z.iso.datetime();
const accountId = z.string().regex(/^acct_[0-9A-Za-z]+$/u);
const keyId = z.string().regex(/^key_[0-9A-Za-z]+$/u);
const head = z.string().regex(/^acct_[0-9A-Za-z]+:\d{1,15}:[0-9a-f]{64}$/u);
const format = z.enum(["chat-completions", "responses", "messages"]);
const prices = z.strictObject({ input: credit, cached_input: credit, output: credit });

/** A model in the OpenAI shape. */
export const openaiModelSchema = z.strictObject({
  id: z.string().min(1),
  object: z.literal("model"),
  created: count,
  owned_by: z.literal("tributary"),
});

/** A model in the Messages shape. */
export const messagesModelSchema = z.strictObject({
  type: z.literal("model"),
  id: z.string().min(1),
  display_name: z.string().min(1),
  created_at: time,
});

/** The models in the OpenAI shape. */
export const openaiModelListSchema = z.strictObject({
  object: z.literal("list"),
  data: z.array(openaiModelSchema),
});

/** The models in the Messages shape. */
export const messagesModelListSchema = z.strictObject({
  data: z.array(messagesModelSchema),
  has_more: z.literal(false),
  first_id: z.string().nullable(),
  last_id: z.string().nullable(),
});

/** An estimate of a message's tokens. */
export const tokenCountSchema = z.strictObject({ input_tokens: count });

/** `GET /account`. */
export const accountSchema = z.strictObject({
  id: accountId,
  name: z.string(),
  status: z.enum(["active", "disabled"]),
  balance: credit,
  held: credit,
  available: credit,
  budget: z
    .strictObject({
      amount: credit,
      period: z.enum(["day", "week", "month", "total"]),
      timezone: z.string(),
    })
    .nullable(),
  budget_spent: credit.nullable(),
  budget_held: credit.nullable(),
  budget_left: credit.nullable(),
  budget_begins_at: time.nullable(),
  budget_ends_at: time.nullable(),
  prices,
  limits: z.strictObject({
    concurrent_requests: count,
    requests_per_minute: count,
    requests_remaining: count,
    output_allowance_default: count,
    output_allowance_max: count,
    input_bound_max: count,
  }),
  running_requests: z.array(
    z.strictObject({
      id: requestIdSchema,
      key: keyId,
      format,
      streamed: z.boolean(),
      output_allowance: z.int().min(1),
      reserved: credit,
      admitted_at: time,
    }),
  ),
  head: head.nullable(),
});

const receipt = {
  id: requestIdSchema,
  account: accountId,
  key: keyId,
  format,
  streamed: z.boolean(),
  label: z.string().min(1).max(128).nullable(),
  input_bound: count,
  output_allowance: z.int().min(1),
  price_list: z.string().min(1),
  prices,
  reserved: credit,
  refunded: credit,
  admitted_at: time,
  head,
};

/** `GET /receipts/{id}`. */
export const receiptSchema = z.discriminatedUnion("state", [
  z.strictObject({
    ...receipt,
    state: z.literal("open"),
    outcome: z.null(),
    charged: z.null(),
    lines: z.null(),
    usage: z.null(),
    resolved_at: z.null(),
    first_output_ms: z.null(),
    total_ms: z.null(),
  }),
  z.strictObject({
    ...receipt,
    state: z.enum(["settled", "expired"]),
    outcome: z.enum([
      "completed",
      "cancelled",
      "cancelled-before-output",
      "refused",
      "failed",
      "lease-lost",
      "cancelled-by-operator",
    ]),
    charged: credit,
    lines: z
      .array(
        z.strictObject({
          item: z.enum(["input", "cached_input", "output"]),
          tokens: count,
          price: credit,
          amount: credit,
        }),
      )
      .length(3)
      .nullable(),
    usage: z
      .strictObject({
        input_tokens: count,
        cached_input_tokens: count,
        output_tokens: count,
        reasoning_tokens: count,
      })
      .nullable(),
    resolved_at: time,
    first_output_ms: count.nullable(),
    total_ms: count.nullable(),
  }),
]);

/** The process is up. */
export const aliveSchema = z.strictObject({ status: z.literal("ok") });

/** Whether new requests are welcome, and why not. */
export const readinessSchema = z.discriminatedUnion("status", [
  z.strictObject({ status: z.literal("ready") }),
  z.strictObject({
    status: z.literal("not ready"),
    reasons: z.partialRecord(z.enum(["ledger", "deployment", "service"]), z.string().min(1)),
  }),
]);
