import type { GenerationEvent } from "../../conversation/generation-event.ts";
import { Failure } from "../../failure.ts";
import { limits } from "../../limits.ts";
import { JsonObjectScanner } from "./json-object-scanner.ts";

/** A piece of a tool call as it came; "" and null: the engine did not say. */
export interface CallDelta {
  readonly index: number | null;
  readonly id: string;
  readonly name: string;
  readonly arguments: string;
}

interface Call {
  id: string;
  name: string;
  readonly scanner: JsonObjectScanner;
  readonly part: Part;
}

interface Part {
  readonly kind: "reasoning" | "text" | "tool-call";
  readonly call: Call | null;
  /** What came while an earlier part was still open. */
  pieces: string[];
  state: "waiting" | "open" | "ended";
}

/**
 * Puts the parts of an answer strictly one after another. The first part that is not ended is passed on as it comes;
 * what belongs to later ones waits. Reasoning and text end when something else begins, a call when something else has
 * begun and its arguments are one whole JSON object: engines may interleave parallel calls.
 */
export class PartSequencer {
  readonly #newId: (prefix: string) => string;
  #batch: GenerationEvent[] = [];
  /** The first is open, or waits for its name; all others wait. */
  readonly #parts: Part[] = [];
  readonly #byIndex = new Map<number, Call>();
  readonly #byId = new Map<string, Call>();
  #lastCall: Call | null = null;
  #held = 0;

  constructor(newId: (prefix: string) => string) {
    this.#newId = newId;
  }

  /** Whether the model made a call. */
  get hasCalls(): boolean {
    return this.#lastCall !== null;
  }

  /** The events since the last time. */
  take(): GenerationEvent[] {
    const batch = this.#batch;
    this.#batch = [];
    return batch;
  }

  add(kind: "reasoning" | "text", text: string): void {
    if (text === "") return;
    const last = this.#parts.at(-1);
    if (last?.kind === kind) this.#append(last, text);
    else this.#begin({ kind, call: null, pieces: [text], state: "waiting" });
  }

  addCall(found: CallDelta): void {
    const call = this.#callOf(found);
    if (call === null) return;
    if (call.name === "" && found.name !== "") {
      call.name = found.name;
      if (call.part === this.#parts[0]) this.#open(call.part);
    }
    if (found.arguments === "") return;
    if (call.part.state === "ended") {
      if (found.arguments.trim() === "") return;
      throw nonsense("more arguments for a tool call that was complete");
    }
    call.scanner.add(found.arguments);
    this.#append(call.part, found.arguments);
    this.#advance();
  }

  /** Ends every part. Throws a Failure when a call never got a name. */
  end(): void {
    for (let part = this.#parts[0]; part !== undefined; part = this.#parts[0]) {
      this.#open(part);
      if (part.state === "waiting") throw nonsense("a tool call without a name");
      this.#end(part);
    }
  }

  #append(part: Part, text: string): void {
    if (part.state === "open") this.#batch.push(delta(part.kind, text));
    else this.#hold(part, text);
  }

  #hold(part: Part, text: string): void {
    this.#held += text.length + 1;
    if (this.#held > limits.upstreamFrameCharactersMax)
      throw nonsense("too much beside a tool call that does not end");
    part.pieces.push(text);
  }

  #begin(part: Part): void {
    this.#parts.push(part);
    if (this.#parts.length === 1) this.#open(part);
    else this.#advance();
  }

  /** Ends what is complete and has a successor, and opens the successor. */
  #advance(): void {
    for (let part = this.#parts[0]; part !== undefined; part = this.#parts[0]) {
      this.#open(part);
      const complete = part.call === null || part.call.scanner.complete;
      if (part.state !== "open" || !complete || this.#parts.length === 1) return;
      this.#end(part);
    }
  }

  #open(part: Part): void {
    if (part.state !== "waiting" || part.call?.name === "") return;
    part.state = "open";
    this.#batch.push(start(part));
    for (const piece of part.pieces) {
      this.#held = Math.max(0, this.#held - piece.length - 1);
      this.#batch.push(delta(part.kind, piece));
    }
    part.pieces = [];
  }

  #end(part: Part): void {
    part.state = "ended";
    this.#parts.shift();
    this.#batch.push(ends[part.kind]);
  }

  /** The call that a delta belongs to: by index, else by id; a new one; null when there is nothing in it. */
  #callOf(found: CallDelta): Call | null {
    const known = this.#knownCall(found);
    if (known !== null && !isAnother(found, known)) return known;
    if (known === null && found.id === "" && found.name === "" && found.arguments === "")
      return null;
    // With the same name and without arguments it is the echo of a call that is complete.
    if (known !== null && found.name === known.name && found.arguments === "") return null;
    if (found.index === null && found.id === "" && found.name === "")
      throw nonsense("arguments of no tool call");
    const id = found.id === "" || this.#byId.has(found.id) ? this.#newId("call_") : found.id;
    const part: Part & { call: Call | null } = {
      kind: "tool-call",
      call: null,
      pieces: [],
      state: "waiting",
    };
    const call: Call = { id, name: found.name, scanner: new JsonObjectScanner(), part };
    part.call = call;
    this.#byId.set(id, call);
    if (found.index !== null) this.#byIndex.set(found.index, call);
    this.#lastCall = call;
    this.#begin(part);
    return call;
  }

  #knownCall(found: CallDelta): Call | null {
    const last = this.#lastCall;
    if (found.index !== null) return this.#byIndex.get(found.index) ?? null;
    if (found.id !== "") return this.#byId.get(found.id) ?? (found.name === "" ? last : null);
    if (found.name === "") return last;
    return last?.name === found.name && !last.scanner.complete ? last : null;
  }
}

/** Some engines give every parallel call the same index, some give every piece of one call another id. */
function isAnother(found: CallDelta, known: Call): boolean {
  return found.id !== "" && found.name !== "" && found.id !== known.id && known.scanner.complete;
}

function start(part: Part): GenerationEvent {
  if (part.kind === "reasoning") return reasoningStart;
  if (part.kind === "text") return textStart;
  return { type: "tool-call-start", id: part.call?.id ?? "", name: part.call?.name ?? "" };
}

function delta(kind: Part["kind"], text: string): GenerationEvent {
  if (kind === "text") return { type: "text-delta", text };
  if (kind === "reasoning") return { type: "reasoning-delta", text };
  return { type: "tool-call-delta", arguments: text };
}

const reasoningStart = { type: "reasoning-start" } as const;
const textStart = { type: "text-start" } as const;
const ends = {
  reasoning: { type: "reasoning-end" },
  text: { type: "text-end" },
  "tool-call": { type: "tool-call-end" },
} as const;

function nonsense(what: string): Failure {
  return new Failure("deployment_failed", `The deployment sent ${what}.`);
}
