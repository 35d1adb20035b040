import OpenAI, { APIError } from "openai";
import type { ClientKind, Connection, SeenError } from "./client.ts";

/** The vendor's client of the service. */
export function connectOpenAI(connection: Connection): OpenAI {
  return new OpenAI({
    apiKey: connection.key,
    baseURL: `${connection.url}/v1`,
    maxRetries: connection.maxRetries,
  });
}

/** What this SDK can ask besides answers. */
export async function listOpenAIModels(client: OpenAI): Promise<readonly string[]> {
  const ids: string[] = [];
  for await (const { id } of client.models.list()) ids.push(id);
  return ids;
}

/** Why it cannot count. */
export const openaiLacks = {
  "token count": "the service counts tokens for Messages alone",
} as const;

/** Classes of this SDK; a status without a class of its own has the base. */
export const openaiErrorNames: ClientKind["errorNames"] = {
  400: "BadRequestError",
  401: "AuthenticationError",
  402: "APIError",
  403: "PermissionDeniedError",
  404: "NotFoundError",
  413: "APIError",
  429: "RateLimitError",
  502: "InternalServerError",
  503: "InternalServerError",
};

/** An error of this SDK, as the tests compare it. */
export function describeOpenAIError(error: unknown): SeenError {
  if (!(error instanceof APIError)) throw error;
  const headers: unknown = error.headers;
  return {
    status: typeof error.status === "number" ? error.status : undefined,
    name: error.constructor.name,
    message: error.message,
    retryAfter: headers instanceof Headers ? headers.get("retry-after") : undefined,
    requestId: error.requestID,
  };
}
