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
  /** The id that callers get: the engine's, or one that was made here. */
  readonly id: string;
  /** The id that the engine gave; "": it gave none. */
  readonly givenId: string;
  name: string;
  /** Whether the engine has given another id with a later piece of this call. */
  idVaries: boolean;
  readonly scanner: JsonObjectScanner;
  readonly part: Part;
}

interface Part {
  readonly kind: "reasoning" | "text" | "tool-call";
  readonly call: Call | null;
  /** What came while an earlier part was still open. */
  held: string;
  /** What that counts against the bound. */
  heldCount: number;
  state: "waiting" | "open" | "ended";
}

/**
 * Puts the parts of an answer strictly one after another. The first part that is not ended is passed on as it comes;
 * what belongs to later ones waits. Reasoning and text end when something else begins, a call when something else has
 * begun and its arguments are one whole JSON object: engines may interleave parallel calls. Work is linear in what
 * came, and all that waits is bounded.
 */
export class PartSequencer {
  readonly #newId: (prefix: string) => string;
  #batch: GenerationEvent[] = [];
  readonly #parts: Part[] = [];
  /** Of the part that is open, or waits for its name; all behind it wait. */
  #first = 0;
  readonly #byIndex = new Map<number, Call>();
  readonly #byId = new Map<string, Call>();
  #lastCall: Call | null = null;
  /** A head that begins another call, unless the answer ends in the chunk that brought it. */
  #doubtful: CallDelta | null = null;
  #held = 0;
  #pieces = 0;
  #characters = 0;

  constructor(newId: (prefix: string) => string) {
    this.#newId = newId;
  }

  /** Whether the model made a call. */
  get hasCalls(): boolean {
    return this.#lastCall !== null;
  }

  /** Pieces of the answer that came so far, those that wait too; a call's head is one. */
  get pieces(): number {
    return this.#pieces;
  }

  /** Characters of all those pieces. */
  get characters(): number {
    return this.#characters;
  }

  /** The events since the last time. */
  take(): GenerationEvent[] {
    const batch = this.#batch;
    this.#batch = [];
    return batch;
  }

  add(kind: "reasoning" | "text", text: string): void {
    if (text === "") return;
    if (this.#doubtful !== null) this.endChunk();
    this.#pieces += 1;
    this.#characters += text.length;
    const last = this.#parts.at(-1);
    if (last?.kind === kind && last.state !== "ended") this.#append(last, text);
    else this.#append(this.#begin(kind), text);
  }

  addCall(found: CallDelta): void {
    this.endChunk();
    const known = this.#knownCall(found);
    const kin = known === null ? "another" : kinOf(found, known);
    switch (kin) {
      case "repeat":
        return;
      case "doubtful":
        this.#doubtful = found;
        return;
      case "more":
        throw malformed("more arguments for a tool call that was complete");
      case "another":
        this.#addTo(this.#beginCall(found), found);
        return;
      case "same":
        this.#addTo(known, found);
        return;
      default:
        kin satisfies never;
    }
  }

  /** The chunk is over, and the answer is not. */
  endChunk(): void {
    const found = this.#doubtful;
    if (found === null) return;
    this.#doubtful = null;
    this.#beginCall(found);
  }

  /** Ends every part. Throws a Failure when a call never got a name. */
  end(): void {
    this.#doubtful = null;
    for (let part = this.#parts[this.#first]; part !== undefined; part = this.#parts[this.#first]) {
      this.#open(part);
      if (part.state === "waiting") throw malformed("a tool call without a name");
      this.#end(part);
    }
  }

  #addTo(call: Call | null, found: CallDelta): void {
    if (call === null) return;
    if (found.id !== "" && found.id !== call.givenId) call.idVaries = true;
    if (call.name === "" && found.name !== "") {
      call.name = checkedName(found.name);
      if (call.part === this.#parts[this.#first]) this.#open(call.part);
    }
    if (found.arguments === "") return;
    this.#pieces += 1;
    this.#characters += found.arguments.length;
    call.scanner.add(found.arguments);
    this.#append(call.part, found.arguments);
    this.#advance();
  }

  #append(part: Part, text: string): void {
    if (part.state === "open") this.#push(part.kind, text);
    else {
      part.held += text;
      this.#hold(part, text.length + limits.upstreamHeldPerPiece);
    }
  }

  /** Joins pieces where one read brings very many: each costs an encoder the same, whatever its length. */
  #push(kind: Part["kind"], text: string): void {
    const batch = this.#batch;
    const last = batch.length < limits.upstreamEventsAReadMax ? undefined : batch.at(-1);
    if (last !== undefined && last.type === `${kind}-delta`)
      batch[batch.length - 1] = delta(kind, textOf(last) + text);
    else batch.push(delta(kind, text));
  }

  #hold(part: Part, count: number): void {
    part.heldCount += count;
    this.#held += count;
    if (this.#held > limits.upstreamHeldCharactersMax)
      throw malformed("too much beside a tool call that does not end");
  }

  #begin(kind: Part["kind"], callOf: (part: Part) => Call | null = () => null): Part {
    if (this.#parts.length >= limits.upstreamPartsMax)
      throw malformed("an answer of too many parts");
    const part: Part & { call: Call | null } = {
      kind,
      call: null,
      held: "",
      heldCount: 0,
      state: "waiting",
    };
    part.call = callOf(part);
    this.#parts.push(part);
    this.#hold(part, limits.upstreamHeldPerPiece);
    this.#advance();
    return part;
  }

  /** Ends what is complete and has a successor, and opens the successor. */
  #advance(): void {
    for (let part = this.#parts[this.#first]; part !== undefined; part = this.#parts[this.#first]) {
      this.#open(part);
      const complete = part.call === null || part.call.scanner.complete;
      if (part.state !== "open" || !complete || this.#first === this.#parts.length - 1) return;
      this.#end(part);
    }
  }

  #open(part: Part): void {
    if (part.state !== "waiting" || part.call?.name === "") return;
    part.state = "open";
    this.#batch.push(start(part));
    if (part.held !== "") this.#push(part.kind, part.held);
    this.#held -= part.heldCount;
    part.held = "";
    part.heldCount = 0;
  }

  #end(part: Part): void {
    part.state = "ended";
    this.#first += 1;
    this.#batch.push(ends[part.kind]);
  }

  /** A new call; null when there is nothing in it. */
  #beginCall(found: CallDelta): Call | null {
    if (found.id === "" && found.name === "") {
      if (found.arguments === "") return null;
      if (found.index === null) throw malformed("arguments of no tool call");
    }
    const usable = usableId.test(found.id) && !this.#byId.has(found.id);
    const id = usable ? found.id : this.#newId("call_");
    const name = checkedName(found.name);
    let begun: Call | null = null;
    this.#pieces += 1;
    this.#begin("tool-call", (part) => {
      const scanner = new JsonObjectScanner();
      begun = { id, givenId: found.id, name, idVaries: false, scanner, part };
      this.#byId.set(id, begun);
      if (found.id !== "" && !this.#byId.has(found.id)) this.#byId.set(found.id, begun);
      if (found.index !== null) this.#byIndex.set(found.index, begun);
      this.#lastCall = begun;
      return begun;
    });
    return begun;
  }

  #knownCall(found: CallDelta): Call | null {
    const last = this.#lastCall;
    if (found.index !== null) return this.#byIndex.get(found.index) ?? null;
    if (found.id !== "") return this.#byId.get(found.id) ?? (found.name === "" ? last : null);
    if (found.name === "") return last;
    return last?.name === found.name && !last.scanner.complete ? last : null;
  }
}

/**
 * What a piece is to the call that has its index or id. Some engines give every parallel call the same index, and some
 * give every piece of one call another id, the last of them empty and beside the finish.
 */
function kinOf(found: CallDelta, known: Call): "same" | "another" | "repeat" | "doubtful" | "more" {
  const otherId = found.id !== "" && found.id !== known.givenId;
  const otherName = found.name !== "" && known.name !== "" && found.name !== known.name;
  if (!known.scanner.complete) {
    if (otherName && (otherId || (found.id === "" && !known.scanner.begun))) return "another";
    return "same";
  }
  if (found.arguments.trim() !== "") {
    const another = otherId || (found.id === "" && found.name !== "");
    return another ? "another" : "more";
  }
  if (otherName && (otherId || found.id === "")) return "another";
  // A name that comes after the arguments.
  if (known.name === "" && !otherId) return "same";
  return otherId && found.name !== "" && !known.idVaries ? "doubtful" : "repeat";
}

/** Ids that are passed on: printable, and no longer than any engine's. Others are replaced by one that is made here. */
const usableId = new RegExp(
  String.raw`^[^\p{Cc}\p{Cs}]{1,${limits.upstreamCallIdCharactersMax}}$`,
  "u",
);

function checkedName(name: string): string {
  if (name.length > limits.upstreamCallNameCharactersMax)
    throw malformed("a tool call with a name that is too long");
  return name;
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

function textOf(event: GenerationEvent): string {
  if ("text" in event) return event.text;
  return "arguments" in event ? event.arguments : "";
}

const reasoningStart = { type: "reasoning-start" } as const;
const textStart = { type: "text-start" } as const;
const ends = {
  reasoning: { type: "reasoning-end" },
  text: { type: "text-end" },
  "tool-call": { type: "tool-call-end" },
} as const;

function malformed(what: string): Failure {
  return new Failure("deployment_failed", `The deployment sent ${what}.`);
}
