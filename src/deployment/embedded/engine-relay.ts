import { newEngineKey, type SharedEngine } from "./embedded-deployment.ts";
import { openEngineSupervisor, type EngineSupervisorListener } from "./engine-supervisor.ts";

/** What happened to the engine: a line of its log, or its end. */
export type EngineNote =
  | { readonly type: "event"; readonly given: Parameters<EngineSupervisorListener["event"]> }
  | { readonly type: "exited"; readonly given: Parameters<EngineSupervisorListener["exited"]> };

/** The engine of a service of several processes, in the one that starts and watches it. */
export interface EngineRelay extends SharedEngine {
  /** What happened since the engine was started last, for a process that begins to follow it now. */
  readonly notes: readonly EngineNote[];
}

/** Starts and watches the engine, and tells what happens to it. */
export function openEngineRelay(tell: (note: EngineNote) => void): EngineRelay {
  let notes: EngineNote[] = [];
  const add = (note: EngineNote): void => {
    // Of a download only the latest progress counts.
    notes = [...notes.filter((one) => !isProgress(one)), note];
    tell(note);
  };
  return {
    get notes() {
      return notes;
    },
    apiKey: newEngineKey(),
    supervise: (start, listener) =>
      openEngineSupervisor(start, {
        now: listener.now,
        event(...given) {
          add({ type: "event", given });
          listener.event(...given);
        },
        exited(...given) {
          notes = [];
          add({ type: "exited", given });
          listener.exited(...given);
        },
      }),
  };
}

function isProgress(note: EngineNote): boolean {
  return note.type === "event" && note.given[0].event === "weights progress";
}

/** The engine that another process starts and watches, whose notes come by `follow`, the earlier ones first. */
export function followEngine(
  apiKey: string,
  follow: (listener: (note: EngineNote) => void) => void,
): SharedEngine {
  return {
    apiKey,
    followed: true,
    supervise(_start, listener) {
      // Not before the caller has what this returns.
      queueMicrotask(() =>
        follow((note) => {
          if (note.type === "event") listener.event(...note.given);
          else listener.exited(...note.given);
        }),
      );
      return { processId: null, kill() {}, close: () => Promise.resolve() };
    },
  };
}
