import { request as httpRequest } from "node:http";
import { describe, expect, it } from "vitest";
import { isRecord, type JsonRecord } from "../cases/files.ts";
import { delta, textAnswer } from "../doubles/scripted-deployment.ts";
import { framesOf, readFrames } from "../reader/frames.ts";
import type { PostInit, TestService } from "../service/start-service.ts";
import { conversationOf, useService } from "./use-service.ts";

// Requests as the agents send them, recorded at a scripted server and shortened; no SDK would build all of these.

const usage = { promptTokens: 900, completionTokens: 40, cachedTokens: 600 };
const schema = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  type: "object",
  properties: { file_path: { type: "string" } },
  required: ["file_path"],
  additionalProperties: false,
};

/** The data of every frame of a stream, parsed; the names of frames agree with their types. */
async function eventsOf(response: Response): Promise<readonly JsonRecord[]> {
  expect(response.status).toBe(200);
  return framesOf(readFrames(await response.text())).map(({ event, data }) => {
    const parsed: unknown = JSON.parse(data);
    if (!isRecord(parsed)) throw new Error(`no object: ${data}`);
    expect(event).toBe(parsed["type"]);
    return parsed;
  });
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** The body of a request to the deployment. */
async function upstream(service: TestService, index: number): Promise<string> {
  return (await service.deployment.request(index)).body;
}

describe("Claude Code", () => {
  const service = useService();
  const headersOf = (session: string): NonNullable<PostInit["headers"]> => ({
    "anthropic-version": "2023-06-01",
    "anthropic-beta":
      "claude-code-20250219,interleaved-thinking-2025-05-14,context-management-2025-06-27,advanced-tool-use-2025-11-20,effort-2025-11-24",
    "x-claude-code-session-id": session,
    "x-app": "cli",
    "anthropic-dangerous-direct-browser-access": "true",
    "user-agent": "claude-cli/2.1.329 (external, sdk-cli)",
    "x-stainless-retry-count": "0",
    "x-stainless-timeout": "600",
  });

  function turnOf(session: string, messages: readonly unknown[]): JsonRecord {
    return {
      model: "service-llm",
      max_tokens: 32_000,
      stream: true,
      system: [
        {
          type: "text",
          text: `x-anthropic-billing-header: cc_version=2.1.329.${session}; cc_entrypoint=sdk-cli;`,
        },
        { type: "text", text: "You are an agent.", cache_control: { type: "ephemeral" } },
        { type: "text", text: "Work here.", cache_control: { type: "ephemeral", ttl: "1h" } },
      ],
      messages,
      tools: [
        { name: "Read", description: "Reads a file", input_schema: schema },
        { name: "WebFetch", description: "", input_schema: schema, defer_loading: true },
        { type: "web_search_20250305", name: "web_search", max_uses: 8 },
      ],
      thinking: { type: "adaptive", display: "omitted" },
      context_management: { edits: [{ type: "clear_thinking_20251015", keep: "all" }] },
      output_config: { effort: "high" },
      metadata: { user_id: JSON.stringify({ device_id: "d", session_id: session }) },
      safeguards: [{ type: "x" }],
    };
  }

  const firstMessages = [
    {
      role: "user",
      content: [
        { type: "text", text: "<system-reminder>Today</system-reminder>" },
        { type: "text", text: "Read a.txt and b.txt", cache_control: { type: "ephemeral" } },
      ],
    },
    { role: "system", content: [{ type: "text", text: "Tools may change." }] },
  ];

  const ask = (session: string, body: JsonRecord, key = service().key): Promise<Response> =>
    service().post("/v1/messages?beta=true", body, { key, headers: headersOf(session) });

  /** The blocks of a streamed message, as the agent keeps them for its next request. */
  function blocksOf(events: readonly JsonRecord[]): readonly JsonRecord[] {
    const blocks: JsonRecord[] = [];
    let json = "";
    for (const { type, content_block: begun, delta: change } of events) {
      if (type === "content_block_start" && isRecord(begun)) {
        blocks.push({ ...begun });
        json = "";
      }
      const block = blocks.at(-1) ?? {};
      const piece = isRecord(change) ? change : {};
      json += textOf(piece["partial_json"]);
      for (const field of ["text", "thinking", "signature"])
        if (field in piece) block[field] = textOf(block[field]) + textOf(piece[field]);
      if (type === "content_block_stop" && block["type"] === "tool_use")
        block["input"] = JSON.parse(json === "" ? "{}" : json);
    }
    return blocks;
  }

  it("probes, discovers models and runs a loop of two calls in one turn", async () => {
    const probe = await fetch(`${service().url}/api/hello`, { method: "HEAD" });
    expect(probe.status).toBe(200);
    const models = await fetch(`${service().url}/v1/models?limit=1000`, {
      headers: { "anthropic-version": "2023-06-01", authorization: `Bearer ${service().key}` },
    });
    expect(await models.json()).toMatchObject({ has_more: false, data: [{}, {}] });

    const toolCalls = ["a", "b"].map((name) => ({
      id: `call_${name}`,
      name: "Read",
      arguments: JSON.stringify({ file_path: `/${name}.txt` }),
    }));
    const sent = service().deployment.requests.length;
    service().deployment.answerNext(
      ...textAnswer("Reading.", { reasoning: "Two files.", toolCalls, usage, pieceCharacters: 5 }),
    );
    const events = await eventsOf(await ask("s1", turnOf("s1", firstMessages)));
    expect(events.at(-1)).toEqual({ type: "message_stop" });
    expect(events.at(-2)).toMatchObject({
      type: "message_delta",
      delta: { stop_reason: "tool_use" },
      usage: { input_tokens: 300, cache_read_input_tokens: 600, output_tokens: 40 },
    });
    const blocks = blocksOf(events);
    expect(blocks.map(({ type }) => type)).toEqual(["thinking", "text", "tool_use", "tool_use"]);

    const answered = [
      ...firstMessages,
      { role: "assistant", content: blocks },
      {
        role: "user",
        content: [
          {
            type: "tool_result",
            tool_use_id: "call_a",
            content: [
              { type: "text", text: "1\tHello" },
              { type: "image", source: { type: "base64", media_type: "image/png", data: "AAAA" } },
            ],
          },
          {
            type: "tool_result",
            tool_use_id: "call_b",
            content: [{ type: "tool_reference", tool_name: "WebFetch" }],
            is_error: false,
            cache_control: { type: "ephemeral" },
          },
        ],
      },
      { role: "system", content: "A file changed." },
    ];
    await eventsOf(await ask("s1", turnOf("s1", answered)));
    expect(conversationOf(await service().deployment.request(sent + 1))).toEqual([
      { role: "system", content: "You are an agent.\n\nWork here." },
      {
        role: "user",
        content: "<system-reminder>Today</system-reminder>Read a.txt and b.txt",
      },
      { role: "system", content: "Tools may change." },
      {
        role: "assistant",
        content: "Reading.",
        reasoning_content: "Two files.",
        tool_calls: toolCalls.map(({ id, name, arguments: json }) => ({
          id,
          type: "function",
          function: { name, arguments: json },
        })),
      },
      {
        role: "tool",
        tool_call_id: "call_a",
        content: "1\tHello\n[image left out: this service reads text only]",
      },
      { role: "tool", tool_call_id: "call_b", content: "Tool available: WebFetch" },
      { role: "system", content: "A file changed." },
    ]);
    const tools = JSON.parse(await upstream(service(), sent + 1)) as { tools: JsonRecord[] };
    expect(tools.tools).toEqual([
      {
        type: "function",
        function: { name: "Read", description: "Reads a file", parameters: schema },
      },
      { type: "function", function: expect.objectContaining({ name: "WebFetch" }) },
    ]);
  });

  it("sends the deployment the same bytes in every session", async () => {
    const sent = service().deployment.requests.length;
    for (const session of ["s1", "another"]) {
      await eventsOf(await ask(session, turnOf(session, firstMessages)));
    }
    const [one, other] = [await upstream(service(), sent), await upstream(service(), sent + 1)];
    expect(one).toBe(other);
    for (const word of ["billing", "cc_version", "cache_control", "defer_loading", "web_search"])
      expect(one).not.toContain(word);
    const { headers } = await service().deployment.request(sent);
    const known = Object.keys(headersOf("s1")).filter((name) => name !== "user-agent");
    for (const name of [...known, "x-api-key"]) expect(headers).not.toHaveProperty(name);
    expect(headers["user-agent"] ?? "").not.toContain("claude");
    expect(headers.authorization).toBeUndefined();
  });

  it("falls back to a whole answer with the same body", async () => {
    const sent = service().deployment.requests.length;
    const streamed = turnOf("s1", firstMessages);
    await eventsOf(await ask("s1", streamed));
    const whole = await ask("s1", { ...streamed, stream: false });
    expect(await whole.json()).toMatchObject({
      type: "message",
      role: "assistant",
      content: [{ type: "text", text: "Hello from the deployment." }],
      stop_reason: "end_turn",
      usage: { input_tokens: 12, output_tokens: 7, cache_creation_input_tokens: 0 },
    });
    expect(await upstream(service(), sent)).toBe(await upstream(service(), sent + 1));
  });

  it("has its title made beside the first turn, and three subagents", async () => {
    const title = {
      ...turnOf("s1", [{ role: "user", content: [{ type: "text", text: "Name this" }] }]),
      tools: [],
      output_config: { format: { type: "json_schema", schema: { type: "object" } } },
    };
    const turn = turnOf("s1", firstMessages);
    const responses = await Promise.all([title, turn, turn, turn].map((body) => ask("s1", body)));
    for (const response of responses)
      expect((await eventsOf(response)).at(-1)).toEqual({ type: "message_stop" });
  });

  it("searches the web by a nested request and takes a text for it", async () => {
    const search = {
      ...turnOf("s1", [{ role: "user", content: "Search for tributaries" }]),
      tools: [{ type: "web_search_20250305", name: "web_search", max_uses: 8 }],
      tool_choice: { type: "auto" },
    };
    const events = await eventsOf(await ask("s1", search));
    expect(blocksOf(events)).toEqual([{ type: "text", text: "Hello from the deployment." }]);
  });

  it("gets a stop at the limit as one, and a plain 402 when the credit ends", async () => {
    const { key } = await service().newKey("0.2");
    service().deployment.answerNext(...textAnswer("And so", { finish: "length" }));
    const events = await eventsOf(await ask("s1", turnOf("s1", firstMessages), key));
    expect(events.at(-2)).toMatchObject({ delta: { stop_reason: "max_tokens" } });
    const more = { ...turnOf("s1", firstMessages), max_tokens: 128_000 };
    const refused = await ask("s1", more, key);
    expect(refused.status).toBe(402);
    expect(refused.headers.get("x-should-retry")).toBe("false");
    expect(await refused.json()).toMatchObject({
      type: "error",
      error: { type: "billing_error", waiting_helps: false },
    });
  });

  it("counts 24 bodies at once for its overview", async () => {
    const counts = await Promise.all(
      Array.from({ length: 24 }, (_, index) =>
        service().post(
          "/v1/messages/count_tokens?beta=true",
          {
            model: "service-llm",
            messages: [{ role: "user", content: "foo" }],
            tools: index % 2 === 0 ? [] : [{ name: "Read", description: "", input_schema: schema }],
          },
          { key: service().key, headers: headersOf("s1") },
        ),
      ),
    );
    for (const response of counts) {
      expect(response.status).toBe(200);
      expect(await response.json()).toEqual({ input_tokens: expect.any(Number) });
    }
  });
});

describe("Codex", () => {
  const service = useService();
  const headers = {
    accept: "text/event-stream",
    "session-id": "01",
    "thread-id": "01",
    "x-client-request-id": "01",
    "x-codex-turn-metadata": "{}",
    originator: "codex_exec",
    "x-openai-internal-codex-responses-lite": "true",
  };
  const shell = {
    type: "namespace",
    name: "shell",
    description: "The shell",
    tools: [
      { type: "function", name: "exec", description: "Runs", parameters: schema, strict: false },
    ],
  };
  const patch = {
    type: "custom",
    name: "apply_patch",
    description: "Edits files",
    format: { type: "grammar", syntax: "lark", definition: "start: x" },
  };
  const hosted = [
    { type: "web_search", external_web_access: true, search_content_types: ["text"] },
    { type: "tool_search", execution: "client", parameters: { type: "object" } },
  ];
  const patchText = '*** Begin Patch\n*** Add File: "ä".txt\n+\\hi\n*** End Patch';

  function turnOf(thread: string, input: readonly unknown[]): JsonRecord {
    return {
      model: "service-llm",
      stream: true,
      store: false,
      input,
      tools: [shell, patch, ...hosted],
      tool_choice: "auto",
      parallel_tool_calls: true,
      reasoning: { effort: "medium", summary: "auto" },
      include: ["reasoning.encrypted_content"],
      prompt_cache_key: thread,
      client_metadata: { thread },
      text: { verbosity: "low" },
    };
  }

  const firstInput = [
    {
      type: "message",
      id: "msg_a",
      role: "developer",
      content: [{ type: "input_text", text: "You are an agent." }],
    },
    {
      type: "message",
      role: "user",
      content: [{ type: "input_text", text: "Patch it" }],
      internal_chat_message_metadata_passthrough: { turn_id: "t" },
    },
  ];

  const ask = (body: JsonRecord): Promise<Response> =>
    service().post("/v1/responses", body, { key: service().key, headers });

  /** What the agent acts on. */
  function doneItems(events: readonly JsonRecord[]): readonly JsonRecord[] {
    return events.flatMap(({ type, item }) =>
      type === "response.output_item.done" && isRecord(item) ? [item] : [],
    );
  }

  const toolCalls = [
    { id: "call_1", name: "shell__exec", arguments: '{"file_path": "/a"}' },
    { id: "call_2", name: "apply_patch", arguments: JSON.stringify({ input: patchText }) },
  ];

  it("is told at once that there are no WebSockets", async () => {
    const answer = await new Promise<{ status: number; body: string }>((resolve, reject) => {
      const request = httpRequest(`${service().url}/v1/responses`, {
        headers: {
          connection: "Upgrade",
          upgrade: "websocket",
          "sec-websocket-version": "13",
          "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
          "openai-beta": "responses_websockets=2026-02-06",
          authorization: `Bearer ${service().key}`,
        },
      });
      request.on("error", reject);
      request.on("upgrade", () => reject(new Error("upgraded")));
      request.on("response", (response) => {
        let body = "";
        response.setEncoding("utf8");
        response.on("data", (piece: string) => (body += piece));
        response.on("end", () => resolve({ status: response.statusCode ?? 0, body }));
      });
      request.end();
    });
    expect(answer.status).toBe(426);
    expect(answer.body).toContain("upgrade_required");
  });

  it.each([
    ["as tools", (input: readonly unknown[]) => turnOf("t", input)],
    [
      "as an item",
      (input: readonly unknown[]) => {
        const { tools, ...body } = turnOf("t", input);
        return {
          ...body,
          input: [{ type: "additional_tools", role: "developer", tools }, ...input],
        };
      },
    ],
  ])(
    "gets namespaced and custom calls back in their own shape, declared %s",
    async (_name, bodyOf) => {
      const sent = service().deployment.requests.length;
      const reasoning = "A command and a patch.";
      service().deployment.answerNext(
        ...textAnswer("", { reasoning, toolCalls, usage, pieceCharacters: 7 }),
      );
      const events = await eventsOf(await ask(bodyOf(firstInput)));
      const items = doneItems(events);
      expect(items).toEqual([
        expect.objectContaining({
          type: "reasoning",
          summary: [{ type: "summary_text", text: reasoning }],
          encrypted_content: expect.stringMatching(/./),
        }),
        expect.objectContaining({
          type: "function_call",
          call_id: "call_1",
          name: "exec",
          namespace: "shell",
          arguments: '{"file_path": "/a"}',
          status: "completed",
        }),
        expect.objectContaining({
          type: "custom_tool_call",
          call_id: "call_2",
          name: "apply_patch",
          input: patchText,
        }),
      ]);
      const last = events.at(-1);
      expect(last).toMatchObject({
        type: "response.completed",
        response: { output: items, usage: { input_tokens: 900, output_tokens: 40 } },
      });

      const results = [
        {
          type: "function_call_output",
          id: "fco_1",
          call_id: "call_1",
          output: [
            { type: "input_text", text: "a.txt" },
            { type: "input_image", image_url: "data:image/png;base64,AAAA", detail: "high" },
          ],
        },
        {
          type: "custom_tool_call_output",
          call_id: "call_2",
          output: [{ type: "input_text", text: "done" }],
        },
      ];
      // The agent keeps reasoning with `content: null`.
      const kept = items.map((item) =>
        item["type"] === "reasoning" ? { ...item, content: null } : item,
      );
      await eventsOf(await ask(bodyOf([...firstInput, ...kept, ...results])));
      const second = await service().deployment.request(sent + 1);
      const conversation = conversationOf(second);
      expect(conversation).toEqual([
        { role: "system", content: "You are an agent." },
        { role: "user", content: "Patch it" },
        expect.objectContaining({
          role: "assistant",
          reasoning_content: reasoning,
          tool_calls: [
            {
              id: "call_1",
              type: "function",
              function: { name: "shell__exec", arguments: '{"file_path": "/a"}' },
            },
            {
              id: "call_2",
              type: "function",
              function: { name: "apply_patch", arguments: expect.any(String) },
            },
          ],
        }),
        {
          role: "tool",
          tool_call_id: "call_1",
          content: "a.txt\n[image left out: this service reads text only]",
        },
        { role: "tool", tool_call_id: "call_2", content: "done" },
      ]);
      const [, , assistant] = conversation as { tool_calls: { function: JsonRecord }[] }[];
      const custom = assistant?.tool_calls[1]?.function["arguments"];
      expect(JSON.parse(String(custom))).toEqual({ input: patchText });
      const { tools } = JSON.parse(second.body) as { tools: { function: JsonRecord }[] };
      expect(tools.map((tool) => tool.function["name"])).toEqual(["shell__exec", "apply_patch"]);
      expect(tools[1]?.function["description"]).toContain("start: x");
    },
  );

  it("sends the deployment the same bytes in every thread", async () => {
    const sent = service().deployment.requests.length;
    for (const thread of ["one", "another"]) await eventsOf(await ask(turnOf(thread, firstInput)));
    expect(await upstream(service(), sent)).toBe(await upstream(service(), sent + 1));
  });

  it("keeps going with reasoning that has nothing in it, and compacts without tools", async () => {
    const sent = service().deployment.requests.length;
    const input = [
      ...firstInput,
      { type: "reasoning", id: "rs_1", summary: [], content: null, encrypted_content: null },
      {
        type: "message",
        id: "msg_c",
        role: "assistant",
        phase: "commentary",
        content: [{ type: "output_text", text: "Patching." }],
      },
      { type: "message", role: "user", content: [{ type: "input_text", text: "Summarise" }] },
    ];
    const events = await eventsOf(await ask({ ...turnOf("t", input), tools: [] }));
    expect(events.at(-1)).toMatchObject({ type: "response.completed" });
    const conversation = conversationOf(await service().deployment.request(sent));
    expect(conversation.at(-2)).toEqual({ role: "assistant", content: "Patching." });
    expect(await upstream(service(), sent)).not.toContain('"tools"');
  });

  it("hears of a failure in mid-stream by response.failed, which it reads", async () => {
    service().deployment.answerNext(delta({ content: "half" }));
    const events = await eventsOf(await ask(turnOf("t", firstInput)));
    expect(events.slice(-2)).toMatchObject([
      { type: "error", code: "deployment_failed" },
      { type: "response.failed", response: { status: "failed", error: { code: "server_error" } } },
    ]);
    expect(events.map(({ sequence_number: number }) => number)).toEqual(events.map((_, i) => i));
  });

  it("hears of an answer cut by the limit by response.incomplete", async () => {
    service().deployment.answerNext(...textAnswer("And so", { finish: "length" }));
    const events = await eventsOf(await ask(turnOf("t", firstInput)));
    expect(events.at(-1)).toMatchObject({
      type: "response.incomplete",
      response: { status: "incomplete", incomplete_details: { reason: "max_output_tokens" } },
    });
  });
});

describe("opencode", () => {
  const service = useService();
  const headers = { "x-session-id": "ses_1", "user-agent": "opencode/1.18.33 ai-sdk/provider" };

  async function ask(body: JsonRecord): Promise<readonly string[]> {
    const response = await service().post("/v1/chat/completions", body, {
      key: service().key,
      headers,
    });
    expect(response.status).toBe(200);
    const frames = framesOf(readFrames(await response.text()));
    // An event with a name ends this agent's session.
    for (const { event } of frames) expect(event).toBeNull();
    return frames.map(({ data }) => data);
  }

  it("asks for a title with two messages of the user in a row", async () => {
    const sent = service().deployment.requests.length;
    const frames = await ask({
      model: "service-llm",
      stream: true,
      max_tokens: 32_000,
      messages: [
        { role: "system", content: "You make titles." },
        { role: "user", content: "Make a title:" },
        { role: "user", content: "Read a.txt" },
      ],
    });
    expect(frames.at(-1)).toBe("[DONE]");
    expect(conversationOf(await service().deployment.request(sent))).toHaveLength(3);
  });

  it("sends an assistant's thought and calls back with an empty content", async () => {
    const sent = service().deployment.requests.length;
    const call = { id: "call_1", type: "function", function: { name: "read", arguments: "{}" } };
    const frames = await ask({
      model: "service-llm",
      stream: true,
      stream_options: { include_usage: true },
      max_tokens: 32_000,
      tool_choice: "auto",
      tools: [{ type: "function", function: { name: "read", parameters: schema } }],
      messages: [
        { role: "user", content: "Read a.txt" },
        { role: "assistant", content: "", reasoning_content: "I read it.", tool_calls: [call] },
        { role: "tool", tool_call_id: "call_1", content: "Hello" },
      ],
    });
    expect(frames.at(-1)).toBe("[DONE]");
    expect(JSON.parse(frames.at(-2) ?? "")).toMatchObject({
      choices: [],
      usage: { prompt_tokens: 12, completion_tokens: 7, total_tokens: 19 },
    });
    const [, assistant, result] = conversationOf(await service().deployment.request(sent));
    expect(assistant).toMatchObject({ reasoning_content: "I read it.", tool_calls: [call] });
    expect(result).toEqual({ role: "tool", tool_call_id: "call_1", content: "Hello" });
  });

  it("is told of a failure in mid-stream, not left with a bare end", async () => {
    service().deployment.answerNext(delta({ content: "half" }));
    const frames = await ask({
      model: "service-llm",
      stream: true,
      messages: [{ role: "user", content: "Hello" }],
    });
    expect(JSON.parse(frames.at(-1) ?? "")).toMatchObject({
      error: { type: "server_error", code: "deployment_failed", param: null },
    });
  });
});
