import { readFileSync } from "node:fs";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import { openAnswerCheck } from "../wire/check-answer.ts";
import { operatorsDocumentFile } from "../wire/document-files.ts";
import type { AnswerHead, AnswerInspection } from "../wire/watch-answers.ts";

/** The operators' OpenAPI document as far as it says what an answer is. */
interface Document {
  readonly paths: Readonly<
    Record<
      string,
      Readonly<Record<string, { readonly responses: Readonly<Record<string, unknown>> }>>
    >
  >;
  readonly components: { readonly schemas: Readonly<Record<string, object>> };
}

/** The operators' document, as their listener answers it. */
export const operatorsDocumentOfTests = JSON.parse(
  readFileSync(operatorsDocumentFile, "utf8"),
) as Document;
const document = operatorsDocumentOfTests;
const ajv = new Ajv2020({ strict: false, validateFormats: false });
ajv.addSchema(document, "document");
const problem = "document#/components/schemas/Problem";

/** Compiled once for each place: `ajv.validate` compiles again whatever object it has not met, were it the same reference. */
function validatorAt(reference: string): ValidateFunction {
  const validator = ajv.getSchema(reference);
  if (validator === undefined) throw new Error(`no schema at ${reference}`);
  return validator;
}

/** Opens the look at one answer: those of the operators' API are held against its OpenAPI document. */
export function openOperatorsAnswerCheck(
  head: AnswerHead,
  report: (problem: string) => void,
): AnswerInspection {
  if (head.path === "/api/v1/openapi.json") return unlooked;
  if (!head.path.startsWith("/api/v1/"))
    return head.contentType === "application/problem+json"
      ? unlooked
      : openAnswerCheck(head, report);
  const pieces: string[] = [];
  return {
    write: (text) => void pieces.push(text),
    end() {
      const { schema, texts, type } = answerOf(head);
      const [media = ""] = head.contentType.split(";");
      if (texts.includes(media)) return;
      if (head.contentType !== type) report(`content-type ${head.contentType}, not ${type}`);
      const text = pieces.join("");
      // Streams have tests of their own for what their events say.
      if (type === "text/event-stream") return;
      const validator = validatorAt(schema);
      if (!validator(JSON.parse(text))) report(ajv.errorsText(validator.errors));
    },
  };
}

// The document itself, and answers to requests for no known host.
const unlooked: AnswerInspection = { write: () => {}, end: () => {} };

/** `schema`: its place in the document; `texts`: other media types that the document has for this answer. */
function answerOf(head: AnswerHead): {
  readonly schema: string;
  readonly type: string;
  readonly texts: readonly string[];
} {
  const good = head.path === "/api/v1/live" ? "text/event-stream" : "application/json";
  const type = head.status < 300 ? good : "application/problem+json";
  const path = Object.keys(document.paths).find((template) =>
    new RegExp(`^${template.replaceAll(/\{\w+\}/g, "[^/]+")}$`).test(head.path),
  );
  const route = path === undefined ? undefined : document.paths[path]?.[head.method.toLowerCase()];
  if (head.status >= 300 || path === undefined || route === undefined)
    return { schema: problem, type, texts: [] };
  const at = ["paths", path, head.method.toLowerCase(), "responses", String(head.status)];
  const pointer = [...at, "content", type, "schema"]
    .map((part) => encodeURIComponent(part.replaceAll("~", "~0").replaceAll("/", "~1")))
    .join("/");
  const answer = route.responses[String(head.status)] as { readonly content: object };
  const texts = Object.keys(answer.content).filter((media) => media !== type);
  return { schema: `document#/${pointer}`, type, texts };
}
