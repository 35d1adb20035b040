import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { Command } from "./install/install-folder.ts";

/** How an engine is started. */
export interface EngineStart {
  /** Path of a chat template; null: the model's own. */
  readonly template: string | null;
  /** Tokens of context of each of the two slots. */
  readonly contextTokens: number;
  readonly alias: string;
}

/** A real engine, installed. */
export interface Engine {
  readonly name: "llama-cpp" | "vllm";
  /** As its own server says it. */
  readonly version: string;
  /** Chat templates that make its model call a tool, call several times, and think; null: there is none for it. */
  readonly templates: {
    readonly calls: string;
    readonly several: string | null;
    readonly thinks: string | null;
  };
  /** Whether its answers name the stop sequence that ended them. */
  readonly namesStopSequence: boolean;
  /** How long it may take to load, with everything else that the machine does. */
  readonly loadMs: number;
  command(port: number, start: EngineStart): Command;
  readonly environment: Readonly<Record<string, string>>;
  /** Requests under way, from one of its own routes. */
  countRunning(origin: string): Promise<number>;
}

/** An engine's process on a port of its own, which it keeps over restarts. */
export interface EngineProcess extends AsyncDisposable {
  readonly engine: Engine;
  readonly origin: string;
  /** Resolves when it answers. */
  start(change?: Partial<EngineStart>): Promise<void>;
  /** Starts it and does not wait. */
  launch(change?: Partial<EngineStart>): void;
  ready(): Promise<void>;
  kill(): Promise<void>;
  running(): Promise<number>;
  /** What it wrote last, for the message of a failed test. */
  readonly log: string;
}

/** A free port for an engine that is not started yet. */
export async function openEngineProcess(
  engine: Engine,
  start: Partial<EngineStart> = {},
): Promise<EngineProcess> {
  const port = await freePort();
  const origin = `http://127.0.0.1:${String(port)}`;
  let now: EngineStart = { template: null, contextTokens: 2_048, alias: "smol", ...start };
  let child: ChildProcess | null = null;
  let log = "";

  function launch(change: Partial<EngineStart> = {}): void {
    now = { ...now, ...change };
    const [program, ...words] = engine.command(port, now);
    const env = { ...process.env, ...engine.environment };
    // A group of its own: vLLM has children, which are killed with it.
    const started = spawn(program, words, {
      env,
      stdio: ["ignore", "pipe", "pipe"],
      detached: true,
    });
    for (const stream of [started.stdout, started.stderr])
      stream.on("data", (bytes: Buffer) => (log = (log + bytes.toString("utf8")).slice(-20_000)));
    child = started;
  }

  function isAlive(): boolean {
    return child !== null && child.exitCode === null && child.signalCode === null;
  }

  async function ready(): Promise<void> {
    const until = performance.now() + engine.loadMs;
    while (performance.now() < until && isAlive()) {
      if (await answers(origin)) return;
      await sleep(50);
    }
    throw new Error(`${engine.name} does not answer:\n${log.slice(-4_000)}`);
  }

  async function kill(): Promise<void> {
    const ended = child;
    child = null;
    if (ended?.pid === undefined || ended.exitCode !== null || ended.signalCode !== null) return;
    const exited = once(ended, "exit");
    process.kill(-ended.pid, "SIGKILL");
    await exited;
  }

  return {
    engine,
    origin,
    launch,
    ready,
    kill,
    async start(change) {
      launch(change);
      await ready();
    },
    running: () => engine.countRunning(origin),
    get log() {
      return log;
    },
    [Symbol.asyncDispose]: kill,
  };
}

async function answers(origin: string): Promise<boolean> {
  try {
    return (await fetch(`${origin}/health`)).ok;
  } catch {
    return false;
  }
}

async function freePort(): Promise<number> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  if (address === null || typeof address === "string") throw new Error("no port");
  return address.port;
}
