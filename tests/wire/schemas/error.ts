import { z } from "zod";

// Everything that a test's server writes is held against these schemas.

/** The id of a request. */
export const requestIdSchema = z.string().regex(/^req_[A-Za-z0-9]+$/u);

const credit = z.string().regex(/^-?\d+(?:\.\d+)?$/u);

const shortage = {
  balance: credit,
  held: credit,
  needed: credit,
  affordable_output_tokens: z.int().min(0).max(65_536),
  waiting_helps: z.boolean(),
};

const spentBudget = {
  budget: credit,
  budget_left: credit,
  budget_ends_at: z.iso.datetime().nullable(),
};

/** The codes of the OpenAI shape. */
export const openaiErrorCodeSchema = z.enum([
  "invalid_value",
  "unsupported_value",
  "context_length_exceeded",
  "refused_by_deployment",
  "invalid_api_key",
  "insufficient_quota",
  "budget_exceeded",
  "account_disabled",
  "cancelled_by_operator",
  "key_expired",
  "key_paused",
  "key_scope",
  "not_found",
  "method_not_allowed",
  "upgrade_required",
  "request_timeout",
  "request_too_large",
  "unsupported_media_type",
  "rate_limit_exceeded",
  "concurrency_limit_exceeded",
  "too_many_wrong_keys",
  "internal_error",
  "deployment_failed",
  "overloaded",
  "deployment_timeout",
]);

const openaiFields = {
  message: z.string().min(1),
  type: z.enum([
    "invalid_request_error",
    "authentication_error",
    "insufficient_quota",
    "permission_error",
    "rate_limit_error",
    "server_error",
  ]),
  param: z.string().nullable(),
  code: openaiErrorCodeSchema,
  request_id: requestIdSchema,
};

/** What went wrong, in the OpenAI shape. */
export const openaiErrorSchema = z.union([
  z
    .strictObject(openaiFields)
    .refine(({ code }) => code !== "insufficient_quota" && code !== "budget_exceeded", {
      error: "a shortage without its figures",
    }),
  z
    .strictObject({ ...openaiFields, ...shortage })
    .refine(({ code }) => code === "insufficient_quota", { error: "figures of no shortage" }),
  z
    .strictObject({ ...openaiFields, ...shortage, ...spentBudget })
    .refine(({ code }) => code === "budget_exceeded", { error: "figures of no budget" }),
]);

/** An error in the OpenAI shape, as a body. */
export const openaiErrorBodySchema = z.strictObject({ error: openaiErrorSchema });

const messagesFields = {
  type: z.enum([
    "invalid_request_error",
    "authentication_error",
    "billing_error",
    "permission_error",
    "not_found_error",
    "request_too_large",
    "rate_limit_error",
    "api_error",
    "overloaded_error",
    "timeout_error",
  ]),
  message: z.string().min(1),
  details: z.record(z.string(), z.unknown()).exactOptional(),
};

/** An error in the Messages shape. */
export const messagesErrorBodySchema = z.strictObject({
  type: z.literal("error"),
  error: z.union([
    z.strictObject(messagesFields).refine(({ type }) => type !== "billing_error", {
      error: "a shortage without its figures",
    }),
    z
      .strictObject({ ...messagesFields, ...shortage })
      .refine(({ type }) => type === "billing_error", { error: "figures of no shortage" }),
    z
      .strictObject({ ...messagesFields, ...shortage, ...spentBudget })
      .refine(({ type }) => type === "billing_error", { error: "figures of no budget" }),
  ]),
  request_id: requestIdSchema,
});
