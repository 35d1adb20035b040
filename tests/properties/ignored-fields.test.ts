import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Failure } from "../../src/failure.ts";
import { wireFormats } from "../../src/formats/formats.ts";
import type { WireFormatName } from "../../src/formats/wire-format.ts";
import { ignoredFields } from "../documents/losses/formats.ts";
import { testReasoning } from "../cases/context.ts";
import { caseFiles, isRecord, readJson, type JsonRecord } from "../cases/files.ts";

const formats: readonly WireFormatName[] = ["chat-completions", "responses", "messages"];

/** Top-level fields that docs/losses.md calls ignored, and some that no format has. */
function ignored(format: WireFormatName): readonly string[] {
  return [...ignoredFields(format), "x_unknown", "__proto__", "constructor"];
}

/** Fields of items, parts and tools that change nothing, whatever they hold. */
const ignoredInside: Readonly<Record<WireFormatName, readonly string[]>> = {
  "chat-completions": ["x_unknown", "cache_control", "prompt_cache_breakpoint"],
  responses: ["x_unknown", "status", "internal_chat_message_metadata_passthrough", "phase"],
  messages: ["x_unknown", "cache_control", "citations", "caller"],
};

const anything = fc.jsonValue({ maxDepth: 3 });
const requests = caseFiles("requests").filter((file) => file.kind === "request");

function requestsIn(format: WireFormatName): fc.Arbitrary<JsonRecord> {
  return fc
    .constantFrom(...requests.filter((file) => file.format === format))
    .map((file) => readJson(file));
}

function parsed(format: WireFormatName, body: JsonRecord): unknown {
  const { echo: _echo, ...rest } = wireFormats[format].parseRequest(body, testReasoning);
  return rest;
}

/** As JSON.parse makes it: `__proto__` is a field like any other. */
function withField(body: JsonRecord, name: string, value: unknown): JsonRecord {
  return Object.fromEntries([...Object.entries(body), [name, value]]);
}

/** The same JSON with a field more in every object of messages, items, parts and tools, but not in schemas. */
function withFieldInside(value: unknown, name: string, added: unknown): unknown {
  if (Array.isArray(value)) return value.map((entry) => withFieldInside(entry, name, added));
  if (!isRecord(value)) return value;
  const closed = ["parameters", "input_schema", "input", "output", "source", "arguments"];
  const entries = Object.entries(value).map(([key, entry]): [string, unknown] => [
    key,
    closed.includes(key) ? entry : withFieldInside(entry, name, added),
  ]);
  return Object.fromEntries([...entries, [name, added]]);
}

// For example: `{"messages": [...], "user": X}` is the same request for X = "ada", 7, null or [{}], and so is one in which `x_unknown`
// stands in a message.
describe.each(formats)("in %s", (format) => {
  it("any value of an ignored field leaves the request as it was", () => {
    fc.assert(
      fc.property(
        requestsIn(format),
        fc.array(fc.tuple(fc.constantFrom(...ignored(format)), anything), { minLength: 1 }),
        (body, fields) => {
          const more = fields.reduce((sum, [name, value]) => withField(sum, name, value), body);
          expect(parsed(format, more)).toEqual(parsed(format, body));
        },
      ),
      { numRuns: 400 },
    );
  });

  it("any value of an ignored field of an item, part or tool does so too", () => {
    fc.assert(
      fc.property(
        requestsIn(format),
        fc.constantFrom(...ignoredInside[format]),
        anything,
        (body, name, value) => {
          const changed = Object.fromEntries(
            Object.entries(body).map(([key, entry]) => [
              key,
              ["messages", "input", "tools", "system"].includes(key)
                ? withFieldInside(entry, name, value)
                : entry,
            ]),
          );
          expect(parsed(format, changed)).toEqual(parsed(format, body));
        },
      ),
      { numRuns: 400 },
    );
  });

  it.each([
    ["response_format", (format: JsonRecord) => format],
    ["output_format", (format: JsonRecord) => format],
    ["text", (format: JsonRecord) => ({ format })],
  ])("json_schema in %s is refused in every valid request", (field, wrap) => {
    fc.assert(
      fc.property(requestsIn(format), fc.dictionary(fc.string(), anything), (body, more) => {
        const schema = wrap({ ...more, type: "json_schema" });
        const attempt = (): unknown => parsed(format, { ...body, [field]: schema });
        expect(attempt).toThrow(Failure);
        expect(attempt).toThrow(expect.objectContaining({ code: "not_offered" }));
      }),
      { numRuns: 50 },
    );
  });
});

describe("text.verbosity", () => {
  it("is ignored, whatever its value", () => {
    fc.assert(
      fc.property(requestsIn("responses"), anything, (body, verbosity) => {
        const text = { ...(isRecord(body["text"]) ? body["text"] : {}), verbosity };
        expect(parsed("responses", { ...body, text })).toEqual(parsed("responses", body));
      }),
    );
  });
});

describe("output_config.format", () => {
  it("is ignored, also when it asks for a json_schema", () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...formats),
        fc.dictionary(fc.string(), anything),
        (format, more) => {
          const file = requests.find((one) => one.caseId === "text" && one.format === format);
          if (file === undefined) throw new Error("no case");
          const body = readJson(file);
          const configured = {
            ...body,
            output_config: { format: { ...more, type: "json_schema" } },
          };
          expect(parsed(format, configured)).toEqual(parsed(format, body));
        },
      ),
    );
  });
});
