import type { GenerationEvent, Usage } from "../../conversation/generation-event.ts";
import { Failure, failureFromData } from "../../failure.ts";
import type { Ending, GenerationSink, RunningGeneration } from "../deployment.ts";
import type { EngineNews, EngineOrder } from "./engine-messages.ts";

/** The generations that the child works on. */
export interface GenerationTable {
  start(order: GenerationOrder, sink: GenerationSink): RunningGeneration;
  take(news: readonly EngineNews[]): void;
  failAll(failure: Failure): void;
  close(): void;
}

/** What one generation is to do. */
export interface GenerationOrder {
  readonly prompt: Uint8Array;
  readonly outputTokensMax: number;
}

/** What the table needs from outside. */
export interface GenerationTableParts {
  /** False: there is no child that could take it. */
  readonly send: (order: EngineOrder) => boolean;
  /** The child owes news and has given none for `hangMs`. */
  readonly hung: () => void;
  readonly hangMs: number;
  readonly now: () => number;
}

type PartKind = "reasoning" | "text" | "tool-call";

interface Row {
  readonly id: number;
  readonly sink: GenerationSink;
  paused: boolean;
  open: PartKind | null;
  /** Newest usage, and whether the sink was told. */
  usage: Usage | null;
  told: boolean;
}

type Said = Extract<EngineNews, { type: "text" | "call" | "arguments" }>;

/** What one report said of one generation, so that the sink gets one batch. */
interface Gathered {
  accepted: boolean;
  readonly said: Said[];
  ending: Ending | null;
}

/** Keeps sinks by number and turns what the child reports into their calls. */
export function openGenerationTable(parts: GenerationTableParts): GenerationTable {
  const rows = new Map<number, Row>();
  let nextId = 1;
  let heardAtMs = parts.now();
  const watch = setInterval(
    () => {
      const owed = [...rows.values()].some((row) => !row.paused);
      if (!owed) heardAtMs = parts.now();
      else if (parts.now() - heardAtMs > parts.hangMs) parts.hung();
    },
    Math.max(10, parts.hangMs / 4),
  ).unref();

  function end(row: Row, ending: Ending): void {
    if (rows.delete(row.id)) row.sink.end(ending);
  }

  return {
    start({ outputTokensMax, prompt }, sink) {
      const id = nextId;
      nextId += 1;
      const row: Row = { id, sink, paused: false, open: null, usage: null, told: true };
      if (rows.size === 0) heardAtMs = parts.now();
      rows.set(id, row);
      if (!parts.send({ type: "generate", id, prompt, outputTokensMax })) {
        queueMicrotask(() => end(row, { type: "failed", failure: lostFailure() }));
      }
      return openSwitches(row, { send: parts.send, end });
    },
    take(news) {
      heardAtMs = parts.now();
      for (const [id, gathered] of gather(news, rows)) {
        const row = rows.get(id);
        if (row !== undefined) tell(row, gathered, end);
      }
    },
    failAll(failure) {
      const lost = [...rows.values()];
      for (const row of lost) end(row, { type: "failed", failure });
    },
    close: () => clearInterval(watch),
  };
}

function lostFailure(): Failure {
  return new Failure("overloaded", "The model is being loaded. Try again in a few seconds.", {
    retryAfterSeconds: 5,
  });
}

interface SwitchParts {
  readonly send: (order: EngineOrder) => boolean;
  readonly end: (row: Row, ending: Ending) => void;
}

function openSwitches(row: Row, { end, send }: SwitchParts): RunningGeneration {
  const turn = (type: "pause" | "resume"): void => {
    row.paused = type === "pause";
    send({ type, id: row.id });
  };
  return {
    pause: () => turn("pause"),
    resume: () => turn("resume"),
    cancel() {
      send({ type: "cancel", id: row.id });
      // Not from inside the call, and without waiting for a child that may be busy or gone.
      queueMicrotask(() => {
        // Tokens whose text was still held back were made as well.
        if (row.open !== null && !row.told) row.sink.events([], row.usage);
        row.told = true;
        end(row, { type: "cancelled" });
      });
    },
  };
}

function gather(
  news: readonly EngineNews[],
  rows: ReadonlyMap<number, Row>,
): Map<number, Gathered> {
  const all = new Map<number, Gathered>();
  for (const item of news) {
    const row = rows.get(item.id);
    if (row === undefined) continue;
    const gathered = all.get(item.id) ?? { accepted: false, said: [], ending: null };
    all.set(item.id, gathered);
    if (item.type === "accepted") gathered.accepted = true;
    if (item.type === "text" || item.type === "call" || item.type === "arguments") {
      gathered.said.push(item);
    }
    if (item.type === "failed") {
      gathered.ending = { type: "failed", failure: failureFromData(item.failure) };
    }
    if (item.type === "finished") {
      const { reason, stopSequence, usage } = item;
      gathered.ending = { type: "finished", finish: { reason, stopSequence }, usage };
    }
    if ("usage" in item) {
      row.usage = item.usage;
      row.told = false;
    }
  }
  return all;
}

function tell(
  row: Row,
  { accepted, ending, said }: Gathered,
  end: (row: Row, ending: Ending) => void,
): void {
  if (accepted) row.sink.accepted();
  const batch = buildEvents(row, said);
  if (ending?.type === "finished") switchPart(row, null, batch);
  if (batch.length > 0) {
    row.told = true;
    row.sink.events(batch, row.usage);
  }
  if (ending !== null) end(row, ending);
}

/** Pieces of one kind that came together are one delta. */
function buildEvents(row: Row, said: readonly Said[]): GenerationEvent[] {
  const batch: GenerationEvent[] = [];
  let text = "";
  const flush = (): void => {
    if (text !== "" && row.open !== null) batch.push(delta(row.open, text));
    text = "";
  };
  for (const item of said) {
    const kind = item.type === "text" ? item.kind : "tool-call";
    if (item.type === "call" || kind !== row.open) {
      flush();
      switchPart(row, kind, batch);
      if (kind !== "tool-call") batch.push(kind === "text" ? textStart : reasoningStart);
    }
    if (item.type !== "call") text += item.text;
    else batch.push({ type: "tool-call-start", id: item.callId, name: item.name });
  }
  flush();
  return batch;
}

function switchPart(row: Row, kind: PartKind | null, batch: GenerationEvent[]): void {
  if (row.open !== null) batch.push(ends[row.open]);
  row.open = kind;
}

const textStart = { type: "text-start" } as const;
const reasoningStart = { type: "reasoning-start" } as const;
const ends = {
  reasoning: { type: "reasoning-end" },
  text: { type: "text-end" },
  "tool-call": { type: "tool-call-end" },
} as const;

function delta(kind: PartKind, text: string): GenerationEvent {
  if (kind === "text") return { type: "text-delta", text };
  if (kind === "reasoning") return { type: "reasoning-delta", text };
  return { type: "tool-call-delta", arguments: text };
}
