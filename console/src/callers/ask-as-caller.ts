import { ApiError } from "../api/client.ts";

/** What `GET /account` answers. */
export interface CallerAccount {
  readonly id: string;
  readonly name: string;
  readonly status: string;
  readonly balance: string;
  readonly held: string;
  readonly available: string;
  readonly prices: {
    readonly input: string;
    readonly cached_input?: string;
    readonly output: string;
  };
  readonly limits: {
    readonly concurrent_requests: number;
    readonly requests_per_minute: number;
    readonly requests_remaining: number;
    readonly output_allowance_max: number;
  };
  readonly budget?: {
    readonly amount: string;
    readonly period: string;
    readonly timezone: string;
  } | null;
  readonly budget_left?: string | null;
  readonly budget_ends_at?: string | null;
  readonly running_requests: readonly {
    readonly id: string;
    readonly format: string;
    readonly reserved: string;
    readonly admitted_at: string;
  }[];
}

/** Asks the service for what a key may see of its account. */
export async function askAsCaller<Answer>(
  path: string,
  key: string,
  signal: AbortSignal,
): Promise<Answer> {
  const headers = { authorization: `Bearer ${key}`, accept: "application/json" };
  const response = await fetch(path, { headers, signal }).catch((cause: unknown) => {
    if (signal.aborted) throw cause;
    throw new ApiError({ status: 0, code: "no_answer", detail: "The service does not answer." });
  });
  const body: unknown = await response.json().catch(() => null);
  if (response.ok) return body as Answer;
  throw new ApiError({ status: response.status, ...problemOf(body, response.status) });
}

function problemOf(
  body: unknown,
  status: number,
): { readonly code: string; readonly detail: string } {
  const { error } = (body ?? {}) as { readonly error?: { message?: unknown; code?: unknown } };
  return {
    code: typeof error?.code === "string" ? error.code : "unknown",
    detail:
      typeof error?.message === "string"
        ? error.message
        : `The service answered ${String(status)}.`,
  };
}
