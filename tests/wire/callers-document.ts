import { readFileSync } from "node:fs";
import { z } from "zod";
import manifest from "../../package.json" with { type: "json" };
import {
  type CallerRoute,
  callerRoutes,
  type Parameter,
  scopeOf,
  sharedSchemas,
} from "./caller-routes.ts";
import { chatCompletionBodySchema, chatCompletionChunkSchema } from "./schemas/chat-completions.ts";
import {
  messagesErrorBodySchema,
  openaiErrorBodySchema,
  openaiErrorSchema,
} from "./schemas/error.ts";
import { nameSchemas } from "./name-schemas.ts";
import { messageBodySchema, messagesStreamEventSchema } from "./schemas/messages.ts";
import {
  chatCompletionsRequestSchema,
  countTokensRequestSchema,
  messagesRequestSchema,
  responsesRequestSchema,
} from "./schemas/requests.ts";
import {
  begunItem,
  completed,
  endedItem,
  failed,
  incomplete,
  inProgress,
  responsesAnswerSchema,
  responsesStreamEventSchema,
} from "./schemas/responses.ts";
import { buildOperatorsDocument } from "../operators/operators-document.ts";
import { documentFile } from "./document-files.ts";
import {
  accountSchema,
  messagesModelListSchema,
  messagesModelSchema,
  openaiModelListSchema,
  openaiModelSchema,
  receiptSchema,
  tokenCountSchema,
} from "./service-schema.ts";

type Json = Record<string, unknown>;

const components: Readonly<Record<string, z.ZodType>> = {
  ChatCompletionRequest: chatCompletionsRequestSchema,
  ChatCompletion: chatCompletionBodySchema,
  ChatCompletionChunk: chatCompletionChunkSchema,
  ResponseRequest: responsesRequestSchema,
  Response: responsesAnswerSchema,
  ResponseInProgress: inProgress,
  ResponseCompleted: completed,
  ResponseIncomplete: incomplete,
  ResponseFailed: failed,
  BegunItem: begunItem,
  OutputItem: endedItem,
  ResponseStreamEvent: responsesStreamEventSchema,
  MessageRequest: messagesRequestSchema,
  Message: messageBodySchema,
  MessageStreamEvent: messagesStreamEventSchema,
  CountTokensRequest: countTokensRequestSchema,
  TokenCount: tokenCountSchema,
  Model: openaiModelSchema,
  ModelList: openaiModelListSchema,
  MessagesModel: messagesModelSchema,
  MessagesModelList: messagesModelListSchema,
  Account: accountSchema,
  Receipt: receiptSchema,
  ...sharedSchemas,
  Error: openaiErrorBodySchema,
  ErrorObject: openaiErrorSchema,
  MessagesError: messagesErrorBodySchema,
};

/** The document as the table of routes and the schemas of the tests say it. */
export function buildCallersDocument(): Json {
  const registry = z.registry<{ readonly id: string }>();
  for (const [id, schema] of Object.entries(components)) registry.add(schema, { id });
  // What has no name of its own is translated like what has.
  const parts = new Map<z.ZodType, string>();
  const partOf = (schema: z.ZodType): Json => {
    const known = registry.get(schema)?.id ?? parts.get(schema) ?? `part${String(parts.size)}`;
    if (!registry.has(schema)) {
      parts.set(schema, known);
      registry.add(schema, { id: known });
    }
    return { $ref: refTo(known) };
  };
  const paths: Record<string, Json> = {};
  for (const route of callerRoutes)
    paths[route.path] = { ...paths[route.path], [route.method]: operationOf(route, partOf) };
  const { schemas } = z.toJSONSchema(registry, { uri: refTo, override: simplify });
  for (const schema of Object.values(schemas))
    for (const name of ["$schema", "$id"] as const) delete schema[name];
  // The same, with what the operators' document says of each member.
  const operators = buildOperatorsDocument();
  for (const name of Object.keys(sharedSchemas)) {
    const described = operators.components.schemas[name];
    Object.assign(schemas, { [name]: { ...described, additionalProperties: false } });
  }
  const unnamed = new Map([...parts.values()].map((id) => [refTo(id), schemas[id]]));
  const named = Object.keys(components).map((id) => [id, schemas[id]] as const);
  const inline = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(inline);
    if (typeof value !== "object" || value === null) return value;
    const ref = (value as { readonly $ref?: unknown }).$ref;
    const part = typeof ref === "string" ? unnamed.get(ref) : undefined;
    if (part !== undefined) return inline(part);
    return Object.fromEntries(
      Object.entries(value).map(([name, member]) => [name, inline(member)]),
    );
  };
  return {
    openapi: "3.1.0",
    info: infoOf(),
    servers: [{ url: "/" }],
    security: [{ bearer: [] }, { key: [] }],
    paths: inline(paths),
    components: {
      securitySchemes: {
        bearer: { type: "http", scheme: "bearer", description: "a key: trib_..." },
        key: { type: "apiKey", in: "header", name: "x-api-key", description: "the same" },
      },
      schemas: nameSchemas(inline(Object.fromEntries(named)) as Record<string, Json>),
    },
  };
}

/** The document that the service answers. */
export function readCallersDocument(): Json {
  return JSON.parse(readFileSync(documentFile, "utf8")) as Json;
}

function refTo(id: string): string {
  return `#/components/schemas/${id}`;
}

function infoOf(): Json {
  return {
    title: "Tributary",
    version: manifest.version,
    description:
      "One model behind three formats, and what a key's account has, used and paid. Members that are not named here are ignored, and `null` counts as absent.",
    license: { name: "Apache-2.0", url: "https://www.apache.org/licenses/LICENSE-2.0" },
  };
}

function operationOf(route: CallerRoute, partOf: (schema: z.ZodType) => Json): Json {
  const { answers, body, description, headers = {}, messagesAnswer, operationId, summary } = route;
  const scope = scopeOf(route);
  const needs = scope === null ? null : `Needs a key with the scope ${scope}.`;
  const content = Object.entries(answers).map(([type, schema]) => {
    const isShaped = type === "application/json" && messagesAnswer !== undefined;
    const shapes = isShaped ? { anyOf: [partOf(schema), partOf(messagesAnswer)] } : partOf(schema);
    return [type, { schema: type === "text/event-stream" ? eventOf(shapes, route.path) : shapes }];
  });
  const errors = route.path.startsWith("/v1/messages")
    ? partOf(messagesErrorBodySchema)
    : { anyOf: [partOf(openaiErrorBodySchema), partOf(messagesErrorBodySchema)] };
  const failed = (words: string): Json => ({
    description: words,
    headers: headersOf({}),
    content: { "application/json": { schema: errors } },
  });
  return {
    operationId,
    summary,
    description: [description, needs ?? "Needs no key, or any."].filter(Boolean).join(" "),
    ...(route.open === true ? { security: [] } : {}),
    ...(route.parameters === undefined
      ? {}
      : { parameters: Object.entries(route.parameters).map((one) => parameterOf(one, partOf)) }),
    ...(body === undefined
      ? {}
      : {
          requestBody: {
            required: true,
            content: { "application/json": { schema: partOf(body) } },
          },
        }),
    responses: {
      200: {
        description:
          "text/event-stream" in answers ? "the answer, whole or as events" : "the answer",
        headers: headersOf(headers),
        content: Object.fromEntries(content),
      },
      "4XX": failed("what is wrong with the request and what to do"),
      "5XX": failed("what failed; `retry-after` says when to try again, where that helps"),
    },
  };
}

/** One event of a stream, as its lines say it. The last of Chat Completions is no JSON. */
function eventOf(contentSchema: Json, path: string): Json {
  const json = { type: "string", contentMediaType: "application/json", contentSchema };
  const data = path === "/v1/chat/completions" ? { anyOf: [{ const: "[DONE]" }, json] } : json;
  return {
    type: "object",
    description: "one of the events; what its data says, as JSON",
    required: ["data"],
    properties: { event: { type: "string" }, data },
  };
}

function parameterOf(
  [name, parameter]: [string, Parameter],
  partOf: (schema: z.ZodType) => Json,
): Json {
  const { description, schema } = parameter;
  const required = parameter.in === "path";
  return { name, in: parameter.in, description, required, schema: partOf(schema) };
}

function headersOf(further: Readonly<Record<string, string>>): Json {
  const all = {
    "x-request-id": "names the request in the log, on its receipt and in errors",
    ...further,
  };
  return Object.fromEntries(
    Object.entries(all).map(([name, description]) => [
      name,
      { description, schema: { type: "string" } },
    ]),
  );
}

/** Without what a format says already; lists of one thing or none are written as generators of clients know them. */
function simplify({ jsonSchema }: { readonly jsonSchema: Json }): void {
  if (jsonSchema["format"] === "date-time") delete jsonSchema["pattern"];
  const places = jsonSchema["prefixItems"];
  if (!Array.isArray(places) || places.length > 1) return;
  delete jsonSchema["prefixItems"];
  jsonSchema["items"] = (places[0] as unknown) ?? {};
}
