import type { Page } from "./types.ts";

/** A problem that the API answered, or that a request met on its way. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  /** 0 where no answer came. */
  readonly status: number;
  readonly code: string;
  /** The field at fault. */
  readonly param: string | null;
  readonly requestId: string | null;

  constructor(problem: {
    readonly status: number;
    readonly code: string;
    readonly detail: string;
    readonly param?: string | undefined;
    readonly request_id?: string | undefined;
  }) {
    super(problem.detail);
    this.status = problem.status;
    this.code = problem.code;
    this.param = problem.param ?? null;
    this.requestId = problem.request_id ?? null;
  }
}

/** What is sent beside the method and the path. */
export interface Call {
  readonly query?: Readonly<Record<string, string | number | boolean | null | undefined>>;
  readonly body?: unknown;
  /** Makes a change happen once, however often it is sent. */
  readonly once?: string;
  /** The version that a change is of; another one by now is refused. */
  readonly version?: string | number;
  readonly signal?: AbortSignal;
}

const prefix = "/api/v1";
const ended = new EventTarget();

/** Calls back when the API no longer knows the session. Returns what stops it. */
export function onSessionEnd(callback: () => void): () => void {
  ended.addEventListener("end", callback);
  return () => ended.removeEventListener("end", callback);
}

/** Reads from the API. */
export function get<Answer>(path: string, call: Call = {}): Promise<Answer> {
  return send("GET", path, call);
}

/** Reads a whole list from the API, page by page. */
export async function getAll<Row>(path: string, call: Call = {}): Promise<Page<Row>> {
  const data: Row[] = [];
  for (let cursor: string | null | undefined; cursor !== null;) {
    const query = { ...call.query, limit: 500, cursor };
    const page: Page<Row> = await get(path, { ...call, query });
    data.push(...page.data);
    cursor = page.next_cursor;
  }
  return { data, next_cursor: null };
}

/** Changes something by the API. */
export async function send<Answer>(
  method: "GET" | "POST" | "PATCH" | "DELETE",
  path: string,
  call: Call = {},
): Promise<Answer> {
  const { body, once, version } = call;
  const headers: Record<string, string> = { accept: "application/json" };
  if (body !== undefined) headers["content-type"] = "application/json";
  if (once !== undefined) headers["idempotency-key"] = once;
  if (version !== undefined) headers["if-match"] = `"${String(version)}"`;
  const sent = body === undefined ? {} : { body: JSON.stringify(body) };
  const response = await ask(path, call, { method, headers, ...sent });
  return (response.status === 204 ? null : await response.json()) as Answer;
}

/** A stream of server-sent events, as its text comes. */
export async function openStream(
  path: string,
  signal: AbortSignal,
): Promise<ReadableStream<Uint8Array<ArrayBuffer>>> {
  const headers = { accept: "text/event-stream" };
  const { body } = await ask(path, { signal }, { headers, cache: "no-store" });
  return body ?? new ReadableStream({ start: (controller) => controller.close() });
}

/** The API no longer knows the session: the person signs in again. */
export function endSession(): void {
  ended.dispatchEvent(new Event("end"));
}

/** An answer that is good; throws the problem of another one. */
async function ask(path: string, call: Call, init: RequestInit): Promise<Response> {
  const { query, signal } = call;
  const response = await fetch(addressOf(path, query), {
    ...init,
    ...(signal === undefined ? {} : { signal }),
  }).catch((cause: unknown) => {
    if (signal?.aborted === true) throw cause;
    throw new ApiError({
      status: 0,
      code: "no_answer",
      detail: "The service does not answer. It may have ended, or the network is away.",
    });
  });
  if (response.ok) return response;
  const problem = await problemOf(response);
  if (problem.status === 401 && path !== "/session") endSession();
  throw problem;
}

/** The address of a call, as a link to a download has it too. */
export function addressOf(path: string, query: Call["query"] = {}): string {
  return prefix + withQuery(path, query);
}

/** A path with its parameters; those that are empty are left out. */
export function withQuery(path: string, query: Call["query"] = {}): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    if (value !== null && value !== undefined && value !== "") parameters.set(name, String(value));
  const text = parameters.toString();
  return text === "" ? path : `${path}?${text}`;
}

/** A key for one change; a repeat of the change sends the same. */
export function newOnce(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

async function problemOf(response: Response): Promise<ApiError> {
  const { status } = response;
  const fallback = {
    status,
    code: `http_${String(status)}`,
    detail: `The service answered ${String(status)}.`,
  };
  const body: unknown = await response.json().catch(() => null);
  if (typeof body !== "object" || body === null || !("detail" in body))
    return new ApiError(fallback);
  return new ApiError({ ...fallback, ...(body as object), status });
}
