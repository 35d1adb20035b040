import type {
  FinishReason,
  GenerationEvent,
  Usage,
} from "../../src/conversation/generation-event.ts";

/** What a stream turned out to say. Exactly one of `finish` and `failure` is there. */
export interface Reading {
  readonly events: readonly GenerationEvent[];
  readonly finish: ReadFinish | null;
  /** The code and message that the client sees. */
  readonly failure: { readonly code: string; readonly message: string } | null;
  readonly comments: number;
}

/** How a stream ended. `usage`: null where the stream did not say. */
export interface ReadFinish {
  readonly reason: FinishReason;
  readonly stopSequence: string | null;
  readonly usage: Usage | null;
}

/** A JSON object. */
export type JsonRecord = Readonly<Record<string, unknown>>;

/** Throws when a stream says what it must not say. */
export function ensure(holds: boolean, otherwise: string): asserts holds {
  if (!holds) throw new Error(otherwise);
}

/** JSON text of an object. */
export function parseRecord(text: string): JsonRecord {
  return record(JSON.parse(text), text);
}

/** A value that has to be a JSON object. */
export function record(value: unknown, where: string): JsonRecord {
  ensure(typeof value === "object" && value !== null && !Array.isArray(value), `${where}: object`);
  return { ...value };
}

/** A value that has to be a list. */
export function list(value: unknown, where: string): readonly unknown[] {
  ensure(Array.isArray(value), `${where}: list`);
  return value;
}

/** A value that has to be text. */
export function text(value: unknown, where: string): string {
  ensure(typeof value === "string", `${where}: text, not ${JSON.stringify(value)}`);
  return value;
}

/** A value that has to be a count. */
export function count(value: unknown, where: string): number {
  ensure(typeof value === "number" && Number.isSafeInteger(value) && value >= 0, `${where}: count`);
  return value;
}

/** Collects events, and starts and ends parts for formats that do not say where a part ends. */
export function openEventWriter(): {
  readonly events: GenerationEvent[];
  say(kind: "text" | "reasoning", piece: string): void;
  close(): void;
} {
  const events: GenerationEvent[] = [];
  let open: "text" | "reasoning" | null = null;

  function close(): void {
    if (open !== null) events.push({ type: `${open}-end` });
    open = null;
  }

  return {
    events,
    close,
    say(kind, piece) {
      if (open !== kind) {
        close();
        events.push({ type: `${kind}-start` });
        open = kind;
      }
      events.push({ type: `${kind}-delta`, text: piece });
    },
  };
}
