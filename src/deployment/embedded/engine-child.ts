import { fork } from "node:child_process";
import { constants, setPriority } from "node:os";
import { fileURLToPath } from "node:url";
import type { EngineOrder, EngineReport } from "./engine-messages.ts";

/** One process that runs the model. */
export interface EngineChild {
  readonly processId: number | null;
  send(order: EngineOrder): void;
  /** Ends it at once. */
  kill(): void;
  /** Closes its channel, on which it leaves, and waits until it has. */
  close(): Promise<void>;
}

/** How a process ended. `output`: the last lines that it wrote, for the log. */
export interface EngineExit {
  readonly code: number | null;
  readonly signal: string | null;
  readonly output: string;
}

/** Who hears of a child. `exited` comes once, last. */
export interface EngineChildListener {
  readonly report: (report: EngineReport) => void;
  readonly exited: (exit: EngineExit) => void;
}

const outputCharactersMax = 2_000;
const closeMs = 2_000;

/**
 * Starts a child of its own process group, as Ctrl-C in a terminal reaches every process of ours: the answers that
 * are drained then still need it.
 */
export function startEngineChild(listener: EngineChildListener): EngineChild {
  const extension = import.meta.url.endsWith(".ts") ? "ts" : "js";
  const entry = new URL(`./engine-process.${extension}`, import.meta.url);
  const child = fork(fileURLToPath(entry), [], {
    detached: true,
    execArgv: [],
    serialization: "advanced",
    stdio: ["ignore", "pipe", "pipe", "ipc"],
    windowsHide: true,
  });
  lowerPriority(child.pid);
  let output = "";
  const keep = (chunk: Buffer): void => {
    output = (output + chunk.toString()).slice(-outputCharactersMax);
  };
  child.stdout?.on("data", keep);
  child.stderr?.on("data", keep);
  let gone = false;
  const left = Promise.withResolvers<void>();
  const leave = (code: number | null, signal: string | null): void => {
    if (gone) return;
    gone = true;
    left.resolve();
    listener.exited({ code, signal, output: output.trim() });
  };
  child.on("message", (message) => listener.report(message as EngineReport));
  child.on("exit", leave);
  child.on("error", (error) => {
    keep(Buffer.from(error.message));
    // An error of the channel comes before the exit; without a process there is none.
    if (child.pid === undefined) leave(null, null);
  });
  return {
    processId: child.pid ?? null,
    send(order) {
      // What cannot be sent is told by the exit that follows.
      if (child.connected) child.send(order, () => undefined);
    },
    kill: () => void child.kill("SIGKILL"),
    async close() {
      if (child.connected) child.disconnect();
      const timer = setTimeout(() => child.kill("SIGKILL"), closeMs);
      await left.promise;
      clearTimeout(timer);
    },
  };
}

/** From outside and at once, as threads take the priority that holds when they are made. */
function lowerPriority(processId: number | undefined): void {
  if (processId === undefined) return;
  try {
    setPriority(processId, constants.priority.PRIORITY_BELOW_NORMAL);
  } catch {
    // It may have ended already, or the system forbids it: it then only competes harder.
  }
}
