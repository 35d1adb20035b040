import type { Ask } from "../api/ask.ts";
import { ApiError, withQuery } from "../api/client.ts";
import type { BudgetOf } from "../components/budget-figures.tsx";

/** What `GET /account` answers. */
export interface CallerAccount extends BudgetOf {
  readonly id: string;
  readonly name: string;
  readonly status: string;
  readonly balance: string;
  readonly held: string;
  readonly available: string;
  readonly prices: {
    readonly input: string;
    readonly cached_input: string;
    readonly output: string;
  };
  readonly limits: {
    readonly concurrent_requests: number;
    readonly requests_per_minute: number;
    readonly requests_remaining: number;
    readonly output_allowance_max: number;
  };
  readonly running_requests: readonly {
    readonly id: string;
    readonly format: string;
    readonly streamed: boolean;
    readonly reserved: string;
    readonly admitted_at: string;
  }[];
}

/** Asks the service for what a key may see of its account. */
export function askWith(key: string): Ask {
  return async <Answer>(...[path, { query, signal } = {}]: Parameters<Ask>) => {
    const response = await fetchWith(key, withQuery(path, query), {
      accept: "application/json",
      signal,
    });
    return (await response.json()) as Answer;
  };
}

/** The answer as it comes, in the form that is asked for; what is none is thrown. */
export async function fetchWith(
  key: string,
  path: string,
  { accept, signal }: { readonly accept: string; readonly signal?: AbortSignal | undefined },
): Promise<Response> {
  const response = await fetch(path, {
    headers: { authorization: `Bearer ${key}`, accept },
    ...(signal === undefined ? {} : { signal }),
  }).catch((cause: unknown) => {
    if (signal?.aborted === true) throw cause;
    throw new ApiError({ status: 0, code: "no_answer", detail: "The service does not answer." });
  });
  if (response.ok) return response;
  // The service's own words for 401 name headers, for those who write programs.
  if (response.status === 401)
    throw new ApiError({ status: 401, code: "authentication", detail: keyUnknown });
  const body: unknown = await response.json().catch(() => null);
  throw new ApiError({ status: response.status, ...problemOf(body, response.status) });
}

const keyUnknown =
  "The service does not know this API key: it is misspelt, has expired or was revoked. Forget the key, above, and enter one as it was printed when it was made.";

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
