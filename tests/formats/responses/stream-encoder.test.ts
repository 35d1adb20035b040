import { describe, expect, test } from "vitest";

import { Failure } from "../../../src/failure.ts";
import { limits } from "../../../src/limits.ts";
import { responsesFormat } from "../../../src/formats/responses/format.ts";
import {
  bodyOfAnswer,
  eventsOf,
  finishWith,
  openContext,
  readFrames,
  type SpokenPart,
  streamAnswer,
  typesOf,
} from "./answers.ts";

const text: SpokenPart = { type: "text", pieces: ["Hel", "lo"] };
const reasoning: SpokenPart = { type: "reasoning", pieces: ["Hm", "."] };
const call: SpokenPart = { type: "call", name: "look", pieces: ['{"a":', "1}"] };
const customTool = { type: "custom", name: "run" };

describe("a Responses stream", () => {
  test("tells a text", () => {
    const stream = streamAnswer([text], finishWith("stop"));
    expect(typesOf(stream)).toEqual([
      "response.created",
      "response.in_progress",
      "response.output_item.added",
      "response.content_part.added",
      "response.output_text.delta",
      "response.output_text.delta",
      "response.output_text.done",
      "response.content_part.done",
      "response.output_item.done",
      "response.completed",
    ]);
    const frames = readFrames(stream);
    expect(frames[4]).toEqual({
      type: "response.output_text.delta",
      item_id: "msg_1",
      output_index: 0,
      content_index: 0,
      delta: "Hel",
      logprobs: [],
      sequence_number: 4,
    });
    expect(frames[9]?.["response"]).toEqual(bodyOfAnswer([text], finishWith("stop")));
  });

  test("tells reasoning as text of a part", () => {
    const stream = streamAnswer([reasoning], finishWith("stop"));
    expect(typesOf(stream).slice(2, -1)).toEqual([
      "response.output_item.added",
      "response.content_part.added",
      "response.reasoning_text.delta",
      "response.reasoning_text.delta",
      "response.reasoning_text.done",
      "response.content_part.done",
      "response.output_item.done",
    ]);
    expect(readFrames(stream).at(-2)?.["item"]).toEqual({
      type: "reasoning",
      id: "rs_1",
      status: "completed",
      summary: [],
      content: [{ type: "reasoning_text", text: "Hm." }],
    });
  });

  test("tells reasoning as a summary when one is asked for", () => {
    const request = { reasoning: { summary: "auto" } };
    const stream = streamAnswer([reasoning], finishWith("stop"), { request });
    expect(typesOf(stream).slice(2, -1)).toEqual([
      "response.output_item.added",
      "response.reasoning_summary_part.added",
      "response.reasoning_summary_text.delta",
      "response.reasoning_summary_text.delta",
      "response.reasoning_summary_text.done",
      "response.reasoning_summary_part.done",
      "response.output_item.done",
    ]);
    expect(readFrames(stream)[4]).toMatchObject({ summary_index: 0, delta: "Hm" });
    expect(readFrames(stream).at(-2)?.["item"]).toEqual({
      type: "reasoning",
      id: "rs_1",
      status: "completed",
      summary: [{ type: "summary_text", text: "Hm." }],
    });
  });

  test("seals reasoning in the item that is done and in the last object, once, and only when asked", () => {
    const request = { include: ["reasoning.encrypted_content"] };
    const context = openContext(request);
    let seals = 0;
    const encoder = responsesFormat.openEncoder({
      ...context,
      reasoning: {
        ...context.reasoning,
        seal: (whole) => {
          seals += 1;
          return `sealed ${String(seals)}: ${whole}`;
        },
      },
    });
    const stream =
      encoder.open() + encoder.encode(eventsOf([reasoning])) + encoder.finish(finishWith("stop"));
    const frames = readFrames(stream);
    expect(frames[2]?.["item"]).not.toHaveProperty("encrypted_content");
    expect(frames.at(-2)?.["item"]).toMatchObject({ encrypted_content: "sealed 1: Hm." });
    expect(frames.at(-1)?.["response"]).toMatchObject({ output: [frames.at(-2)?.["item"]] });
    expect(seals).toBe(1);
    expect(streamAnswer([reasoning], finishWith("stop"))).not.toContain("encrypted_content");
  });

  test("tells calls of functions", () => {
    const stream = streamAnswer([call], finishWith("tool-calls"));
    expect(typesOf(stream).slice(2)).toEqual([
      "response.output_item.added",
      "response.function_call_arguments.delta",
      "response.function_call_arguments.delta",
      "response.function_call_arguments.done",
      "response.output_item.done",
      "response.completed",
    ]);
    expect(readFrames(stream)[2]).toEqual({
      type: "response.output_item.added",
      output_index: 0,
      item: {
        type: "function_call",
        id: "fc_1",
        status: "in_progress",
        call_id: "call_0",
        name: "look",
        arguments: "",
      },
      sequence_number: 2,
    });
    expect(readFrames(stream).at(-2)?.["item"]).toMatchObject({ arguments: '{"a":1}' });
  });

  test("tells calls of custom tools by their raw input, without empty frames", () => {
    const request = { tools: [customTool] };
    const pieces = ['{"in', 'put": "', "l", "s\\", 'n"', "}"];
    const stream = streamAnswer([{ type: "call", name: "run", pieces }], finishWith("tool-calls"), {
      request,
    });
    const frames = readFrames(stream).slice(2);
    expect(frames.map((frame) => frame["type"])).toEqual([
      "response.output_item.added",
      "response.custom_tool_call_input.delta",
      "response.custom_tool_call_input.delta",
      "response.custom_tool_call_input.delta",
      "response.custom_tool_call_input.done",
      "response.output_item.done",
      "response.completed",
    ]);
    expect(frames.map((frame) => frame["delta"]).join("")).toBe("ls\n");
    expect(frames[4]).toMatchObject({ item_id: "ctc_1", output_index: 0, input: "ls\n" });
    expect(frames[5]?.["item"]).toEqual({
      type: "custom_tool_call",
      id: "ctc_1",
      status: "completed",
      call_id: "call_0",
      name: "run",
      input: "ls\n",
    });
  });

  test("gives the input that was held back when the arguments end", () => {
    const frames = readFrames(
      streamAnswer([{ type: "call", name: "run", pieces: ['{"inp', "ut"] }], finishWith("stop"), {
        request: { tools: [customTool] },
      }),
    );
    expect(frames[3]).toMatchObject({ delta: '{"input' });
    expect(frames[4]).toMatchObject({ input: '{"input' });
  });

  test("splits a name only by this request's table", () => {
    const tools = [
      { type: "namespace", name: "mcp__git", tools: [{ type: "function", name: "log" }] },
      { type: "function", name: "mcp__x__y" },
    ];
    const spoken = ["mcp__git__log", "mcp__x__y", "mcp__git__show"].map((name): SpokenPart => ({
      type: "call",
      name,
      pieces: ["{}"],
    }));
    const stream = streamAnswer(spoken, finishWith("tool-calls"), { request: { tools } });
    const items = readFrames(stream)
      .filter((frame) => frame["type"] === "response.output_item.done")
      .map((frame) => frame["item"]);
    expect(items).toMatchObject([
      { name: "log", namespace: "mcp__git" },
      { name: "mcp__x__y" },
      { name: "mcp__git__show" },
    ]);
    expect(items[1]).not.toHaveProperty("namespace");
    expect(items[2]).not.toHaveProperty("namespace");
  });

  test("calls an item done only when it is known that nothing cut it", () => {
    const encoder = responsesFormat.openEncoder(openContext());
    const opening = encoder.open();
    const said = encoder.encode(eventsOf([text]));
    expect(typesOf(opening + said).at(-1)).toBe("response.content_part.done");
    const next = encoder.encode(eventsOf([call]));
    expect(typesOf(opening + said + next).slice(8, 10)).toEqual([
      "response.output_item.done",
      "response.output_item.added",
    ]);
    const frames = readFrames(opening + said + next + encoder.finish(finishWith("length")));
    expect(frames.at(-2)?.["item"]).toMatchObject({ type: "function_call", status: "incomplete" });
    expect(frames.at(-1)).toMatchObject({
      type: "response.incomplete",
      response: {
        status: "incomplete",
        completed_at: null,
        incomplete_details: { reason: "max_output_tokens" },
        output: [{ status: "completed" }, { status: "incomplete" }],
      },
    });
  });

  test("says so when a filter cut the answer", () => {
    const frames = readFrames(streamAnswer([text], finishWith("content-filter")));
    expect(frames.at(-1)).toMatchObject({
      type: "response.incomplete",
      response: { incomplete_details: { reason: "content_filter" }, usage: { total_tokens: 17 } },
    });
  });

  test("counts keepalives among its frames and says a comment with each", () => {
    const stream = streamAnswer([reasoning, text, call], finishWith("tool-calls"), {
      keepalives: true,
    });
    const types = typesOf(stream);
    const keepalives = types.filter((type) => type === "response.in_progress").length - 1;
    expect(stream.split(": ping\n\n")).toHaveLength(keepalives + 1);
    expect(keepalives).toBe(1 + eventsOf([reasoning, text, call]).length);
  });

  test("has an empty output when nothing was said", () => {
    const stream = streamAnswer([], finishWith("stop"));
    expect(typesOf(stream)).toHaveLength(3);
    expect(readFrames(stream).at(-1)).toMatchObject({
      type: "response.completed",
      response: { output: [], status: "completed", completed_at: 1_700_000_005 },
    });
  });

  const shortage = {
    balance: "0",
    held: "0",
    needed: "1",
    affordableOutputTokens: 0,
    waitingHelps: false,
  };

  test.each([
    ["deployment_failed", "server_error"],
    ["deployment_timeout", "server_error"],
    ["internal", "server_error"],
    ["overloaded", "rate_limit_exceeded"],
    ["input_too_large", "context_length_exceeded"],
    ["refused_by_deployment", "invalid_prompt"],
    ["insufficient_credit", "invalid_prompt"],
    ["too_many_concurrent", "rate_limit_exceeded"],
  ] as const)("fails with both frames: %s", (code, wireCode) => {
    const encoder = responsesFormat.openEncoder(openContext());
    const opening = encoder.open() + encoder.encode(eventsOf([text, call]).slice(0, -1));
    const facts = code === "insufficient_credit" ? { shortage } : {};
    const frames = readFrames(opening + encoder.fail(new Failure(code, "It broke.", facts)));
    const told = { message: "It broke.", param: null, code: expect.any(String) };
    expect(frames.at(-2)).toMatchObject({ type: "error", ...told, error: told });
    expect(frames.at(-1)).toMatchObject({
      type: "response.failed",
      response: {
        status: "failed",
        completed_at: null,
        error: { code: wireCode, message: "It broke." },
        usage: null,
        output: [{ type: "message", status: "completed" }],
      },
    });
  });

  test("does not call a finished call done in an answer that fails", () => {
    const encoder = responsesFormat.openEncoder(openContext());
    const stream =
      encoder.open() +
      encoder.encode(eventsOf([call])) +
      encoder.fail(new Failure("internal", "x"));
    expect(typesOf(stream)).not.toContain("response.output_item.done");
  });

  test("costs the same for every piece, however long the answer", () => {
    const encoder = responsesFormat.openEncoder(openContext());
    encoder.open();
    encoder.encode([{ type: "text-start" }]);
    const piece = [{ type: "text-delta", text: "x" }] as const;
    const first = encoder.encode(piece).length;
    for (let count = 0; count < 50_000; count += 1) encoder.encode(piece);
    expect(encoder.encode(piece).length - first).toBeLessThan(8);
  });
});

test("an answer that is too long to be repeated at its end is failed where it gets too long", () => {
  const encoder = responsesFormat.openEncoder(openContext());
  const piece = "x".repeat(limits.answerCharactersMax / 8);
  encoder.encode([{ type: "text-start" }]);
  for (let count = 0; count < 8; count += 1) encoder.encode([{ type: "text-delta", text: piece }]);
  expect(() => encoder.encode([{ type: "text-delta", text: "x" }])).toThrow(Failure);
});
