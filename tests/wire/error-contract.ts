import type { FailureCode } from "../../src/failure.ts";

/** One way to fail, as the clients of each format were promised it. */
interface ErrorRow {
  readonly status: number;
  /** `type` and `code` of an error in OpenAI's shape. */
  readonly openai: readonly [string, string];
  /** `type` of an error of Messages. */
  readonly messages: string;
  /** `code` of the `response.failed` of a stream of Responses. */
  readonly responseFailed: string;
}

/** The error table of the service, row by row; written down apart from the source, so that a test does not repeat its rule. */
export const errorContract = {
  invalid_request: {
    status: 400,
    openai: ["invalid_request_error", "invalid_value"],
    messages: "invalid_request_error",
    responseFailed: "invalid_prompt",
  },
  not_offered: {
    status: 400,
    openai: ["invalid_request_error", "unsupported_value"],
    messages: "invalid_request_error",
    responseFailed: "invalid_prompt",
  },
  input_too_large: {
    status: 400,
    openai: ["invalid_request_error", "context_length_exceeded"],
    messages: "invalid_request_error",
    responseFailed: "context_length_exceeded",
  },
  refused_by_deployment: {
    status: 400,
    openai: ["invalid_request_error", "refused_by_deployment"],
    messages: "invalid_request_error",
    responseFailed: "invalid_prompt",
  },
  authentication: {
    status: 401,
    openai: ["authentication_error", "invalid_api_key"],
    messages: "authentication_error",
    responseFailed: "invalid_prompt",
  },
  insufficient_credit: {
    status: 402,
    openai: ["insufficient_quota", "insufficient_quota"],
    messages: "billing_error",
    responseFailed: "invalid_prompt",
  },
  key_expired: {
    status: 401,
    openai: ["authentication_error", "key_expired"],
    messages: "authentication_error",
    responseFailed: "invalid_prompt",
  },
  key_paused: {
    status: 403,
    openai: ["permission_error", "key_paused"],
    messages: "permission_error",
    responseFailed: "invalid_prompt",
  },
  key_scope: {
    status: 403,
    openai: ["permission_error", "key_scope"],
    messages: "permission_error",
    responseFailed: "invalid_prompt",
  },
  budget_exceeded: {
    status: 402,
    openai: ["insufficient_quota", "budget_exceeded"],
    messages: "billing_error",
    responseFailed: "invalid_prompt",
  },
  account_disabled: {
    status: 403,
    openai: ["permission_error", "account_disabled"],
    messages: "permission_error",
    responseFailed: "invalid_prompt",
  },
  cancelled_by_operator: {
    status: 403,
    openai: ["permission_error", "cancelled_by_operator"],
    messages: "permission_error",
    responseFailed: "invalid_prompt",
  },
  not_found: {
    status: 404,
    openai: ["invalid_request_error", "not_found"],
    messages: "not_found_error",
    responseFailed: "invalid_prompt",
  },
  method_not_allowed: {
    status: 405,
    openai: ["invalid_request_error", "method_not_allowed"],
    messages: "invalid_request_error",
    responseFailed: "invalid_prompt",
  },
  request_timeout: {
    status: 408,
    openai: ["invalid_request_error", "request_timeout"],
    messages: "invalid_request_error",
    responseFailed: "invalid_prompt",
  },
  body_too_large: {
    status: 413,
    openai: ["invalid_request_error", "request_too_large"],
    messages: "request_too_large",
    responseFailed: "invalid_prompt",
  },
  unsupported_media_type: {
    status: 415,
    openai: ["invalid_request_error", "unsupported_media_type"],
    messages: "invalid_request_error",
    responseFailed: "invalid_prompt",
  },
  upgrade_required: {
    status: 426,
    openai: ["invalid_request_error", "upgrade_required"],
    messages: "invalid_request_error",
    responseFailed: "invalid_prompt",
  },
  rate_limited: {
    status: 429,
    openai: ["rate_limit_error", "rate_limit_exceeded"],
    messages: "rate_limit_error",
    responseFailed: "rate_limit_exceeded",
  },
  too_many_wrong_keys: {
    status: 429,
    openai: ["rate_limit_error", "too_many_wrong_keys"],
    messages: "rate_limit_error",
    responseFailed: "invalid_prompt",
  },
  too_many_concurrent: {
    status: 429,
    openai: ["rate_limit_error", "concurrency_limit_exceeded"],
    messages: "rate_limit_error",
    responseFailed: "rate_limit_exceeded",
  },
  internal: {
    status: 500,
    openai: ["server_error", "internal_error"],
    messages: "api_error",
    responseFailed: "server_error",
  },
  deployment_failed: {
    status: 502,
    openai: ["server_error", "deployment_failed"],
    messages: "api_error",
    responseFailed: "server_error",
  },
  overloaded: {
    status: 503,
    openai: ["server_error", "overloaded"],
    messages: "overloaded_error",
    responseFailed: "rate_limit_exceeded",
  },
  deployment_timeout: {
    status: 504,
    openai: ["server_error", "deployment_timeout"],
    messages: "timeout_error",
    responseFailed: "server_error",
  },
} as const satisfies Record<FailureCode, ErrorRow>;
