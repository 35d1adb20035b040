import { spawn } from "node:child_process";
import { constants, setPriority } from "node:os";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { Environment } from "./engine-settings.ts";

/** One line of the engine's log. */
export type EngineEvent = { readonly event: string } & Readonly<Record<string, unknown>>;

/** One process that runs a model. */
export interface EngineProcess {
  readonly processId: number | null;
  /** Ends it at once. */
  kill(): void;
  /** Closes its standard input, on which it leaves, and waits until it has. */
  close(): Promise<void>;
}

/** How a process ended. `output`: the last lines of its standard error. */
export interface EngineExit {
  readonly code: number | null;
  readonly signal: string | null;
  readonly output: string;
}

/** What is called for a process: `event` for each line of its log, `exited` once, last. */
export interface EngineProcessListener {
  readonly event: (event: EngineEvent) => void;
  readonly exited: (exit: EngineExit) => void;
}

const outputCharactersMax = 2_000;
const closeMs = 2_000;

/**
 * Starts the engine's program in a process group of its own, as Ctrl-C in a terminal reaches every process of the
 * service's group: the answers that are drained then still need the engine.
 */
export function startEngineProcess(
  args: readonly string[],
  environment: Environment,
  listener: EngineProcessListener,
): EngineProcess {
  const child = spawn(process.execPath, [engineProgram(), ...args], {
    detached: true,
    env: environment,
    stdio: ["pipe", "pipe", "pipe"],
    windowsHide: true,
  });
  lowerPriority(child.pid);
  let output = "";
  const keep = (text: string): void => {
    output = (output + text).slice(-outputCharactersMax);
  };
  child.stderr.on("data", (chunk: Buffer) => keep(chunk.toString()));
  child.stdin.on("error", () => undefined);
  createInterface({ input: child.stdout }).on("line", (line) => {
    const event = readEvent(line);
    if (event !== null) listener.event(event);
  });
  const left = Promise.withResolvers<void>();
  // "close" comes after the last line, "error" without a process.
  child.once("error", (error) => {
    keep(error.message);
    if (child.pid === undefined) leave(null, null);
  });
  child.once("close", leave);
  function leave(code: number | null, signal: string | null): void {
    left.resolve();
    listener.exited({ code, signal, output: output.trim() });
  }
  return {
    processId: child.pid ?? null,
    kill: () => void child.kill("SIGKILL"),
    async close() {
      child.stdin.end();
      const timer = setTimeout(() => child.kill("SIGKILL"), closeMs);
      await left.promise;
      clearTimeout(timer);
    },
  };
}

/** Path of the engine's program, which lies beside the service in a clone and in the published package. */
export function engineProgram(): string {
  const program = import.meta.url.endsWith(".ts") ? "src/main.ts" : "dist/main.js";
  return fileURLToPath(new URL(`../../../engine/${program}`, import.meta.url));
}

/** Reads a line of the engine's log; null: the library wrote it, and it is no event. */
export function readEvent(line: string): EngineEvent | null {
  try {
    const value: unknown = JSON.parse(line);
    const isEvent = typeof value === "object" && value !== null && "event" in value;
    return isEvent && typeof value.event === "string" ? (value as EngineEvent) : null;
  } catch {
    return null;
  }
}

/** Lowers the priority from here and at once, since a thread keeps the one that it was made with. */
function lowerPriority(processId: number | undefined): void {
  if (processId === undefined) return;
  try {
    setPriority(processId, constants.priority.PRIORITY_BELOW_NORMAL);
  } catch {
    // The process may have ended already, or the system forbids it: the engine then competes with the service for the CPU.
  }
}
