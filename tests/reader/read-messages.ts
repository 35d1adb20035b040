import type { FinishReason, GenerationEvent } from "../../src/conversation/generation-event.ts";
import { framesOf, readFrames } from "./frames.ts";
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

const reasons: Readonly<Record<string, FinishReason>> = {
  end_turn: "stop",
  stop_sequence: "stop",
  max_tokens: "length",
  tool_use: "tool-calls",
  refusal: "content-filter",
};

type BlockType = "text" | "thinking" | "tool_use";

/** Reads a Messages stream back into events. */
export function readMessages(stream: string): Reading {
  const lines = readFrames(stream);
  const reader = openReader();
  for (const frame of framesOf(lines)) {
    const data = parseRecord(frame.data);
    ensure(frame.event === data["type"], `event ${String(frame.event)} is not the type`);
    reader.add(text(data["type"], "type"), data);
  }
  return { ...reader.end(), comments: lines.filter((line) => line.kind === "comment").length };
}

function openReader() {
  const events: GenerationEvent[] = [];
  let phase: "before" | "blocks" | "delta" | "stopped" = "before";
  let blocks = 0;
  let open: BlockType | null = null;
  let signature: string | null = null;
  let finish: ReadFinish | null = null;
  let failure: Reading["failure"] = null;

  function start(data: JsonRecord): void {
    ensure(phase === "before", "message_start comes first");
    phase = "blocks";
    const message = record(data["message"], "message");
    ensure(message["type"] === "message" && message["role"] === "assistant", "an empty message");
    ensure(list(message["content"], "content").length === 0, "it begins empty");
    ensure(message["stop_reason"] === null && message["stop_sequence"] === null, "stop_reason");
    readUsage(record(message["usage"], "usage"));
  }

  function startBlock(data: JsonRecord): void {
    ensure(phase === "blocks" && open === null, "a block begins when the last has ended");
    ensure(data["index"] === blocks, `index ${String(data["index"])}`);
    blocks += 1;
    signature = null;
    const block = record(data["content_block"], "content_block");
    if (block["type"] === "text") {
      ensure(block["text"] === "", "a text begins empty");
      open = "text";
      events.push({ type: "text-start" });
    } else if (block["type"] === "thinking") {
      ensure(block["thinking"] === "" && block["signature"] === "", "thinking begins empty");
      open = "thinking";
      events.push({ type: "reasoning-start" });
    } else {
      ensure(block["type"] === "tool_use", `content_block ${String(block["type"])}`);
      ensure(JSON.stringify(block["input"]) === "{}", "input begins empty");
      open = "tool_use";
      const id = text(block["id"], "id");
      events.push({ type: "tool-call-start", id, name: text(block["name"], "name") });
    }
  }

  function addDelta(data: JsonRecord): void {
    ensure(phase === "blocks" && data["index"] === blocks - 1, "a delta of the open block");
    const delta = record(data["delta"], "delta");
    const type = text(delta["type"], "delta type");
    if (open === "text" && type === "text_delta") {
      events.push({ type: "text-delta", text: text(delta["text"], "text") });
    } else if (open === "thinking" && type === "thinking_delta") {
      ensure(signature === null, "the signature comes last");
      events.push({ type: "reasoning-delta", text: text(delta["thinking"], "thinking") });
    } else if (open === "thinking" && type === "signature_delta") {
      ensure(signature === null, "one signature");
      signature = text(delta["signature"], "signature");
    } else {
      ensure(open === "tool_use" && type === "input_json_delta", `${type} in ${String(open)}`);
      events.push({ type: "tool-call-delta", arguments: text(delta["partial_json"], "json") });
    }
  }

  function endBlock(data: JsonRecord): void {
    ensure(phase === "blocks" && data["index"] === blocks - 1, "the open block ends");
    ensure(open !== null, "a block is open");
    ensure(open !== "thinking" || signature !== null, "thinking is signed");
    events.push({ type: partOf(open) });
    open = null;
  }

  function end(data: JsonRecord): void {
    ensure(phase === "blocks" && open === null, "message_delta comes after the blocks");
    phase = "delta";
    const delta = record(data["delta"], "delta");
    const reason = reasons[text(delta["stop_reason"], "stop_reason")];
    ensure(reason !== undefined, `stop_reason ${String(delta["stop_reason"])}`);
    const stopSequence = delta["stop_sequence"];
    ensure((delta["stop_reason"] === "stop_sequence") === (stopSequence !== null), "stop_sequence");
    finish = {
      reason,
      stopSequence: stopSequence === null ? null : text(stopSequence, "stop_sequence"),
      usage: readUsage(record(data["usage"], "usage")),
    };
  }

  function add(type: string, data: JsonRecord): void {
    ensure(failure === null && phase !== "stopped", `a frame after the last one: ${type}`);
    switch (type) {
      case "message_start":
        return start(data);
      case "content_block_start":
        return startBlock(data);
      case "content_block_delta":
        return addDelta(data);
      case "content_block_stop":
        return endBlock(data);
      case "message_delta":
        return end(data);
      case "message_stop":
        ensure(phase === "delta", "message_stop comes after message_delta");
        phase = "stopped";
        return;
      case "ping":
        ensure(phase !== "before", "message_start comes first");
        ensure(Object.keys(data).length === 1, "a ping says nothing");
        return;
      case "error": {
        ensure(phase !== "before", "message_start comes first");
        const error = record(data["error"], "error");
        failure = { code: text(error["type"], "type"), message: text(error["message"], "message") };
        return;
      }
      default:
        throw new Error(`an event that is not known: ${type}`);
    }
  }

  return {
    add,
    end(): Omit<Reading, "comments"> {
      if (failure !== null) {
        ensure(finish === null, "a failed answer has no finish");
        if (open !== null) events.push({ type: partOf(open) });
        return { events, finish, failure };
      }
      ensure(phase === "stopped" && finish !== null, "no message_stop");
      return { events, finish, failure };
    },
  };
}

function partOf(block: BlockType): "text-end" | "reasoning-end" | "tool-call-end" {
  if (block === "text") return "text-end";
  return block === "thinking" ? "reasoning-end" : "tool-call-end";
}

function readUsage(usage: JsonRecord): NonNullable<ReadFinish["usage"]> {
  const cachedInputTokens = count(usage["cache_read_input_tokens"], "cache_read_input_tokens");
  ensure(usage["cache_creation_input_tokens"] === 0, "cache_creation_input_tokens");
  const details = usage["output_tokens_details"];
  return {
    inputTokens: count(usage["input_tokens"], "input_tokens") + cachedInputTokens,
    cachedInputTokens,
    outputTokens: count(usage["output_tokens"], "output_tokens"),
    reasoningTokens:
      details === undefined || details === null
        ? 0
        : count(record(details, "details")["thinking_tokens"], "thinking_tokens"),
  };
}
