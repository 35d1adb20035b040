import { framesOf, readFrames } from "../reader/frames.ts";

/** An answer as it was read. */
export interface ReadAnswer {
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
}

/** What is wrong with an answer, whatever was asked; null: it is whole, and of its format. */
export function problemOfAnswer(path: string, status: number, answer: ReadAnswer): string | null {
  const { headers, text } = answer;
  if (!String(headers["x-request-id"]).startsWith("req_")) return "it has no request id";
  if (status === 200 && String(headers["content-type"]).startsWith("text/event-stream"))
    return problemOfStream(path, text);
  const body = parse(text);
  if (body === null) return `it is no JSON: ${text.slice(0, 100)}`;
  if (status === 200)
    return "error" in body && body["error"] !== null ? "it is an error with 200" : null;
  if (!("error" in body)) return `status ${String(status)} without an error`;
  if (status < 500 && /server_error|api_error/u.test(text))
    return `status ${String(status)} blames the service`;
  return null;
}

function problemOfStream(path: string, text: string): string | null {
  let frames;
  try {
    frames = framesOf(readFrames(text));
  } catch (error) {
    return `a broken stream: ${String(error)}`;
  }
  const last = frames.at(-1);
  const ends =
    path === "/v1/chat/completions"
      ? last?.data === "[DONE]" || last?.data.startsWith('{"error":') === true
      : path === "/v1/responses"
        ? /^response\.(?:completed|incomplete|failed)$/u.test(last?.event ?? "")
        : last?.event === "message_stop" || last?.event === "error";
  return ends ? null : `a stream that ends with ${JSON.stringify(last)}`;
}

function parse(text: string): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}
