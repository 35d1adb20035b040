import type { FinishReason } from "../../src/conversation/generation-event.ts";
import { framesOf, readFrames } from "./frames.ts";
import {
  count,
  ensure,
  list,
  openEventWriter,
  parseRecord,
  record,
  text,
  type JsonRecord,
  type ReadFinish,
  type Reading,
} from "./reading.ts";

const reasons: Readonly<Record<string, FinishReason>> = {
  stop: "stop",
  length: "length",
  tool_calls: "tool-calls",
  content_filter: "content-filter",
};

/** Reads a Chat Completions stream back into events. */
export function readChatCompletions(stream: string): Reading {
  const lines = readFrames(stream);
  const reader = openReader();
  for (const frame of framesOf(lines)) {
    ensure(frame.event === null, "Chat Completions frames have no event name");
    reader.add(frame.data);
  }
  return { ...reader.end(), comments: lines.filter((line) => line.kind === "comment").length };
}

function openReader() {
  const writer = openEventWriter();
  let identity: string | null = null;
  let done = false;
  let calls = 0;
  let callIsOpen = false;
  let reason: FinishReason | null = null;
  let usage: ReadFinish["usage"] = null;
  let failure: Reading["failure"] = null;

  function closeCall(): void {
    if (callIsOpen) writer.events.push({ type: "tool-call-end" });
    callIsOpen = false;
  }

  function addCall(call: JsonRecord): void {
    writer.close();
    const body = record(call["function"] ?? call["custom"], "call");
    const isCustom = call["custom"] !== undefined;
    const piece = text(isCustom ? body["input"] : body["arguments"], "arguments");
    if (call["index"] === calls) {
      closeCall();
      calls += 1;
      callIsOpen = true;
      ensure(call["type"] === (isCustom ? "custom" : "function"), "a call says its type");
      writer.events.push({
        type: "tool-call-start",
        id: text(call["id"], "id"),
        name: text(body["name"], "name"),
      });
      ensure(piece === "", "a call begins with empty arguments");
      return;
    }
    ensure(call["index"] === calls - 1 && callIsOpen, "a piece of a call that is not open");
    ensure(!("id" in call) && !("name" in body), "id and name are said once");
    // A custom call's raw text stands for a JSON object with that text; pieces join to one string by the reader's user.
    writer.events.push({ type: "tool-call-delta", arguments: piece });
  }

  function addDelta(delta: JsonRecord, isFirst: boolean): void {
    const known = ["role", "content", "reasoning_content", "tool_calls"];
    for (const key of Object.keys(delta)) ensure(known.includes(key), `delta.${key}`);
    if (isFirst) {
      ensure(
        delta["role"] === "assistant" && delta["content"] === "",
        "the first chunk is the role",
      );
      return;
    }
    ensure(!("role" in delta), "the role is said once");
    if ("content" in delta || "reasoning_content" in delta) closeCall();
    if ("reasoning_content" in delta)
      writer.say("reasoning", text(delta["reasoning_content"], "r"));
    if ("content" in delta) writer.say("text", text(delta["content"], "content"));
    for (const call of list(delta["tool_calls"] ?? [], "tool_calls")) addCall(record(call, "call"));
  }

  function add(data: string): void {
    ensure(!done && failure === null, `a frame after the last one: ${data}`);
    if (data === "[DONE]") {
      done = true;
      return;
    }
    const chunk = parseRecord(data);
    if ("error" in chunk) {
      ensure(identity !== null, "the role chunk comes first");
      const error = record(chunk["error"], "error");
      failure = { code: text(error["code"], "code"), message: text(error["message"], "message") };
      return;
    }
    ensure(chunk["object"] === "chat.completion.chunk", "object");
    const own = JSON.stringify([chunk["id"], chunk["created"], chunk["model"]]);
    const isFirst = identity === null;
    ensure(isFirst || own === identity, "id, created and model stay");
    identity = own;
    const choices = list(chunk["choices"], "choices");
    if (choices.length === 0) {
      ensure(reason !== null && usage === null, "usage comes once and after the finish");
      usage = readUsage(record(chunk["usage"], "usage"));
      return;
    }
    ensure(choices.length === 1 && reason === null, "one choice, nothing after its finish");
    ensure((chunk["usage"] ?? null) === null, "usage has a chunk of its own");
    const choice = record(choices[0], "choice");
    ensure(choice["index"] === 0, "index");
    const delta = record(choice["delta"], "delta");
    const finish = choice["finish_reason"] ?? null;
    if (finish === null) return addDelta(delta, isFirst);
    ensure(!isFirst, "the role chunk comes first");
    ensure(Object.keys(delta).length === 0, "the finish comes with an empty delta");
    const spelled = text(finish, "finish_reason");
    reason = reasons[spelled] ?? null;
    ensure(reason !== null, `finish_reason ${spelled}`);
  }

  return {
    add,
    end(): Omit<Reading, "comments"> {
      writer.close();
      closeCall();
      if (failure !== null) {
        ensure(!done && reason === null, "a failed answer has no finish");
        return { events: writer.events, finish: null, failure };
      }
      ensure(done && reason !== null, "no finish");
      return { events: writer.events, finish: { reason, stopSequence: null, usage }, failure };
    },
  };
}

function readUsage(usage: JsonRecord): ReadFinish["usage"] {
  const inputTokens = count(usage["prompt_tokens"], "prompt_tokens");
  const outputTokens = count(usage["completion_tokens"], "completion_tokens");
  ensure(usage["total_tokens"] === inputTokens + outputTokens, "total_tokens");
  const prompt = record(usage["prompt_tokens_details"], "prompt_tokens_details");
  const completion = record(usage["completion_tokens_details"], "completion_tokens_details");
  return {
    inputTokens,
    outputTokens,
    cachedInputTokens: count(prompt["cached_tokens"], "cached_tokens"),
    reasoningTokens: count(completion["reasoning_tokens"], "reasoning_tokens"),
  };
}
