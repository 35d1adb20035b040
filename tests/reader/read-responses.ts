import { isDeepStrictEqual } from "node:util";
import type { FinishReason, GenerationEvent } from "../../src/conversation/generation-event.ts";
import { framesOf, readFrames } from "./frames.ts";
import { openItem, type OpenItem } from "./read-responses-item.ts";
import {
  count,
  ensure,
  list,
  parseRecord,
  record,
  text,
  type JsonRecord,
  type ReadFinish,
  type Reading,
} from "./reading.ts";

/** Reads a Responses stream back into events. */
export function readResponses(stream: string): Reading {
  const lines = readFrames(stream);
  const reader = openReader();
  framesOf(lines).forEach((frame, index) => {
    const data = parseRecord(frame.data);
    ensure(frame.event === data["type"], `event ${String(frame.event)} is not the type`);
    ensure(data["sequence_number"] === index, `sequence_number at ${index}`);
    reader.add(text(data["type"], "type"), data);
  });
  return { ...reader.end(), comments: lines.filter((line) => line.kind === "comment").length };
}

function openReader() {
  const events: GenerationEvent[] = [];
  const items: JsonRecord[] = [];
  let created: JsonRecord | null = null;
  let begun = false;
  let ended = false;
  let item: OpenItem | null = null;
  let finish: ReadFinish | null = null;
  let failure: Reading["failure"] = null;
  let announced: Reading["failure"] = null;

  function lifecycle(type: string, response: JsonRecord): void {
    ensure(response["object"] === "response", "the whole object");
    if (type === "response.created") {
      ensure(created === null, "created once");
      created = response;
    }
    ensure(created !== null && response["id"] === created["id"], "one id");
    ensure(response["status"] === "in_progress", `status ${String(response["status"])}`);
    ensure(response["completed_at"] === null && response["error"] === null, "not ended yet");
    if (type === "response.in_progress") begun = true;
  }

  function addItem(data: JsonRecord): void {
    ensure(begun && item === null, "an item begins when the last is done");
    ensure(data["output_index"] === items.length, "output_index");
    item = openItem(record(data["item"], "item"), items.length, events);
  }

  function endItem(data: JsonRecord): void {
    ensure(item !== null && data["output_index"] === items.length, "the open item is done");
    const done = record(data["item"], "item");
    item.end(done);
    items.push(done);
    item = null;
  }

  function end(type: string, response: JsonRecord): void {
    ensure(created !== null && response["id"] === created["id"], "one id");
    ensure(item === null, "every item is done");
    ended = true;
    const status = type.slice("response.".length);
    ensure(response["status"] === status, `status ${String(response["status"])} in ${type}`);
    ensure((response["completed_at"] !== null) === (status === "completed"), "completed_at");
    const output = list(response["output"], "output");
    ensure(isDeepStrictEqual(output, items), "the object holds the items that were done");
    if (status === "completed") ensure(items.every(isWhole), "every item is completed");
    const calls = events.some((event) => event.type === "tool-call-start");
    finish = {
      reason: reasonOf(response, calls),
      stopSequence: null,
      usage: readUsage(record(response["usage"], "usage")),
    };
  }

  function fail(response: JsonRecord): void {
    ensure(created !== null && response["id"] === created["id"], "one id");
    ensure(response["status"] === "failed" && response["completed_at"] === null, "status");
    const error = record(response["error"], "error");
    const output = list(response["output"], "output");
    ensure(isDeepStrictEqual(output, items), "the object holds the items that were done");
    ended = true;
    failure = { code: text(error["code"], "code"), message: text(error["message"], "message") };
    ensure(announced !== null, "the error frame comes before response.failed");
    ensure(announced.message === failure.message, "both say the same");
  }

  function add(type: string, data: JsonRecord): void {
    ensure(!ended, `a frame after the last one: ${type}`);
    ensure(announced === null || type === "response.failed", `${type} after an error`);
    switch (type) {
      case "response.created":
      case "response.in_progress":
        return lifecycle(type, record(data["response"], "response"));
      case "response.output_item.added":
        return addItem(data);
      case "response.output_item.done":
        return endItem(data);
      case "response.completed":
      case "response.incomplete":
        return end(type, record(data["response"], "response"));
      case "error":
        announced = { code: text(data["code"], "code"), message: text(data["message"], "message") };
        ensure("param" in data, "param");
        return;
      case "response.failed":
        return fail(record(data["response"], "response"));
      default:
        ensure(item !== null, `${type} outside of an item`);
        item.add(type, data);
    }
  }

  return {
    add,
    end(): Omit<Reading, "comments"> {
      ensure(ended, "the stream ended without a last frame");
      if (failure !== null && item !== null) item.abandon();
      return { events, finish, failure };
    },
  };
}

function isWhole(item: JsonRecord): boolean {
  return item["status"] === undefined || item["status"] === "completed";
}

function reasonOf(response: JsonRecord, hasCalls: boolean): FinishReason {
  if (response["status"] === "completed") {
    ensure(response["incomplete_details"] === null, "incomplete_details");
    return hasCalls ? "tool-calls" : "stop";
  }
  const details = record(response["incomplete_details"], "incomplete_details");
  if (details["reason"] === "max_output_tokens") return "length";
  ensure(details["reason"] === "content_filter", `reason ${String(details["reason"])}`);
  return "content-filter";
}

function readUsage(usage: JsonRecord): ReadFinish["usage"] {
  const inputTokens = count(usage["input_tokens"], "input_tokens");
  const outputTokens = count(usage["output_tokens"], "output_tokens");
  ensure(usage["total_tokens"] === inputTokens + outputTokens, "total_tokens");
  const input = record(usage["input_tokens_details"], "input_tokens_details");
  const output = record(usage["output_tokens_details"], "output_tokens_details");
  return {
    inputTokens,
    outputTokens,
    cachedInputTokens: count(input["cached_tokens"], "cached_tokens"),
    reasoningTokens: count(output["reasoning_tokens"], "reasoning_tokens"),
  };
}
