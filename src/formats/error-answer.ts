import { type Failure, type FailureKind } from "../failure.ts";
import { limits } from "../limits.ts";
import type { BudgetFields, MessagesErrorBody, OpenaiError, ShortageFields } from "./error-wire.ts";
import type { ErrorAnswer } from "./wire-format.ts";

/** Which of the two error shapes a caller reads. */
export type ErrorShape = "openai" | "messages";

/** The `error` object of the OpenAI shape, shared by the Chat Completions and Responses formats. */
export function buildOpenaiError(failure: Failure, requestId: string): OpenaiError {
  return {
    message: failure.message,
    type: failure.kind.openaiType,
    param: failure.facts.param ?? null,
    code: failure.kind.openaiCode,
    request_id: requestId,
    ...shortageFields(failure),
  };
}

/** The body of the Messages shape. */
export function buildMessagesError(failure: Failure, requestId: string): MessagesErrorBody {
  const details = failure.facts.messagesDetails;
  return {
    type: "error",
    error: {
      type: failure.kind.messagesType,
      message: messagesText(failure),
      ...(details === undefined ? {} : { details }),
      ...shortageFields(failure),
    },
    request_id: requestId,
  };
}

/** Status, headers and body of a failure that is known before anything of the answer was sent. */
export function buildErrorAnswer(
  failure: Failure,
  shape: ErrorShape,
  requestId: string,
): ErrorAnswer {
  const { kind } = failure;
  const status = shape === "messages" ? (kind.messagesStatus ?? kind.status) : kind.status;
  const allow = failure.facts.allow;
  return {
    status,
    headers: {
      ...adviceHeaders(kind, failure),
      ...(allow === undefined ? {} : { allow }),
    },
    body:
      shape === "messages"
        ? buildMessagesError(failure, requestId)
        : { error: buildOpenaiError(failure, requestId) },
  };
}

function adviceHeaders(kind: FailureKind, failure: Failure): Record<string, string> {
  if (kind.retry) {
    const seconds = Math.ceil(failure.facts.retryAfterSeconds ?? 1);
    return { "retry-after": String(Math.min(Math.max(seconds, 1), limits.retryAfterSecondsMax)) };
  }
  return kind.status < 500 ? { "x-should-retry": "false" } : {};
}

function shortageFields(failure: Failure): ShortageFields | (ShortageFields & BudgetFields) | null {
  const { shortage } = failure.facts;
  if (shortage === undefined) return null;
  const figures = {
    balance: shortage.balance,
    held: shortage.held,
    needed: shortage.needed,
    affordable_output_tokens: shortage.affordableOutputTokens,
    waiting_helps: shortage.waitingHelps,
  };
  if (shortage.budget === undefined) return figures;
  const { amount, endsAt, left } = shortage.budget;
  return { ...figures, budget: amount, budget_left: left, budget_ends_at: endsAt };
}

/** The message; of a conversation that is too long it begins as agents expect it, to the letter, before they compact. */
function messagesText(failure: Failure): string {
  if (failure.code !== "input_too_large" || failure.facts.tokens === undefined)
    return failure.message;
  const { sent, maximum } = failure.facts.tokens;
  return `prompt is too long: ${String(sent)} tokens > ${String(maximum)} maximum. ${failure.message}`;
}
