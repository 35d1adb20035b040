import type { GenerationEvent } from "../../src/conversation/generation-event.ts";
import { type JsonRecord, list, record } from "../reader/reading.ts";

/** What a recorded stream says, in the words of `tests/cases/upstream/*.expected.json`. */
export interface ExpectedAnswer {
  readonly events: readonly GenerationEvent[];
  readonly ending: JsonRecord;
}

const reasons: Readonly<Record<string, string>> = {
  stop: "stop",
  length: "length",
  tool_calls: "tool-calls",
};

/**
 * Reads a recorded stream as slowly and plainly as can be, to say what it must be understood as; it shares nothing with the
 * reader of the deployment, and expects calls one after another.
 */
export function foldRecording(text: string): ExpectedAnswer {
  const frames = text
    .split("\n\n")
    .filter((frame) => frame.startsWith("data: ") && frame !== "data: [DONE]")
    .map((frame) => record(JSON.parse(frame.slice("data: ".length)), "frame"));
  const events: GenerationEvent[] = [];
  let open: "text" | "reasoning" | "tool-call" | null = null;
  let callIndex = -1;
  let calls = 0;
  let finish: JsonRecord | null = null;
  let usage: JsonRecord | null = null;

  function begin(part: "text" | "reasoning" | "tool-call" | null): void {
    if (open === "text") events.push({ type: "text-end" });
    if (open === "reasoning") events.push({ type: "reasoning-end" });
    if (open === "tool-call") events.push({ type: "tool-call-end" });
    open = part;
  }

  function say(part: "text" | "reasoning", words: unknown): void {
    if (typeof words !== "string" || words === "") return;
    if (open !== part) {
      begin(part);
      events.push(part === "text" ? { type: "text-start" } : { type: "reasoning-start" });
    }
    events.push(
      part === "text"
        ? { type: "text-delta", text: words }
        : { type: "reasoning-delta", text: words },
    );
  }

  function addCall(call: JsonRecord): void {
    const told = record(call["function"], "function");
    if (call["index"] !== callIndex) {
      begin("tool-call");
      callIndex = Number(call["index"]);
      calls += 1;
      events.push({ type: "tool-call-start", id: String(call["id"]), name: String(told["name"]) });
    }
    const written = told["arguments"];
    if (typeof written === "string" && written !== "")
      events.push({ type: "tool-call-delta", arguments: written });
  }

  for (const frame of frames) {
    if (frame["error"] !== undefined) {
      begin(null);
      return { events, ending: { type: "failed", code: "deployment_failed" } };
    }
    if (frame["usage"] !== undefined && frame["usage"] !== null)
      usage = record(frame["usage"], "usage");
    for (const choice of list(frame["choices"], "choices").map((each) => record(each, "choice"))) {
      const delta = record(choice["delta"] ?? {}, "delta");
      say("reasoning", delta["reasoning_content"] ?? delta["reasoning"]);
      say("text", delta["content"]);
      for (const piece of list(delta["tool_calls"] ?? [], "tool_calls"))
        addCall(record(piece, "call"));
      if (typeof choice["finish_reason"] === "string") finish = choice;
    }
  }
  begin(null);
  if (finish === null) return { events, ending: { type: "failed", code: "deployment_failed" } };
  const reason = reasons[String(finish["finish_reason"])] ?? "stop";
  const stopped = finish["stop_reason"];
  return {
    events,
    ending: {
      type: "finished",
      finish: {
        // A forced call may end with `stop`; whoever called for tools has made calls.
        reason: reason === "stop" && calls > 0 ? "tool-calls" : reason,
        stopSequence: typeof stopped === "string" ? stopped : null,
      },
      usage: usage === null ? null : usageOf(usage),
    },
  };
}

function usageOf(usage: JsonRecord): JsonRecord {
  const input = record(usage["prompt_tokens_details"] ?? {}, "details");
  const output = record(usage["completion_tokens_details"] ?? {}, "details");
  return {
    inputTokens: usage["prompt_tokens"],
    cachedInputTokens: Number(input["cached_tokens"] ?? 0),
    outputTokens: usage["completion_tokens"],
    reasoningTokens: Number(output["reasoning_tokens"] ?? 0),
  };
}
