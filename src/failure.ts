/** How severe a failure is for the person who runs the service. */
export type FailureLogLevel = "debug" | "info" | "warn" | "error";

/** `error.type` of the OpenAI shape. */
export type OpenaiErrorType =
  | "invalid_request_error"
  | "authentication_error"
  | "insufficient_quota"
  | "permission_error"
  | "rate_limit_error"
  | "server_error";

/** `error.code` of the OpenAI shape. */
export type OpenaiErrorCode =
  | "invalid_value"
  | "unsupported_value"
  | "context_length_exceeded"
  | "refused_by_deployment"
  | "invalid_api_key"
  | "insufficient_quota"
  | "budget_exceeded"
  | "account_disabled"
  | "cancelled_by_operator"
  | "key_expired"
  | "key_paused"
  | "key_scope"
  | "not_found"
  | "method_not_allowed"
  | "upgrade_required"
  | "request_timeout"
  | "request_too_large"
  | "unsupported_media_type"
  | "rate_limit_exceeded"
  | "too_many_wrong_keys"
  | "concurrency_limit_exceeded"
  | "internal_error"
  | "deployment_failed"
  | "overloaded"
  | "deployment_timeout";

/** `error.type` of the Messages shape. */
export type MessagesErrorType =
  | "invalid_request_error"
  | "authentication_error"
  | "billing_error"
  | "permission_error"
  | "not_found_error"
  | "request_too_large"
  | "rate_limit_error"
  | "api_error"
  | "overloaded_error"
  | "timeout_error";

/** What one failure code means on the wire and in the log. */
export interface FailureKind {
  readonly status: number;
  /** HTTP status on routes that answer in the Messages shape, where it differs. */
  readonly messagesStatus?: number;
  readonly openaiType: OpenaiErrorType;
  readonly openaiCode: OpenaiErrorCode;
  readonly messagesType: MessagesErrorType;
  readonly logLevel: FailureLogLevel;
  /** Whether the answer carries `retry-after`; every other 4xx carries `x-should-retry: false`. */
  readonly retry: boolean;
}

/** Every way in which a request can fail. `docs/errors.md` is compared with this table by a test. */
export const failureKinds = {
  invalid_request: kind(400, ["invalid_request_error", "invalid_value"], "invalid_request_error"),
  not_offered: kind(400, ["invalid_request_error", "unsupported_value"], "invalid_request_error"),
  input_too_large: kind(
    400,
    ["invalid_request_error", "context_length_exceeded"],
    "invalid_request_error",
  ),
  refused_by_deployment: {
    ...kind(400, ["invalid_request_error", "refused_by_deployment"], "invalid_request_error"),
    logLevel: "warn",
  },
  authentication: kind(401, ["authentication_error", "invalid_api_key"], "authentication_error"),
  key_expired: kind(401, ["authentication_error", "key_expired"], "authentication_error"),
  insufficient_credit: kind(402, ["insufficient_quota", "insufficient_quota"], "billing_error"),
  budget_exceeded: kind(402, ["insufficient_quota", "budget_exceeded"], "billing_error"),
  account_disabled: kind(403, ["permission_error", "account_disabled"], "permission_error"),
  cancelled_by_operator: kind(
    403,
    ["permission_error", "cancelled_by_operator"],
    "permission_error",
  ),
  key_paused: kind(403, ["permission_error", "key_paused"], "permission_error"),
  key_scope: kind(403, ["permission_error", "key_scope"], "permission_error"),
  not_found: kind(404, ["invalid_request_error", "not_found"], "not_found_error"),
  method_not_allowed: kind(
    405,
    ["invalid_request_error", "method_not_allowed"],
    "invalid_request_error",
  ),
  upgrade_required: kind(
    426,
    ["invalid_request_error", "upgrade_required"],
    "invalid_request_error",
  ),
  request_timeout: kind(408, ["invalid_request_error", "request_timeout"], "invalid_request_error"),
  body_too_large: kind(413, ["invalid_request_error", "request_too_large"], "request_too_large"),
  unsupported_media_type: kind(
    415,
    ["invalid_request_error", "unsupported_media_type"],
    "invalid_request_error",
  ),
  rate_limited: {
    ...kind(429, ["rate_limit_error", "rate_limit_exceeded"], "rate_limit_error"),
    retry: true,
  },
  too_many_wrong_keys: kind(429, ["rate_limit_error", "too_many_wrong_keys"], "rate_limit_error"),
  too_many_concurrent: {
    ...kind(429, ["rate_limit_error", "concurrency_limit_exceeded"], "rate_limit_error"),
    retry: true,
  },
  internal: {
    ...kind(500, ["server_error", "internal_error"], "api_error"),
    logLevel: "error",
  },
  deployment_failed: {
    ...kind(502, ["server_error", "deployment_failed"], "api_error"),
    logLevel: "warn",
  },
  overloaded: {
    ...kind(503, ["server_error", "overloaded"], "overloaded_error"),
    messagesStatus: 529,
    logLevel: "warn",
    retry: true,
  },
  deployment_timeout: {
    ...kind(504, ["server_error", "deployment_timeout"], "timeout_error"),
    logLevel: "warn",
  },
} as const satisfies Record<string, FailureKind>;

/** One code of the table. */
export type FailureCode = keyof typeof failureKinds;

/** Credit figures of a 402: amounts are decimal strings of credits. */
export interface CreditShortage {
  readonly balance: string;
  readonly held: string;
  readonly needed: string;
  /** Output tokens that balance minus held, and the budget, would pay for beside this conversation, at most 65,536. */
  readonly affordableOutputTokens: number;
  /** Whether the request would fit once the account's running requests have given back what they hold. */
  readonly waitingHelps: boolean;
  /** Of `budget_exceeded`: the key's budget, what is left of it, and when its period ends; null: never. */
  readonly budget?: {
    readonly amount: string;
    readonly left: string;
    readonly endsAt: string | null;
  };
}

/** What a Failure may carry besides its code and message. */
export interface FailureFacts {
  /** The request field at fault, such as `messages[3].content`. */
  readonly param?: string;
  /** Seconds a client should wait, 1 to 60; only for codes whose row says `retry`. */
  readonly retryAfterSeconds?: number;
  readonly shortage?: CreditShortage;
  /** `error.details` of the Messages shape, such as the answer to `thread`. */
  readonly messagesDetails?: Readonly<Record<string, unknown>>;
  /** Tokens sent and allowed, where known; the Messages text of `input_too_large` begins with them. */
  readonly tokens?: { readonly sent: number; readonly maximum: number };
  /** For `method_not_allowed`: the value of the `allow` header. */
  readonly allow?: string;
  /** The key's window, for the informing headers of what `authorize` refuses after it had looked at the key. */
  readonly rate?: {
    readonly limit: number;
    readonly remaining: number;
    readonly resetMs: number;
  };
  /** Whether the key that was presented is a right one, which operators may see named. */
  readonly keyIsKnown?: boolean;
  /** For the log only, never sent to a caller. */
  readonly cause?: unknown;
}

/** The one error that travels: thrown or passed up to the handler that knows whether headers are out. */
export class Failure extends Error {
  override readonly name = "Failure";
  readonly code: FailureCode;
  readonly facts: FailureFacts;

  constructor(code: FailureCode, message: string, facts: FailureFacts = {}) {
    super(message, facts.cause === undefined ? undefined : { cause: facts.cause });
    this.code = code;
    this.facts = facts;
  }

  /** The row of the table. */
  get kind(): FailureKind {
    return failureKinds[this.code];
  }
}

/** Anything thrown, as a Failure; what was not one becomes `internal` and tells the caller nothing. */
export function failureFromUnknown(error: unknown): Failure {
  if (error instanceof Failure) return error;
  return new Failure("internal", "Something went wrong inside the service. Try again.", {
    cause: error,
  });
}

/** Plain data of a Failure, so that it can cross a thread or process boundary. */
export interface FailureData {
  readonly code: FailureCode;
  readonly message: string;
  readonly facts: Omit<FailureFacts, "cause">;
  /** null: there was none. */
  readonly cause: CauseData | null;
}

/** What is known of an error that was caught, for the log alone: whether its message may be shown is decided there. */
export interface CauseData {
  readonly name: string;
  readonly message: string;
  readonly stack: string | null;
  /** Fields of errors of the system, such as `code`, by their names. */
  readonly fields: Readonly<Record<string, string>>;
  readonly cause: CauseData | null;
}

/** The plain data of a Failure, with the causes that led to it. */
export function failureToData(failure: Failure): FailureData {
  const { cause, ...facts } = failure.facts;
  return {
    code: failure.code,
    message: failure.message,
    facts,
    cause: cause === undefined ? null : causeToData(cause, causesMax),
  };
}

/** The Failure that plain data describes. */
export function failureFromData({ cause, code, facts, message }: FailureData): Failure {
  return new Failure(
    code,
    message,
    cause === null ? facts : { ...facts, cause: causeFromData(cause) },
  );
}

const causesMax = 4;
/** What the log reads of errors that are not ours. */
const causeFields = ["code", "syscall"] as const;

function causeToData(cause: unknown, deeper: number): CauseData {
  if (!(cause instanceof Error))
    return { name: typeof cause, message: String(cause), stack: null, fields: {}, cause: null };
  const fields = causeFields.flatMap((name) => {
    const value: unknown = (cause as unknown as Record<string, unknown>)[name];
    return typeof value === "string" ? [[name, value] as const] : [];
  });
  return {
    name: cause.name,
    message: cause.message,
    stack: cause.stack ?? null,
    fields: Object.fromEntries(fields),
    cause: cause.cause === undefined || deeper === 0 ? null : causeToData(cause.cause, deeper - 1),
  };
}

function causeFromData({ cause, fields, message, name, stack }: CauseData): Error {
  const options = cause === null ? {} : { cause: causeFromData(cause) };
  return Object.assign(new Error(message, options), fields, { name, stack: stack ?? "" });
}

function kind(
  status: number,
  [openaiType, openaiCode]: readonly [OpenaiErrorType, OpenaiErrorCode],
  messagesType: MessagesErrorType,
): FailureKind {
  return { status, openaiType, openaiCode, messagesType, logLevel: "info", retry: false };
}
