import { startEngineChild, type EngineChild, type EngineExit } from "./engine-child.ts";
import type { EngineFacts, EngineOrder, EngineReport, LoadOrder } from "./engine-messages.ts";

/** Keeps one child alive. */
export interface EngineSupervisor {
  /** Set while the child has the model loaded. */
  readonly facts: EngineFacts | null;
  readonly processId: number | null;
  /** False: no child that could take the order. */
  send(order: EngineOrder): boolean;
  /** For a child that does not answer any more. */
  kill(): void;
  close(): Promise<void>;
}

/** Who hears of the child. */
export interface EngineSupervisorListener {
  readonly loaded: (facts: EngineFacts) => void;
  readonly loadFailed: (message: string, restartMs: number) => void;
  /** What was running is lost. */
  readonly exited: (exit: EngineExit, restartMs: number) => void;
  readonly report: (report: EngineReport) => void;
  readonly now: () => number;
}

const firstRestartMs = 250;
const restartMsMax = 30_000;
/** A child that served this long was sound: its end counts as the first. */
const soundMs = 10_000;

/** Starts a child, has it load the model, and starts another when it ends: the first at once, then ever later. */
export function openEngineSupervisor(
  order: LoadOrder,
  listener: EngineSupervisorListener,
): EngineSupervisor {
  let child: EngineChild | null = null;
  let facts: EngineFacts | null = null;
  let loadFailure: string | null = null;
  let loadedAtMs = 0;
  let failures = 0;
  let timer: NodeJS.Timeout | null = null;
  let closed = false;

  function open(): void {
    timer = null;
    loadFailure = null;
    const opened = startEngineChild({ report, exited });
    child = opened;
    opened.send(order);
  }

  function report(message: EngineReport): void {
    if (message.type === "loaded") {
      facts = message.facts;
      loadedAtMs = listener.now();
      listener.loaded(message.facts);
    } else if (message.type === "load-failed") {
      loadFailure = message.message;
      child?.kill();
    } else {
      listener.report(message);
    }
  }

  function exited(exit: EngineExit): void {
    const served = facts !== null && listener.now() - loadedAtMs >= soundMs;
    child = null;
    facts = null;
    if (closed) return;
    failures = served ? 1 : failures + 1;
    const restartMs = failures === 1 && loadFailure === null ? 0 : backOffMs(failures);
    timer = setTimeout(open, restartMs);
    if (loadFailure === null) listener.exited(exit, restartMs);
    else listener.loadFailed(loadFailure, restartMs);
  }

  open();
  return {
    get facts() {
      return facts;
    },
    get processId() {
      return child?.processId ?? null;
    },
    send(message) {
      if (child === null || facts === null) return false;
      child.send(message);
      return true;
    },
    kill: () => child?.kill(),
    async close() {
      closed = true;
      if (timer !== null) clearTimeout(timer);
      await child?.close();
    },
  };
}

function backOffMs(failures: number): number {
  return Math.min(restartMsMax, firstRestartMs * 2 ** (failures - 1));
}
