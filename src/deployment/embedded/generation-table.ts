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

interface Row {
  readonly id: number;
  readonly sink: GenerationSink;
  paused: boolean;
  textOpen: boolean;
  /** Newest usage, and whether the sink was told. */
  usage: Usage | null;
  told: boolean;
}

/** What one report said of one generation: its pieces joined, so that the sink gets one batch. */
interface Gathered {
  accepted: boolean;
  text: string;
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
      const row: Row = { id, sink, paused: false, textOpen: false, usage: null, told: true };
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
        if (row.textOpen && !row.told) row.sink.events([], row.usage);
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
    const gathered = all.get(item.id) ?? { accepted: false, text: "", ending: null };
    all.set(item.id, gathered);
    if (item.type === "accepted") gathered.accepted = true;
    if (item.type === "text") gathered.text += item.text;
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
  { accepted, ending, text }: Gathered,
  end: (row: Row, ending: Ending) => void,
): void {
  if (accepted) row.sink.accepted();
  const batch: GenerationEvent[] = [];
  if (text !== "") {
    if (!row.textOpen) batch.push({ type: "text-start" });
    row.textOpen = true;
    batch.push({ type: "text-delta", text });
  }
  if (row.textOpen && ending?.type === "finished") batch.push({ type: "text-end" });
  if (batch.length > 0) {
    row.told = true;
    row.sink.events(batch, row.usage);
  }
  if (ending !== null) end(row, ending);
}
