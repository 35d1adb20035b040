import type { GenerationEvent } from "../../src/conversation/generation-event.ts";
import { ensure, list, record, text, type JsonRecord } from "./reading.ts";

/** One output item of a Responses stream while it is being said. */
export interface OpenItem {
  add(type: string, data: JsonRecord): void;
  /** Compares what was said with the whole item. */
  end(item: JsonRecord): void;
  /** The answer failed inside of this item. */
  abandon(): void;
}

interface Piece {
  /** The name in `response.<name>.delta` and `.done`. */
  readonly wireName: string;
  /** The field of the `.done` frame. */
  readonly whole: string;
  readonly event: "text" | "reasoning" | "tool-call";
}

/** Opens an item; events go to `events` as they are read. */
export function openItem(
  first: JsonRecord,
  outputIndex: number,
  events: GenerationEvent[],
): OpenItem {
  const type = text(first["type"], "item type");
  const id = text(first["id"], "item id");
  const isCall = type === "function_call" || type === "custom_tool_call";
  let said = "";
  let part: { readonly piece: Piece; done: boolean } | null = null;
  let parts = 0;

  if (isCall) {
    const piece = type === "function_call" ? functionPiece : customPiece;
    part = { piece, done: false };
    ensure(first[piece.whole] === "", "a call begins with empty arguments");
    const name = text(first["name"], "name");
    const namespace = first["namespace"];
    events.push({
      type: "tool-call-start",
      id: text(first["call_id"], "call_id"),
      name: namespace === undefined ? name : `${text(namespace, "namespace")}__${name}`,
    });
  } else {
    ensure(type === "message" || type === "reasoning", `an item of type ${type}`);
    ensure(list(first["content"] ?? [], "content").length === 0, "an item begins empty");
  }

  function startPart(data: JsonRecord, summary: boolean): void {
    ensure(part === null && !isCall, "a part begins when the last has ended");
    ensure(data[summary ? "summary_index" : "content_index"] === parts, "index of the part");
    const begun = record(data["part"], "part");
    const piece = summary ? summaryPiece : pieceOf(type);
    ensure(begun["type"] === partTypes[piece.wireName] && begun["text"] === "", "an empty part");
    part = { piece, done: false };
    said = "";
    events.push({ type: `${piece.event === "text" ? "text" : "reasoning"}-start` });
  }

  function endPart(data: JsonRecord): void {
    ensure(part !== null && part.done, "a part ends after its text is done");
    ensure(record(data["part"], "part")["text"] === said, "the part holds what was said");
    events.push({ type: part.piece.event === "text" ? "text-end" : "reasoning-end" });
    part = null;
    parts += 1;
  }

  function addPiece(wireType: string, data: JsonRecord): void {
    ensure(part !== null && !part.done, `${wireType} without an open part`);
    const { piece } = part;
    if (wireType === `response.${piece.wireName}.delta`) {
      const delta = text(data["delta"], "delta");
      said += delta;
      events.push(
        piece.event === "tool-call"
          ? { type: "tool-call-delta", arguments: delta }
          : { type: `${piece.event}-delta`, text: delta },
      );
      return;
    }
    ensure(wireType === `response.${piece.wireName}.done`, `${wireType} in a ${type}`);
    ensure(data[piece.whole] === said, `${wireType} says what the deltas said`);
    part.done = true;
  }

  return {
    add(wireType, data) {
      ensure(data["item_id"] === id && data["output_index"] === outputIndex, "the open item");
      if (wireType === "response.content_part.added") return startPart(data, false);
      if (wireType === "response.reasoning_summary_part.added") return startPart(data, true);
      const ends = ["response.content_part.done", "response.reasoning_summary_part.done"];
      if (ends.includes(wireType)) return endPart(data);
      addPiece(wireType, data);
    },
    end(item) {
      ensure(item["id"] === id && item["type"] === type, "an item keeps its id");
      if (!isCall) {
        ensure(part === null, "an item is done after its parts");
        const field = type === "reasoning" && list(item["content"] ?? [], "c").length === 0;
        const whole = list(item[field ? "summary" : "content"], "parts");
        ensure(whole.length === parts, "the item holds its parts");
        return;
      }
      ensure(part !== null && part.done, "a call is done after its arguments");
      ensure(item[part.piece.whole] === said, "the item holds the arguments");
      for (const key of ["call_id", "name", "namespace"]) ensure(item[key] === first[key], key);
      events.push({ type: "tool-call-end" });
    },
    abandon() {
      if (part !== null) events.push({ type: `${part.piece.event}-end` });
    },
  };
}

const textPiece: Piece = { wireName: "output_text", whole: "text", event: "text" };
const reasoningPiece: Piece = { wireName: "reasoning_text", whole: "text", event: "reasoning" };
const summaryPiece: Piece = {
  wireName: "reasoning_summary_text",
  whole: "text",
  event: "reasoning",
};
const functionPiece: Piece = {
  wireName: "function_call_arguments",
  whole: "arguments",
  event: "tool-call",
};
const customPiece: Piece = {
  wireName: "custom_tool_call_input",
  whole: "input",
  event: "tool-call",
};

const partTypes: Readonly<Record<string, string>> = {
  output_text: "output_text",
  reasoning_text: "reasoning_text",
  reasoning_summary_text: "summary_text",
};

function pieceOf(itemType: string): Piece {
  return itemType === "reasoning" ? reasoningPiece : textPiece;
}
