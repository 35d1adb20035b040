import type { Generation, LiveGenerations, LiveNow } from "../api/types.ts";

/** An event of the live stream. */
export type LiveEvent =
  | { readonly name: "now"; readonly data: LiveNow }
  | { readonly name: "generations"; readonly data: LiveGenerations }
  /** Nothing comes: of the service, as it said, or of this browser, which cannot reach it. */
  | { readonly name: "problem"; readonly data: LiveProblem };

/** Why nothing comes. */
export interface LiveProblem {
  readonly status: number;
  readonly code: string;
  readonly detail: string;
}

/** What is live, as far as it has come. */
export interface LiveState {
  readonly now: LiveNow | null;
  /** The running requests, newest first; null: not known yet. */
  readonly rows: readonly Generation[] | null;
  /** How many run, also those that are beyond the rows. */
  readonly running: number;
  /** null: what is shown is of now. */
  readonly problem: LiveProblem | null;
}

/** Before anything has come. */
export const nothingYet: LiveState = { now: null, rows: null, running: 0, problem: null };

/** The state after an event. Rows that did not change stay the same objects. */
export function applyEvent(state: LiveState, event: LiveEvent): LiveState {
  switch (event.name) {
    case "now":
      return { ...state, now: event.data, problem: null };
    case "problem":
      return { ...state, problem: event.data };
    case "generations":
      return {
        ...state,
        rows: mergeRows(event.data.reset ? [] : (state.rows ?? []), event.data),
        running: event.data.running,
        problem: null,
      };
  }
}

function mergeRows(rows: readonly Generation[], event: LiveGenerations): readonly Generation[] {
  const tokens = new Map(Object.entries(event.output_tokens));
  const withTokens = (row: Generation): Generation => {
    const count = tokens.get(row.id);
    return count === undefined ? row : { ...row, output_tokens_so_far: count };
  };
  if (event.data.length === 0 && event.removed.length === 0)
    return tokens.size === 0 ? rows : rows.map(withTokens);
  const changed = new Map(event.data.map((row) => [row.id, row]));
  const removed = new Set(event.removed);
  const kept = rows.flatMap((row) => {
    if (removed.has(row.id)) return [];
    const newer = changed.get(row.id);
    if (newer === undefined) return [withTokens(row)];
    changed.delete(row.id);
    return [withTokens({ ...newer, output_tokens_so_far: row.output_tokens_so_far })];
  });
  return [...[...changed.values()].map(withTokens), ...kept].toSorted(
    (one, other) => compare(other.admitted_at, one.admitted_at) || compare(other.id, one.id),
  );
}

function compare(one: string, other: string): number {
  if (one === other) return 0;
  return one < other ? -1 : 1;
}
