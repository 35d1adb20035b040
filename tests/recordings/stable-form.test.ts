import { randomBytes, randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import { printRecording, type RecordedCall } from "./recording.ts";
import { buildReplay } from "./replay.ts";
import { openStableForm } from "./stable-form.ts";

/** What an agent of no vendor's sends in two requests of one run, with everything that another run has otherwise. */
function record(run: { readonly turned: boolean }): readonly RecordedCall[] {
  const random = (): string => randomBytes(9).toString("hex");
  const [session, turn, work, port] = [
    randomUUID(),
    randomUUID(),
    `/tmp/run-${random()}`,
    random(),
  ];
  const [key, call, hash] = [`trib_1_${random()}`, `call_${random()}`, random() + random()];
  const url = `http://127.0.0.1:${port}`;
  const form = openStableForm([
    [work, "<work>"],
    [url, "<url>"],
    [key, "<key>"],
    ["1.2.3", "<version>"],
  ]);
  const ids = { session_id: session, turn_id: turn };
  const body = {
    model: "service-llm",
    max_tokens: 32_000,
    system: [
      { type: "text", text: `x-anthropic-billing-header: ${random()}` },
      { type: "text", text: `You work in ${work}. `.repeat(40), cache_control: { type: "x" } },
    ],
    client_metadata: run.turned ? { turn_id: turn, session_id: session } : ids,
    metadata: { user_id: JSON.stringify({ device: hash + hash, started: Date.now() }) },
    tools: [
      {
        name: "Read",
        description: "Reads a file of this machine",
        input_schema: { type: "object", properties: { description: { enum: ["a", "b"] } } },
      },
    ],
    messages: [
      { role: "user", content: `What is in ${work}?` },
      {
        role: "assistant",
        content: "",
        tool_calls: [
          { id: call, function: { name: "Read", arguments: `{"path":"${work}/note.txt"}` } },
        ],
      },
      { role: "tool", tool_call_id: call, content: `{"took":"${random()}"}` },
    ],
  };
  const headers = {
    host: url,
    "content-length": "1",
    authorization: `Bearer ${key}`,
    "x-api-key": key,
    "user-agent": `agent/1.2.3 (Linux ${random()}; x86) node/26`,
    "x-session-id": session,
    "x-turn": `${turn}:0`,
    "x-stainless-os": random(),
    "anthropic-version": "2023-06-01",
    "anthropic-beta": "claude-code-20250219,thinking-2025-05-14",
  };
  const request = { method: "POST", path: "/v1/messages", headers, body: JSON.stringify(body) };
  return [form.call("turn 1", request), form.call("turn 2", request)];
}

describe("the stable form", () => {
  it("is the same, byte for byte, for two runs", () => {
    const [one, two] = [false, true].map((turned) =>
      printRecording({ client: "a", version: "1.2.3", calls: record({ turned }) }),
    );
    expect(one).toBe(two);
  });

  it("keeps structure, names, types and what is read by name, and of words their length alone", () => {
    expect(record({ turned: false })[0]).toEqual({
      what: "turn 1",
      method: "POST",
      path: "/v1/messages",
      headers: {
        "anthropic-beta": "claude-code-20250219,thinking-2025-05-14",
        "anthropic-version": "2023-06-01",
        authorization: "Bearer <key>",
        "user-agent": "agent/<version> (...) node/<number>",
        "x-api-key": "<key>",
        "x-session-id": "<uuid x-session-id>",
        "x-stainless-os": "<machine>",
        "x-turn": "<uuid x-turn>:0",
      },
      body: {
        model: "service-llm",
        max_tokens: 32_000,
        system: [
          { type: "text", text: "x-anthropic-billing-header: <text up to 64>" },
          { type: "text", text: "<text up to 4096>", cache_control: { type: "x" } },
        ],
        client_metadata: {
          session_id: "<uuid x-session-id>",
          turn_id: "<uuid x-turn>",
        },
        metadata: { user_id: '{"device":"<token>","started":1500000000000}' },
        tools: [
          {
            name: "Read",
            description: "<text up to 64>",
            input_schema: { type: "object", properties: { description: { enum: ["a", "b"] } } },
          },
        ],
        messages: [
          { role: "user", content: "<text up to 64>" },
          {
            role: "assistant",
            content: "",
            tool_calls: [
              {
                id: "<call 1>",
                function: { name: "Read", arguments: '{"path":"<work>/note.txt"}' },
              },
            ],
          },
          { role: "tool", tool_call_id: "<call 1>", content: "<text up to 64>" },
        ],
      },
    } satisfies RecordedCall);
  });

  it("keeps no key, not even one that nobody told it of", () => {
    const headers = { authorization: "Bearer k1", "x-api-key": "k2" };
    const request = { method: "GET", path: "/", headers, body: "" };
    expect(openStableForm([]).call("one", request).headers).toEqual({
      authorization: "Bearer <key>",
      "x-api-key": "<key>",
    });
  });

  it("tells two ids apart and knows one again", () => {
    const form = openStableForm([]);
    const ids = ["call_12345678", "call_abcdefg1", "call_12345678"].map((id) => ({ id }));
    const request = { method: "POST", path: "/", headers: {}, body: JSON.stringify({ ids }) };
    expect(form.call("one", request).body).toEqual({
      ids: [{ id: "<call 1>" }, { id: "<call 2>" }, { id: "<call 1>" }],
    });
  });
});

describe("a recorded body that is sent again", () => {
  it("has a text of its own in every place, of the length of its class", () => {
    const { body, texts } = buildReplay({
      system: "<text up to 4096>",
      messages: [{ content: "x-name: <text up to 16>" }, { content: "" }],
      arguments: '{"command":"<text up to 16>"}',
    });
    expect([...texts.keys()]).toEqual(["system", "messages[0].content", "arguments"]);
    expect(new Set(texts.values()).size).toBe(3);
    expect(texts.get("system")?.length).toBeGreaterThan(1_024);
    expect(texts.get("system")?.length).toBeLessThanOrEqual(4_096);
    expect(JSON.parse(String(body["arguments"]))).toEqual({ command: texts.get("arguments") });
    expect(body["messages"]).toEqual([
      { content: `x-name: ${String(texts.get("messages[0].content"))}` },
      { content: "" },
    ]);
  });
});
