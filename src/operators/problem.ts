import { HTTPException } from "hono/http-exception";
import { OperatorError, type OperatorErrorCode } from "../ledger/operator-error.ts";
import { StoreFault } from "../ledger/store-fault.ts";

/** What went wrong, as RFC 9457 has it, with a code for programs. */
export interface Problem {
  readonly status: ProblemStatus;
  readonly code: string;
  /** What is wrong and what to do. */
  readonly detail: string;
  /** The field at fault: a member of the body with dots between names, or a parameter. */
  readonly param?: string;
  readonly retryAfterSeconds?: number;
  /** Of a 405: the methods that there are. */
  readonly allowed?: readonly string[];
}

/** Every status that a problem has. */
export type ProblemStatus =
  | 400
  | 401
  | 403
  | 404
  | 405
  | 409
  | 410
  | 412
  | 413
  | 415
  | 429
  | 500
  | 503;

/** A problem on its way to the caller. */
export class ProblemError extends Error {
  override readonly name = "ProblemError";
  readonly problem: Problem;

  constructor(problem: Problem) {
    super(problem.detail);
    this.problem = problem;
  }
}

const statuses: Readonly<Record<OperatorErrorCode, ProblemStatus>> = {
  not_found: 404,
  invalid_value: 400,
  not_possible: 409,
  ledger_unusable: 503,
  idempotency_conflict: 409,
  idempotency_in_progress: 409,
  reference_conflict: 409,
  version_conflict: 412,
};

const titles: Readonly<Record<ProblemStatus, string>> = {
  400: "Bad Request",
  401: "Unauthorized",
  403: "Forbidden",
  404: "Not Found",
  405: "Method Not Allowed",
  409: "Conflict",
  412: "Precondition Failed",
  410: "Gone",
  413: "Content Too Large",
  415: "Unsupported Media Type",
  429: "Too Many Requests",
  500: "Internal Server Error",
  503: "Service Unavailable",
};

/** The problem of an error; one that is not known says nothing of itself. */
export function problemOf(error: unknown): Problem {
  if (error instanceof ProblemError) return error.problem;
  if (error instanceof OperatorError)
    return {
      status: statuses[error.code],
      code: error.code,
      detail: error.message,
      ...(error.param === null ? {} : { param: error.param }),
    };
  if (error instanceof StoreFault && error.kind !== "bug")
    return {
      status: 503,
      code: "ledger_unavailable",
      detail: "The ledger cannot be reached at the moment. Try again in a few seconds.",
      retryAfterSeconds: 2,
    };
  // What hono refuses itself is a body that is no JSON.
  if (error instanceof HTTPException && error.status < 500)
    return { status: 400, code: "invalid_value", detail: `${error.message}.` };
  return {
    status: 500,
    code: "internal",
    detail: "Something went wrong inside the service. Its log has the request_id and the cause.",
  };
}

/** The answer that says it. */
export function answerProblem(problem: Problem, requestId: string): Response {
  const { allowed, code, detail, param, retryAfterSeconds, status } = problem;
  const body = {
    type: "about:blank",
    title: titles[status],
    status,
    detail,
    code,
    request_id: requestId,
    ...(param === undefined ? {} : { param }),
  };
  return new Response(JSON.stringify(body), {
    status,
    headers: {
      "content-type": "application/problem+json",
      "cache-control": "no-store",
      "x-request-id": requestId,
      ...(retryAfterSeconds === undefined ? {} : { "retry-after": String(retryAfterSeconds) }),
      ...(allowed === undefined ? {} : { allow: allowed.join(", ") }),
      ...(status === 401 ? { "www-authenticate": "Bearer" } : {}),
    },
  });
}
