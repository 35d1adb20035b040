import * as fc from "fast-check";
import { describe, expect, test } from "vitest";

import { Failure } from "../../../src/failure.ts";
import { responsesFormat } from "../../../src/formats/responses/format.ts";
import type { ResponsesEcho } from "../../../src/formats/responses/wire.ts";
import type { ParsedRequest } from "../../../src/formats/wire-format.ts";
import { limits } from "../../../src/limits.ts";
import { bodyOfAnswer, finishWith, plainSeal } from "./answers.ts";

type Request = Readonly<Record<string, unknown>>;

function parse(request: Request): ParsedRequest<ResponsesEcho> {
  return responsesFormat.parseRequest({ input: "Hello", ...request }, plainSeal);
}

function turnsOf(input: unknown): unknown {
  return parse({ input }).conversation.turns;
}

function refusalOf(request: Request): Failure {
  try {
    parse(request);
  } catch (error) {
    if (error instanceof Failure) return error;
    throw error;
  }
  throw new Error("the request was taken");
}

const callItem = { type: "function_call", call_id: "c1", name: "look", arguments: "{}" };
const functionTool = { type: "function", name: "look" };
const numbered = (count: number): readonly Request[] =>
  Array.from({ length: count }, (_, index) => ({ type: "function", name: `f${String(index)}` }));

describe("the input of a Responses request", () => {
  test("takes a string as one user message and one item", () => {
    const { conversation, itemCount } = parse({ input: "" });
    expect(conversation.turns).toEqual([{ role: "user", text: "" }]);
    expect(itemCount).toBe(1);
  });

  test("makes one assistant turn of neighbouring reasoning, messages and calls", () => {
    const turns = turnsOf([
      { role: "user", content: "Hi" },
      {
        type: "reasoning",
        id: "rs_1",
        summary: [],
        content: null,
        encrypted_content: "sealed:Hm.",
      },
      { type: "message", role: "assistant", content: [{ type: "output_text", text: "A" }] },
      { type: "additional_tools", role: "developer", tools: [] },
      { ...callItem, namespace: "git", status: "completed", id: "fc_1" },
      { type: "custom_tool_call", call_id: "c2", name: "run", input: 'say "hi"' },
      { type: "function_call_output", call_id: "c1", output: "done" },
      {
        type: "custom_tool_call_output",
        call_id: "c2",
        output: [
          { type: "input_text", text: "one" },
          { type: "input_image", image_url: "data:" },
          { type: "input_text", text: "two" },
        ],
      },
    ]);
    expect(turns).toEqual([
      { role: "user", text: "Hi" },
      {
        role: "assistant",
        parts: [
          { type: "reasoning", text: "Hm." },
          { type: "text", text: "A" },
          { type: "tool-call", id: "c1", name: "git__look", arguments: "{}" },
          { type: "tool-call", id: "c2", name: "run", arguments: '{"input":"say \\"hi\\""}' },
        ],
      },
      { role: "tool", callId: "c1", text: "done" },
      {
        role: "tool",
        callId: "c2",
        text: "one\n[image left out: this service reads text only]\ntwo",
      },
    ]);
  });

  test.each([
    { encrypted_content: null, content: [{ type: "reasoning_text", text: "Made up" }] },
    { encrypted_content: "forged", summary: [{ type: "summary_text", text: "Made up" }] },
    { encrypted_content: 5 },
    { encrypted_content: { a: 1 }, content: "text" },
    {},
  ])("drops reasoning that does not come back sealed: %j", (fields) => {
    expect(
      turnsOf([
        { role: "user", content: "Hi" },
        { type: "reasoning", ...fields },
      ]),
    ).toEqual([{ role: "user", text: "Hi" }]);
  });

  test("puts instructions before leading system texts and leaves later ones where they are", () => {
    const input = [
      { role: "developer", content: "B" },
      { type: "message", role: "system", content: [{ type: "text", text: "C" }] },
      { role: "user", content: "Hi" },
      { role: "developer", content: "D" },
    ];
    expect(parse({ input, instructions: "A" }).conversation.turns).toEqual([
      { role: "system", text: "A\n\nB\n\nC" },
      { role: "user", text: "Hi" },
      { role: "system", text: "D" },
    ]);
  });

  test("leaves out records of tools that another service ran", () => {
    const input = [
      { role: "user", content: "Hi" },
      { type: "web_search_call", id: "ws_1", status: "completed", action: {} },
    ];
    expect(turnsOf(input)).toEqual([{ role: "user", text: "Hi" }]);
  });

  test.each([
    [[{ type: "item_reference", id: "msg_1" }], "not_offered", "input[0]"],
    [[{ id: "msg_1" }], "not_offered", "input[0]"],
    [[{ type: null, id: "msg_1" }], "not_offered", "input[0]"],
    [[{ type: "compaction_trigger" }], "not_offered", "input[0]"],
    [[{ type: "local_shell_call_output", output: "x" }], "not_offered", "input[0].type"],
    [[{ text: "Hi" }], "invalid_request", "input[0].type"],
    [[{ role: "tool", content: "x" }], "invalid_request", "input[0].role"],
    [
      [callItem, { type: "function_call_output", call_id: "c2", output: "" }],
      "invalid_request",
      "input[1].call_id",
    ],
    [[{ ...callItem, call_id: "" }], "invalid_request", "input[0].call_id"],
    [[{ ...callItem, arguments: { a: 1 } }], "invalid_request", "input[0].arguments"],
    [
      [{ role: "user", content: [{ type: "input_image", image_url: "data:" }] }],
      "not_offered",
      "input[0].content[0]",
    ],
    [
      [callItem, { type: "function_call_output", call_id: "c1" }],
      "invalid_request",
      "input[1].output",
    ],
    [[{ type: "additional_tools" }], "invalid_request", "input[0].tools"],
    [null, "invalid_request", "input"],
    [[], "invalid_request", "input"],
  ] as const)("refuses %j", (input, code, param) => {
    const failure = refusalOf({ input });
    expect([failure.code, failure.facts.param]).toEqual([code, param]);
  });

  test("tells the way out of item references", () => {
    const { message } = refusalOf({ input: [{ type: "item_reference", id: "msg_1" }] });
    expect(message).toContain("`output`");
    expect(message).toContain("providerOptions.openai.store = false");
  });

  test("counts items at the edge and one beyond", () => {
    const items = Array.from({ length: limits.inputItemsMax }, () => ({
      role: "user",
      content: "",
    }));
    expect(parse({ input: items }).itemCount).toBe(2000);
    expect(refusalOf({ input: [...items, items[0]] }).facts.param).toBe("input");
  });

  test("takes back its own answer as items", () => {
    const request = {
      tools: [
        {
          type: "namespace",
          name: "git",
          tools: [functionTool, { type: "custom", name: "patch" }],
        },
      ],
      include: ["reasoning.encrypted_content"],
    };
    const { output } = bodyOfAnswer(
      [
        { type: "reasoning", pieces: ["Hm."] },
        { type: "text", pieces: ["Look:"] },
        { type: "call", name: "git__look", pieces: ['{"a": 1}'] },
        { type: "call", name: "git__patch", pieces: ['{"input":"+ä"}'] },
      ],
      finishWith("tool-calls"),
      request,
    );
    expect(
      turnsOf([...output, { type: "function_call_output", call_id: "call_2", output: "" }]),
    ).toEqual([
      {
        role: "assistant",
        parts: [
          { type: "reasoning", text: "Hm." },
          { type: "text", text: "Look:" },
          { type: "tool-call", id: "call_2", name: "git__look", arguments: '{"a": 1}' },
          { type: "tool-call", id: "call_3", name: "git__patch", arguments: '{"input":"+ä"}' },
        ],
      },
      { role: "tool", callId: "call_2", text: "" },
    ]);
  });
});

describe("the tools of a Responses request", () => {
  test("flattens namespaces, joins additional tools, leaves out hosted ones and counts them all", () => {
    const { conversation, toolCount, echo } = parse({
      tools: [
        { type: "web_search", external_web_access: true },
        {
          type: "namespace",
          name: "git",
          description: "",
          tools: [functionTool, { type: "custom", name: "patch" }],
        },
        { type: "namespace", name: "empty", tools: [] },
      ],
      input: [
        { type: "additional_tools", role: "developer", tools: [functionTool] },
        { role: "user", content: "Hi" },
      ],
    });
    expect(conversation.tools.map((tool) => tool.name)).toEqual([
      "git__look",
      "git__patch",
      "look",
    ]);
    expect(toolCount).toBe(4);
    expect(echo.originalTools).toEqual([
      ["git__look", { name: "look", namespace: "git", custom: false }],
      ["git__patch", { name: "patch", namespace: "git", custom: true }],
    ]);
  });

  test("tells what a namespace is once, with the first of its tools that the model sees", () => {
    const own = "Looks.";
    const look = { ...functionTool, description: own };
    const descriptionsOf = (description: unknown, first: object) => {
      const inside = [{ type: "web_search" }, first, { ...look, name: "other" }];
      const namespace = { type: "namespace", name: "git", description, tools: inside };
      const { tools } = parse({ tools: [look, namespace] }).conversation;
      return tools.map((tool) => tool.description);
    };
    expect(descriptionsOf("Of history.", look)).toEqual([
      own,
      `${own}\n\nAll tools git__*: Of history.`,
      own,
    ]);
    const custom = { type: "custom", name: "patch" };
    expect(descriptionsOf("Of history.", custom)).toEqual([
      own,
      "All tools git__*: Of history.",
      own,
    ]);
    for (const none of ["", null, undefined])
      expect(descriptionsOf(none, look)).toEqual([own, own, own]);
    const empty = { type: "namespace", name: "git", description: "Of history.", tools: [] };
    expect(parse({ tools: [empty, look] }).conversation.tools[0]?.description).toBe(own);
  });

  test("counts after flattening, hosted tools included, at the edge and one beyond", () => {
    const inside = { type: "namespace", name: "n", tools: numbered(100) };
    const among = [
      { type: "additional_tools", tools: numbered(27) },
      { role: "user", content: "" },
    ];
    expect(parse({ tools: [inside, { type: "web_search" }], input: among }).toolCount).toBe(128);
    const failure = refusalOf({
      tools: [inside, { type: "web_search" }, { type: "mcp" }],
      input: among,
    });
    expect([failure.code, failure.facts.param]).toEqual(["invalid_request", "tools"]);
  });

  test("adds up the bytes of all sources", () => {
    const half = { ...functionTool, description: "ä".repeat(limits.toolBytesMax / 4) };
    const among = [{ type: "additional_tools", tools: [{ ...half, name: "other" }] }];
    expect(parse({ tools: [half] }).toolCount).toBe(1);
    expect(refusalOf({ tools: [half], input: among }).facts.param).toBe("tools");
  });

  test("keeps a name apart that objects treat in their own way", () => {
    const tools = ["__proto__", "constructor"].map((name) => ({ type: "custom", name }));
    const body = bodyOfAnswer(
      [
        { type: "call", name: "__proto__", pieces: ['{"input":"x"}'] },
        { type: "call", name: "toString", pieces: ["{}"] },
      ],
      finishWith("tool-calls"),
      { tools },
    );
    expect(body.output).toMatchObject([
      { type: "custom_tool_call", name: "__proto__", input: "x" },
      { type: "function_call", name: "toString" },
    ]);
  });

  test.each([
    [[functionTool, functionTool]],
    [
      [
        { type: "namespace", name: "a", tools: [{ type: "function", name: "b__c" }] },
        { type: "namespace", name: "a__b", tools: [{ type: "custom", name: "c" }] },
      ],
    ],
    [[{ type: "namespace", name: "n n", tools: [] }]],
    [[{ type: "namespace", name: "n", tools: [{ type: "function", name: "" }] }]],
  ])("refuses %j", (tools) => {
    expect(refusalOf({ tools })).toMatchObject({
      code: "invalid_request",
      facts: { param: "tools" },
    });
  });

  test("chooses tools by their flat or their split name", () => {
    const tools = [{ type: "namespace", name: "git", tools: [functionTool] }];
    const chosen = { type: "tool", name: "git__look" };
    for (const choice of [{ name: "git__look" }, { name: "look", namespace: "git" }])
      expect(
        parse({ tools, tool_choice: { type: "function", ...choice } }).conversation.toolChoice,
      ).toEqual(chosen);
    expect(refusalOf({ tools, tool_choice: { type: "function", name: "look" } }).facts.param).toBe(
      "tool_choice",
    );
  });

  test.each([
    { type: "web_search" },
    { type: "mcp", server_label: "x" },
    { type: "allowed_tools" },
  ])("refuses to force %j", (choice) => {
    expect(refusalOf({ tools: [functionTool], tool_choice: choice }).code).toBe("not_offered");
  });

  test("reads a choice as auto when only hosted tools were listed", () => {
    const { conversation } = parse({ tools: [{ type: "web_search" }], tool_choice: "required" });
    expect(conversation).toMatchObject({ tools: [], toolChoice: { type: "auto" } });
  });
});

describe("the settings of a Responses request", () => {
  test.each([
    ["previous_response_id", "resp_1"],
    ["conversation", { id: "conv_1" }],
    ["prompt", { id: "p" }],
    ["background", true],
  ])("refuses %s", (field, value) => {
    const failure = refusalOf({ [field]: value });
    expect([failure.code, failure.facts.param]).toEqual(["not_offered", field]);
    expect(parse({ [field]: null }).itemCount).toBe(1);
  });

  test("ignores what has no effect, whatever its value", () => {
    const plain = parse({});
    const ignored = [
      "user",
      "safety_identifier",
      "client_metadata",
      "prompt_cache_retention",
      "service_tier",
      "truncation",
      "max_tool_calls",
      "top_logprobs",
      "stream_options",
      "store",
      "seed",
      "something_new",
    ];
    fc.assert(
      fc.property(fc.constantFrom(...ignored), fc.jsonValue(), (field, value) => {
        expect(parse({ [field]: value })).toEqual(plain);
      }),
    );
    fc.assert(
      fc.property(
        fc.constantFrom("metadata", "prompt_cache_key"),
        fc.jsonValue(),
        (field, value) => {
          const { echo: _echo, ...rest } = parse({ [field]: value });
          const { echo: _plainEcho, ...plainRest } = plain;
          expect(rest).toEqual(plainRest);
        },
      ),
    );
    fc.assert(
      fc.property(fc.jsonValue(), (verbosity) => {
        expect(parse({ text: { verbosity } })).toEqual(plain);
      }),
    );
  });

  test("is repeated in the answer", () => {
    const request = {
      model: "any-name",
      instructions: "Be brief",
      max_output_tokens: 100_000,
      parallel_tool_calls: false,
      temperature: 0,
      top_p: 0.5,
      text: { format: { type: "json_object" }, verbosity: "low" },
      reasoning: { effort: "low", summary: "auto" },
      tools: [{ type: "web_search" }, functionTool],
      tool_choice: { type: "function", name: "look" },
      metadata: { a: "b" },
      prompt_cache_key: "key",
      store: true,
    };
    expect(parse(request).outputTokensRequested).toBe(100_000);
    expect(bodyOfAnswer([], finishWith("stop"), request)).toEqual({
      id: "resp_1",
      object: "response",
      created_at: 1_700_000_000,
      completed_at: 1_700_000_005,
      status: "completed",
      background: false,
      error: null,
      incomplete_details: null,
      instructions: "Be brief",
      max_output_tokens: 100_000,
      max_tool_calls: null,
      model: "any-name",
      output: [],
      parallel_tool_calls: false,
      previous_response_id: null,
      prompt_cache_key: "key",
      reasoning: { effort: "low", summary: "auto" },
      safety_identifier: null,
      service_tier: "default",
      store: false,
      temperature: 0,
      text: { format: { type: "json_object" } },
      tool_choice: { type: "function", name: "look" },
      tools: [
        { type: "web_search" },
        { ...functionTool, description: null, parameters: null, strict: null },
      ],
      top_logprobs: 0,
      top_p: 0.5,
      truncation: "disabled",
      presence_penalty: 0,
      frequency_penalty: 0,
      access_programs: null,
      usage: {
        input_tokens: 10,
        input_tokens_details: { cached_tokens: 4, cache_write_tokens: 0 },
        output_tokens: 7,
        output_tokens_details: { reasoning_tokens: 2 },
        total_tokens: 17,
      },
      metadata: { a: "b" },
    });
  });

  test("crosses a thread as plain data", () => {
    const parsed = parse({ tools: [{ type: "custom", name: "run" }], metadata: { a: "b" } });
    expect(structuredClone(parsed)).toEqual(parsed);
    expect(JSON.parse(JSON.stringify(parsed))).toEqual(parsed);
  });
});
