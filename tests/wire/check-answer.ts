import type { z } from "zod";
import { chatCompletionBodySchema } from "./schemas/chat-completions.ts";
import { messagesErrorBodySchema, openaiErrorBodySchema } from "./schemas/error.ts";
import { messageBodySchema } from "./schemas/messages.ts";
import { responsesBodySchema } from "./schemas/responses.ts";
import type { WireFormatName } from "../../src/formats/wire-format.ts";
import { openStreamCheck, problemOf } from "./check-stream.ts";
import { callerRouteOf } from "./caller-routes.ts";
import { aliveSchema, readinessSchema } from "./service-schema.ts";
import type { AnswerHead, AnswerInspection } from "./watch-answers.ts";

/** The schema of a whole answer in each format: `in_progress` and `failed` are states of a stream. */
export const bodySchemas = {
  "chat-completions": chatCompletionBodySchema,
  responses: responsesBodySchema.refine(
    ({ status }) => status === "completed" || status === "incomplete",
    { error: "a body is of an answer that ended well", path: ["status"] },
  ),
  messages: messageBodySchema,
} as const satisfies Record<WireFormatName, z.ZodType>;

const formatOfPath: Readonly<Record<string, WireFormatName>> = {
  "/v1/chat/completions": "chat-completions",
  "/v1/responses": "responses",
  "/v1/messages": "messages",
};

/** Opens the look at one answer of the service: its route says what it has to be. */
export function openAnswerCheck(
  head: AnswerHead,
  report: (problem: string) => void,
): AnswerInspection {
  const format = formatOfPath[head.path];
  const type = head.contentType.split(";", 1)[0] ?? "";
  if (type === "text/event-stream" && format !== undefined && head.status === 200)
    return openStreamCheck({ format, usageAsked: isUsageAsked(head.requestBody), report });
  const pieces: string[] = [];
  return {
    write: (text) => void pieces.push(text),
    end() {
      const problem = problemOfBody(head, type, pieces.join(""));
      if (problem !== null) report(problem);
    },
  };
}

function problemOfBody(head: AnswerHead, type: string, body: string): string | null {
  // Node sends none of it, and there is nothing in an answer to a preflight.
  if (head.method === "HEAD" || (head.status === 204 && body === "")) return null;
  if (type === "text/plain" && head.path === "/metrics" && head.status === 200)
    return body === "" ? "no metrics" : null;
  if (type === "text/plain" && head.path === "/metrics" && head.status === 410)
    return /^\/metrics is on the operators' listener: .+\n$/.test(body) ? null : body;
  // The page for callers and its files are for browsers; tests/console looks at them.
  if (head.path === "/" || head.path.startsWith("/console/"))
    if (["text/html", "text/javascript", "text/plain"].includes(type))
      return body === "" ? "an empty page" : null;
  if (type !== jsonType && head.status === 200 && isFile(head, type)) return null;
  if (type !== "application/json") return `a content-type that is not known: ${head.contentType}`;
  const schema = schemaOf(head);
  if (schema === null) return "a body that no schema knows";
  const problem = problemOf(schema, parse(body));
  return problem === null ? null : `${problem}: ${body.slice(0, 400)}`;
}

/** Reports come as files too. */
function isFile({ method, path }: AnswerHead, type: string): boolean {
  const answers = callerRouteOf(method, path)?.answers ?? {};
  return type !== "text/event-stream" && Object.hasOwn(answers, type);
}

function schemaOf({ status, path, shape }: AnswerHead): z.ZodType | null {
  const ofMessages = shape === "messages";
  if (path === "/readyz" && (status === 200 || status === 503)) return readinessSchema;
  if (status >= 400) return ofMessages ? messagesErrorBodySchema : openaiErrorBodySchema;
  if (status !== 200) return null;
  const format = formatOfPath[path];
  if (format !== undefined) return bodySchemas[format];
  const route = callerRouteOf("GET", path) ?? callerRouteOf("POST", path);
  const answer = (ofMessages ? route?.messagesAnswer : undefined) ?? route?.answers[jsonType];
  return answer ?? (alivePaths.includes(path) ? aliveSchema : null);
}

const jsonType = "application/json";
const alivePaths = ["/healthz", "/", "/api/hello"];

/** null: the body is not known. */
function isUsageAsked(body: string | null): boolean | null {
  if (body === null) return null;
  const request = parse(body) as {
    readonly stream_options?: { readonly include_usage?: unknown } | null;
  };
  return request.stream_options?.include_usage === true;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
