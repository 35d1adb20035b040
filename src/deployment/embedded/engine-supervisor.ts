import {
  startEngineProcess,
  type EngineEvent,
  type EngineExit,
  type EngineProcess,
} from "./engine-process.ts";
import type { Environment } from "./engine-settings.ts";

/** Keeps one engine alive. */
export interface EngineSupervisor {
  readonly processId: number | null;
  /** For an engine that does not answer any more. */
  kill(): void;
  close(): Promise<void>;
}

/** What is called for the engine, and the clock. */
export interface EngineSupervisorListener {
  readonly event: (event: EngineEvent) => void;
  /** `loadFailure`: why the model did not load; null: the process ended by itself, and what was running is lost. */
  readonly exited: (exit: EngineExit, loadFailure: string | null, restartMs: number) => void;
  readonly now: () => number;
}

const firstRestartMs = 250;
const restartMsMax = 30_000;
/** An engine that served this long was sound: its end counts as the first. */
const soundMs = 10_000;

/** Starts an engine, and another when it ends: the first at once, then ever later. */
export function openEngineSupervisor(
  start: { readonly args: readonly string[]; readonly environment: Environment },
  listener: EngineSupervisorListener,
): EngineSupervisor {
  let engine: EngineProcess | null = null;
  let loadFailure: string | null = null;
  let loadedAtMs: number | null = null;
  let failures = 0;
  let timer: NodeJS.Timeout | null = null;
  let closed = false;

  function open(): void {
    timer = null;
    loadFailure = null;
    loadedAtMs = null;
    engine = startEngineProcess(start.args, start.environment, { event: onEvent, exited });
  }

  function onEvent(event: EngineEvent): void {
    if (closed) return;
    if (event.event === "model loaded") loadedAtMs = listener.now();
    if (event.event === "model not loaded") loadFailure = String(event["reason"]);
    else listener.event(event);
  }

  function exited(exit: EngineExit): void {
    const served = loadedAtMs !== null && listener.now() - loadedAtMs >= soundMs;
    engine = null;
    if (closed) return;
    failures = served ? 1 : failures + 1;
    const restartMs = failures === 1 && loadFailure === null ? 0 : backOffMs(failures);
    timer = setTimeout(open, restartMs);
    listener.exited(exit, loadFailure, restartMs);
  }

  open();
  return {
    get processId() {
      return engine?.processId ?? null;
    },
    kill: () => engine?.kill(),
    async close() {
      closed = true;
      if (timer !== null) clearTimeout(timer);
      await engine?.close();
    },
  };
}

function backOffMs(failures: number): number {
  return Math.min(restartMsMax, firstRestartMs * 2 ** (failures - 1));
}
