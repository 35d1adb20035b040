import * as fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ignoredFields } from "../documents/losses/formats.ts";
import { startService, type TestService } from "./start-service.ts";

let service: TestService;
beforeAll(async () => {
  service = await startService({
    // A known context would make the allowance a function of the body's length.
    deployment: { contextTokens: null },
    environment: { TRIBUTARY_REQUESTS_PER_MINUTE: "1000000" },
  });
});
afterAll(() => service[Symbol.asyncDispose]());

type Body = Readonly<Record<string, unknown>>;

/** A door, a request that uses most of what it offers, and what docs/losses.md says that it ignores. */
interface Door {
  readonly name: string;
  readonly path: string;
  readonly body: Body;
  readonly ignored: readonly string[];
  /** Fields that are ignored inside of objects of the body; the places are functions of it. */
  readonly inside: readonly ((body: Body, value: unknown) => Body)[];
}

const schema = { type: "object", properties: { city: { type: "string" } } };

const doors: readonly Door[] = [
  {
    name: "chat-completions",
    path: "/v1/chat/completions",
    body: {
      messages: [
        { role: "system", content: "Be brief." },
        { role: "user", content: [{ type: "text", text: "Weather?" }] },
        {
          role: "assistant",
          content: null,
          tool_calls: [
            { id: "c1", type: "function", function: { name: "weather", arguments: "{}" } },
          ],
        },
        { role: "tool", tool_call_id: "c1", content: "Rain." },
      ],
      tools: [{ type: "function", function: { name: "weather", parameters: schema } }],
      temperature: 0.5,
      max_completion_tokens: 50,
    },
    ignored: [...ignoredFields("chat-completions"), "x_unknown", "__proto__"],
    inside: [
      (body, value) => ({ ...body, stream_options: { include_usage: true, x_unknown: value } }),
      (body, value) => withInside(body, "messages", { x_unknown: value, cache_control: value }),
      (body, value) => withInside(body, "tools", { x_unknown: value, cache_control: value }),
    ],
  },
  {
    name: "responses",
    path: "/v1/responses",
    body: {
      instructions: "Be brief.",
      input: [
        { role: "user", content: [{ type: "input_text", text: "Weather?" }] },
        { type: "function_call", call_id: "c1", name: "weather", arguments: "{}" },
        { type: "function_call_output", call_id: "c1", output: "Rain." },
      ],
      tools: [{ type: "function", name: "weather", parameters: schema, strict: false }],
      temperature: 0.5,
      max_output_tokens: 50,
    },
    ignored: [...ignoredFields("responses"), "x_unknown", "__proto__"],
    inside: [
      (body, value) => ({ ...body, text: { verbosity: value } }),
      (body, value) => withInside(body, "input", { x_unknown: value, status: value, id: "x" }),
      (body, value) => withInside(body, "tools", { x_unknown: value }),
    ],
  },
  {
    name: "messages",
    path: "/v1/messages",
    body: {
      system: [{ type: "text", text: "Be brief." }],
      messages: [
        { role: "user", content: "Weather?" },
        {
          role: "assistant",
          content: [{ type: "tool_use", id: "c1", name: "weather", input: {} }],
        },
        { role: "user", content: [{ type: "tool_result", tool_use_id: "c1", content: "Rain." }] },
      ],
      tools: [{ name: "weather", input_schema: schema }],
      temperature: 0.5,
      max_tokens: 50,
    },
    ignored: [...ignoredFields("messages"), "x_unknown", "__proto__"],
    inside: [
      (body, value) => withInside(body, "system", { cache_control: value, citations: value }),
      (body, value) => withInside(body, "messages", { cache_control: value, x_unknown: value }),
      (body, value) =>
        withInside(body, "tools", { defer_loading: value, cache_control: value, x_unknown: value }),
      (body, value) => ({
        ...body,
        output_config: { format: { type: "json_schema", schema: value }, effort: value },
      }),
    ],
  },
];

/** More fields in each object of a list. */
function withInside(body: Body, field: string, more: Body): Body {
  const list = body[field] as readonly Body[];
  return { ...body, [field]: list.map((entry) => ({ ...entry, ...more })) };
}

/** As JSON.parse makes it: `__proto__` is a field like any other. */
function withField(body: Body, name: string, value: unknown): Body {
  return Object.fromEntries([...Object.entries(body), [name, value]]);
}

/** What the deployment gets for a body, byte for byte. */
async function upstream(
  { path }: Door,
  body: Body,
  headers: Readonly<Record<string, string>> = {},
): Promise<string> {
  const sent = service.deployment.requests.length;
  const response = await service.post(path, body, { headers });
  const text = await response.text();
  expect(response.status, `${JSON.stringify(body)}: ${text}`).toBe(200);
  expect(service.deployment.requests.length).toBe(sent + 1);
  return service.deployment.requests[sent]?.body ?? "";
}

/** The same, or why the service sent nothing. */
async function outcome(door: Door, body: Body): Promise<string> {
  try {
    return await upstream(door, body);
  } catch (error) {
    return String(error);
  }
}

const awkward = [
  null,
  false,
  -1.5,
  "",
  "required",
  [],
  [{ type: "json_schema" }],
  { type: "json_schema" },
  { type: "enabled", budget_tokens: 5_000_000, format: { type: "json_schema" } },
  { __proto__: null, stream: true, model: "other", messages: [], max_tokens: 1 },
];

describe.each(doors)("what goes to the deployment from $name", (door) => {
  it("is the same, byte for byte, whatever any ignored field is: each has each awkward value once", async () => {
    const plain = await upstream(door, door.body);
    expect(plain).toContain("Weather?");
    for (const turn of awkward.keys()) {
      const fields = door.ignored.map(
        (name, place) => [name, awkward[(place + turn) % awkward.length]] as const,
      );
      const body = fields.reduce((sum, [name, value]) => withField(sum, name, value), door.body);
      const got = await outcome(door, body);
      if (got === plain) continue;
      // Which one it is, each by itself; else it is all of them together.
      for (const [name, value] of fields)
        expect(await outcome(door, withField(door.body, name, value)), name).toBe(plain);
      expect(got).toBe(plain);
    }
  });

  it("is the same for ignored fields inside of messages, items, parts and tools", async () => {
    const plain = await upstream(door, door.body);
    for (const change of door.inside)
      for (const value of awkward)
        expect(await upstream(door, change(door.body, value))).toBe(plain);
  });

  it("is the same for any JSON in any of them together", async () => {
    const plain = await upstream(door, door.body);
    const value = fc.jsonValue({ maxDepth: 3 });
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.constantFrom(...door.ignored), value), { minLength: 1, maxLength: 6 }),
        fc.constantFrom(...door.inside),
        value,
        async (fields, change, within) => {
          // The place inside first: a named field is the whole of it.
          const changed = change(door.body, within);
          const body = fields.reduce((sum, [name, one]) => withField(sum, name, one), changed);
          expect(await upstream(door, body)).toBe(plain);
        },
      ),
      // Any JSON in any field meets the formats 400 times in tests/properties/ignored-fields.test.ts.
      { numRuns: 30 },
    );
  });

  it("is the same whatever the caller's headers are, and carries none of them", async () => {
    const plain = await upstream(door, door.body);
    const headers = {
      "anthropic-beta": "context-1m-2025-08-07,structured-outputs-2025-11-13",
      "anthropic-version": "2023-06-01",
      "openai-organization": "org-1",
      "openai-beta": "responses=v1",
      "idempotency-key": "one",
      "x-stainless-retry-count": "2",
      "user-agent": "agent-of-caller/1.0",
      cookie: "a=b",
      "x-forwarded-for": "192.0.2.1",
    };
    expect(await upstream(door, door.body, headers)).toBe(plain);
    const arrived = JSON.stringify(service.deployment.requests.at(-1)?.headers);
    expect(arrived).not.toMatch(/beta|anthropic|org-1|stainless|agent-of-caller|cookie|192\.0\.2/);
    expect(arrived).not.toContain(service.key);
  });

  it("differs as soon as a field that counts differs", async () => {
    const plain = await upstream(door, door.body);
    expect(await upstream(door, { ...door.body, temperature: 0.6 })).not.toBe(plain);
    expect(await upstream(door, { ...door.body, top_p: 0.6 })).not.toBe(plain);
  });
});
