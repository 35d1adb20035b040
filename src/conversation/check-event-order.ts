import type { GenerationEvent } from "./generation-event.ts";

/** Throws on an illegal order: every start is ended once before the next, deltas belong to the open part. */
export function openEventOrderCheck(): {
  add(batch: readonly GenerationEvent[]): void;
  end(): void;
} {
  let open: string | null = null;

  function check(event: GenerationEvent): void {
    const cut = event.type.lastIndexOf("-");
    const noun = event.type.slice(0, cut);
    const step = event.type.slice(cut + 1);
    if (step === "start") {
      if (open !== null) throw new Error(`${event.type} while ${open} is open`);
      open = noun;
      return;
    }
    if (open !== noun) throw new Error(`${event.type} while ${open ?? "nothing"} is open`);
    if (step === "end") open = null;
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
