import { describe, expect, it } from "vitest";
import type { JsonRecord } from "../cases/files.ts";
import {
  compareRecordings,
  type Difference,
  isStructural,
  printDifferences,
} from "./compare-recordings.ts";
import type { Recording } from "./recording.ts";

const read = {
  name: "Read",
  description: "<text up to 64>",
  input_schema: { properties: { path: { type: "string" } }, required: ["path", "limit"] },
};
const edit = { name: "Edit", description: "<text up to 64>", input_schema: {} };
const body: JsonRecord = {
  model: "service-llm",
  max_tokens: 32_000,
  tools: [read, edit],
  messages: [
    { role: "user", content: "<text up to 64>" },
    { role: "assistant", content: "<text up to 16>" },
    { role: "user", content: "<text up to 16>" },
  ],
  metadata: { user: '{"session":"<uuid session>","kind":"a"}' },
};
const headers = { "anthropic-beta": "one,two", "x-app": "cli" };

function recordingOf(bodies: readonly JsonRecord[], headers_ = headers): Recording {
  const calls = bodies.map((one, index) => ({
    what: `turn ${String(index + 1)}`,
    method: "POST",
    path: "/v1/messages",
    headers: headers_,
    body: one,
  }));
  return { client: "A client", version: "1.0.0", calls };
}

const before = recordingOf([body]);

/** What differs from the body above, without the calls. */
function differences(after: JsonRecord): readonly Omit<Difference, "calls">[] {
  return compareRecordings(before, recordingOf([after])).map(
    ({ calls: _calls, ...difference }) => difference,
  );
}

describe("the difference of two recordings", () => {
  it("is none between equal ones", () => {
    expect(differences(structuredClone(body))).toEqual([]);
  });

  it("tells a field that was added, at its depth", () => {
    const schema = { properties: { path: { type: "string", format: "uri" } } };
    const tool = { ...read, input_schema: { ...read.input_schema, ...schema } };
    expect(differences({ ...body, tools: [tool, edit], stream: true })).toEqual([
      {
        path: "body.tools[Read].input_schema.properties.path.format",
        kind: "added",
        before: null,
        after: '"uri"',
      },
      { path: "body.stream", kind: "added", before: null, after: "true" },
    ]);
  });

  it("tells a field that was removed", () => {
    const { max_tokens: _removed, ...rest } = body;
    expect(differences(rest)).toEqual([
      { path: "body.max_tokens", kind: "removed", before: "32000", after: null },
    ]);
  });

  it.each([
    { what: "a text for a number", now: "32000", before: "32000", after: '"32000"' },
    { what: "null for a number", now: null, before: "32000", after: "null" },
    { what: "a list for a number", now: [32_000], before: "32000", after: "[32000]" },
  ])("tells another type: $what", ({ now, before, after }) => {
    expect(differences({ ...body, max_tokens: now })).toEqual([
      { path: "body.max_tokens", kind: "type", before, after },
    ]);
  });

  it("tells another value", () => {
    expect(differences({ ...body, max_tokens: 64_000 })).toEqual([
      { path: "body.max_tokens", kind: "value", before: "32000", after: "64000" },
    ]);
  });

  it("tells a list in another order, and only that", () => {
    const schema = { ...read.input_schema, required: ["limit", "path"] };
    const tools = [edit, { ...read, input_schema: schema }];
    expect(differences({ ...body, tools })).toEqual([
      {
        path: "body.tools[Read].input_schema.required",
        kind: "order",
        before: '"path", "limit"',
        after: '"limit", "path"',
      },
      { path: "body.tools", kind: "order", before: "Read, Edit", after: "Edit, Read" },
    ]);
  });

  it("tells an element that came in between without calling all others different", () => {
    const messages = (body["messages"] as readonly JsonRecord[]).toSpliced(1, 0, {
      role: "system",
      content: "<text up to 64>",
    });
    const tools = [read, { ...edit, name: "Grep" }, edit];
    expect(differences({ ...body, messages, tools }).map(({ kind, path }) => [kind, path])).toEqual(
      [
        ["added", "body.tools[Grep]"],
        ["added", "body.messages[system]"],
      ],
    );
  });

  it("knows an element again after another of the same name came in before it", () => {
    const messages = (body["messages"] as readonly JsonRecord[]).toSpliced(0, 0, {
      role: "user",
      content: "<text up to 4096>",
    });
    expect(differences({ ...body, messages })).toMatchObject([
      { kind: "added", path: "body.messages[user]" },
    ]);
  });

  it("tells an element that has gone", () => {
    expect(differences({ ...body, tools: [edit] })).toMatchObject([
      { kind: "removed", path: "body.tools[Read]", after: null },
    ]);
  });

  it("looks into JSON that is in a text", () => {
    const metadata = { user: '{"session":"<uuid session>","kind":1}' };
    expect(differences({ ...body, metadata })).toEqual([
      { path: "body.metadata.user (JSON).kind", kind: "type", before: '"a"', after: "1" },
    ]);
  });

  it("takes another length of a text for no change of structure", () => {
    const tools = [{ ...read, description: "<text up to 256>" }, edit];
    const found = compareRecordings(before, recordingOf([{ ...body, tools }]));
    expect(found).toMatchObject([{ kind: "length", path: "body.tools[Read].description" }]);
    expect(found.filter(isStructural)).toEqual([]);
  });

  it("tells headers, and a request that is missing or new", () => {
    const after = recordingOf([body], { ...headers, "anthropic-beta": "one,two,three" });
    expect(compareRecordings(before, after)).toMatchObject([
      { kind: "value", path: "headers.anthropic-beta", after: '"one,two,three"' },
    ]);
    expect(compareRecordings(before, recordingOf([]))).toMatchObject([
      { calls: ["turn 1"], kind: "removed", path: "the whole request" },
    ]);
    expect(compareRecordings(before, recordingOf([body, body]))).toMatchObject([
      { calls: ["turn 2"], kind: "added", path: "the whole request" },
    ]);
  });

  it("is told once for all requests that have it, a line each", () => {
    const changed = { ...body, max_tokens: 64_000 };
    const found = compareRecordings(
      recordingOf([body, body]),
      recordingOf([changed, { ...changed, tools: [read] }]),
    );
    expect(printDifferences(found)).toBe(
      [
        "turn 1, turn 2:",
        "  ~ value   body.max_tokens: 32000 -> 64000",
        "turn 2:",
        `  - removed body.tools[Edit]: ${JSON.stringify(edit)}`,
      ].join("\n"),
    );
  });
});
