import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Failure } from "../../src/failure.ts";
import { wireFormats } from "../../src/formats/formats.ts";
import type { WireFormatName } from "../../src/formats/wire-format.ts";
import { parseCountTokens } from "../../src/formats/messages/count-tokens.ts";
import { findRoute, knownRequests } from "../../src/http/routes.ts";
import { testReasoning } from "../cases/context.ts";
import { caseFiles, isRecord, type JsonRecord, readJson, readText } from "../cases/files.ts";
import { mutate, type Mutation } from "../properties/mutate-json.ts";
import { allRecordings } from "../recordings/recording.ts";
import { framesOf, readFrames } from "../reader/frames.ts";
import { callerRoutes } from "./caller-routes.ts";
import { buildCallersDocument, readCallersDocument } from "./callers-document.ts";

// The document of what callers reach is no second truth: its answers are the schemas that every answer in the tests is held
// against, and its requests are held here against the parsers, in both directions.

const document = readCallersDocument();
const ajv = new Ajv2020({ strict: false, validateFormats: false });
ajv.addSchema(document, "document");

/** The schema behind some members of the document. */
function schemaAt(...members: readonly string[]): ValidateFunction {
  const path = members.map((one) => encodeURIComponent(one.replaceAll("/", "~1"))).join("/");
  const known = compiled.get(path) ?? ajv.compile({ $ref: `document#/${path}` });
  compiled.set(path, known);
  return known;
}
const compiled = new Map<string, ValidateFunction>();

const requestOf = (path: string): ValidateFunction =>
  schemaAt("paths", path, "post", "requestBody", "content", "application/json", "schema");
const answerOf = (path: string, type: string, ...below: readonly string[]): ValidateFunction =>
  schemaAt("paths", path, "post", "responses", "200", "content", type, "schema", ...below);

const names = ["chat-completions", "responses", "messages"] as const;

const pathOf = {
  "chat-completions": "/v1/chat/completions",
  responses: "/v1/responses",
  messages: "/v1/messages",
} as const satisfies Record<WireFormatName, string>;

type Parse = (body: JsonRecord) => unknown;
const parsers: Readonly<Record<string, Parse>> = {
  ...Object.fromEntries(
    names.map((name): [string, Parse] => [
      pathOf[name],
      (body) => wireFormats[name].parseRequest(body, testReasoning),
    ]),
  ),
  "/v1/messages/count_tokens": (body) => parseCountTokens(body, testReasoning),
};

/** What the parsers refuse and no schema of one body can say, by what they say of it. */
const beyondSchemas: Readonly<Record<string, RegExp>> = {
  "a result answers a call of the same conversation": /but no earlier call has that id/u,
  "a choice names a tool of the same request": /which is not in "tools"/u,
  "names of tools are unique": /two tools have the name/u,
  "a hosted tool cannot be forced": /would run inside the service/u,
  "`reasoning` is read where `reasoning_content` is not there": /\.reasoning: must be a string/u,
};

const mutation: fc.Arbitrary<Mutation> = fc.record({
  kind: fc.constantFrom("replace", "remove", "duplicate", "add", "move", "stretch"),
  place: fc.nat(),
  value: fc.oneof(
    fc.jsonValue({ maxDepth: 2 }),
    fc.constantFrom(1e308, -1, 0, 1.5, 3, "", "auto", "text", "json_schema", "tool", null, true),
  ),
});

const requests = caseFiles("requests").filter((file) => file.kind === "request");
/** Bodies to change, those that are refused as they are among them. */
const bodiesOf = (format: WireFormatName | undefined): readonly JsonRecord[] =>
  caseFiles("requests").flatMap((file) => {
    if (file.format !== format) return [];
    const json = readJson(file);
    const body = file.kind === "refused" ? json["request"] : json;
    return isRecord(body) ? [body] : [];
  });

describe("the OpenAPI document for callers", () => {
  it("is what the schemas of the tests say; `npm run openapi` writes it", () => {
    expect(document).toEqual(JSON.parse(JSON.stringify(buildCallersDocument())));
  });

  it("has every route of the first listener but those for probes and scrapes, and no other", () => {
    const served = knownRequests().map(([method, path]) => `${method} ${path}`);
    const others = ["/healthz", "/readyz", "/metrics", "/", "/api/hello"].map(
      (path) => `GET ${path}`,
    );
    const told = callerRoutes.map(({ method, path }) => `${method.toUpperCase()} ${path}`);
    const fixed = told.filter((route) => !route.includes("{"));
    expect(new Set(fixed)).toEqual(new Set(served.filter((route) => !others.includes(route))));
    for (const { method, path } of callerRoutes) {
      const route = findRoute(method.toUpperCase(), path.replaceAll(/\{\w+\}/gu, "x"), false);
      expect(route.pattern).toBe(path.replaceAll(/\{(\w+)\}/gu, ":$1"));
    }
  });

  it.each(names)("takes every golden request, body and frame of %s", (format) => {
    const path = pathOf[format];
    const request = requestOf(path);
    const body = answerOf(path, "application/json");
    const eventOf = (...below: readonly string[]): ValidateFunction =>
      answerOf(path, "text/event-stream", "properties", "data", ...below);
    const ends = format === "chat-completions";
    const frame = eventOf(...(ends ? ["anyOf", "1"] : []), "contentSchema");
    for (const file of requests)
      if (file.format === format)
        expect([file.name, problemsOf(request, readJson(file))]).toEqual([file.name, null]);
    for (const file of caseFiles("generations")) {
      if (file.format !== format) continue;
      if (file.kind === "body") expect(problemsOf(body, readJson(file))).toBeNull();
      if (file.kind !== "stream") continue;
      for (const { data } of framesOf(readFrames(readText(file))))
        if (ends && eventOf("anyOf", "0")(data)) expect(data).toBe("[DONE]");
        else expect([data, problemsOf(frame, JSON.parse(data))]).toEqual([data, null]);
    }
  });

  it("takes what clients were recorded to send, as the parsers do", () => {
    let count = 0;
    for (const { calls, client } of allRecordings())
      for (const { body, path, what } of calls) {
        const [bare = ""] = path.split("?", 1);
        const parse = parsers[bare];
        if (parse === undefined || body === null) continue;
        count += 1;
        const refusal = refusalOf(() => parse(body));
        expect([client, what, requestOf(bare)(body)]).toEqual([client, what, refusal === null]);
      }
    expect(count).toBeGreaterThan(20);
  });

  it.each(Object.entries(parsers))(
    "allows of %s what its parser takes, and forbids what it refuses",
    (path, parse) => {
      const request = requestOf(path);
      const format = names.find((name) => path.startsWith(pathOf[name]));
      const bodies = bodiesOf(format);
      const judged = { taken: 0, refused: 0 };
      fc.assert(
        fc.property(
          fc.constantFrom(...bodies),
          fc.array(mutation, { minLength: 0, maxLength: 3 }),
          (given, mutations) => {
            const mutated = mutations.reduce<unknown>(mutate, given);
            const body = JSON.parse(JSON.stringify(mutated)) as unknown;
            if (!isRecord(body)) return;
            const refusal = refusalOf(() => parse(body));
            judged[refusal === null ? "taken" : "refused"] += 1;
            const allowed = request(body);
            if (refusal === null)
              expect(problemsOf(request, body), "the service takes it").toBeNull();
            else if (!Object.values(beyondSchemas).some((one) => one.test(refusal)))
              expect(allowed, `the service refuses it: ${refusal}`).toBe(false);
          },
        ),
        { numRuns: 600 },
      );
      expect(Math.min(judged.taken, judged.refused)).toBeGreaterThan(80);
    },
  );
});

function refusalOf(attempt: () => unknown): string | null {
  try {
    attempt();
    return null;
  } catch (error) {
    if (error instanceof Failure) return error.message;
    throw error;
  }
}

function problemsOf(validate: ValidateFunction, value: unknown): string | null {
  return validate(value) ? null : ajv.errorsText(validate.errors);
}
