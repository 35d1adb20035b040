import type { GenerationEvent } from "./generation-event.ts";

/** Judges the order of the events of one answer; its work for an event is a comparison or two. */
export interface EventOrderCheck {
  /** Throws on an illegal order: every start is ended once before the next, deltas belong to the open part. */
  add(batch: readonly GenerationEvent[]): void;
  /** Throws when a part is still open. */
  end(): void;
}

/** Opens a check for one answer. */
export function openEventOrderCheck(): EventOrderCheck {
  let open: "reasoning" | "text" | "tool-call" | null = null;

  function begin(kind: typeof open, event: GenerationEvent): void {
    if (open !== null) throw disorder(event, open);
    open = kind;
  }

  function ensureOpen(kind: typeof open, event: GenerationEvent): void {
    if (open !== kind) throw disorder(event, open);
  }

  function check(event: GenerationEvent): void {
    switch (event.type) {
      case "text-delta":
        return ensureOpen("text", event);
      case "reasoning-delta":
        return ensureOpen("reasoning", event);
      case "tool-call-delta":
        return ensureOpen("tool-call", event);
      case "text-start":
        return begin("text", event);
      case "reasoning-start":
        return begin("reasoning", event);
      case "tool-call-start":
        return begin("tool-call", event);
      case "text-end":
        ensureOpen("text", event);
        open = null;
        return;
      case "reasoning-end":
        ensureOpen("reasoning", event);
        open = null;
        return;
      case "tool-call-end":
        ensureOpen("tool-call", event);
        open = null;
        return;
      default:
        event satisfies never;
    }
  }

  return {
    add(batch) {
      for (const event of batch) check(event);
    },
    end() {
      if (open !== null) throw new Error(`the generation ended while ${open} is open`);
    },
  };
}

function disorder({ type }: GenerationEvent, open: string | null): Error {
  return new Error(`${type} while ${open ?? "nothing"} is open`);
}
