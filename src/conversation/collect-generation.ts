import type { AssistantPart } from "./conversation.ts";
import type { Finish, GenerationEvent } from "./generation-event.ts";

/** A whole answer. */
export interface Generation {
  readonly parts: readonly AssistantPart[];
  readonly finish: Finish;
}

/** Folds events into the parts of an answer; pieces are joined once, when a part ends. */
export interface GenerationCollector {
  add(batch: readonly GenerationEvent[]): void;
  /** Characters held so far, for the bound of limits.ts. */
  readonly characters: number;
  finish(finish: Finish): Generation;
}

/** Opens a collector. Events are trusted to be in order; `openEventOrderCheck` is the judge of that. */
export function openGenerationCollector(): GenerationCollector {
  const parts: AssistantPart[] = [];
  let pieces: string[] = [];
  let call: { readonly id: string; readonly name: string } | null = null;
  let characters = 0;

  function piece(text: string): void {
    characters += text.length;
    pieces.push(text);
  }

  function take(): string {
    const text = pieces.join("");
    pieces = [];
    return text;
  }

  function add(event: GenerationEvent): void {
    switch (event.type) {
      case "reasoning-start":
      case "text-start":
        return;
      case "reasoning-delta":
      case "text-delta":
        return piece(event.text);
      case "tool-call-start":
        call = { id: event.id, name: event.name };
        return;
      case "tool-call-delta":
        return piece(event.arguments);
      case "reasoning-end":
        parts.push({ type: "reasoning", text: take() });
        return;
      case "text-end":
        parts.push({ type: "text", text: take() });
        return;
      case "tool-call-end":
        if (call === null) throw new Error("a tool call ended that had not begun");
        parts.push({ type: "tool-call", id: call.id, name: call.name, arguments: take() });
        call = null;
        return;
      default:
        event satisfies never;
    }
  }

  return {
    add(batch) {
      for (const event of batch) add(event);
    },
    get characters() {
      return characters;
    },
    finish: (finish) => ({ parts, finish }),
  };
}
