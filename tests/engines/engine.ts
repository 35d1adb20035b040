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

/** The engines that the laws know. */
export type EngineName = "llama-cpp" | "vllm" | "ollama" | "smg";

/** Where an engine listens, and where the one behind it does. */
export interface EnginePlace {
  readonly port: number;
  /** A second one, for engines that insist on telling their counts elsewhere. */
  readonly sparePort: number;
  readonly originBehind: string;
}

/** A real engine, installed. */
export interface Engine {
  readonly name: EngineName;
  /** As its own server says it. */
  readonly version: string;
  /** The engine that it passes requests on to, started before it and killed with it. */
  readonly behind?: Engine;
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
  /** The route that answers 200 once it can be asked. */
  readonly healthPath: string;
  /** The name under which it lists a model. */
  idOf(alias: string): string;
  command(at: EnginePlace, start: EngineStart): Command;
  environment(at: EnginePlace, start: EngineStart): Readonly<Record<string, string>>;
  /** Requests under way, from one of its own routes, or from what it wrote since it was launched. */
  countRunning(origin: string, log: string): Promise<number>;
  /** Has it load its model, where it does not by itself. */
  load?(origin: string, alias: string): Promise<void>;
}

/** An engine's process on a port of its own, which it keeps over restarts. */
export interface EngineProcess extends AsyncDisposable {
  readonly engine: Engine;
  readonly origin: string;
  /** The one that it passes requests on to; null: it answers itself. */
  readonly behind: EngineProcess | null;
  /** Resolves when it answers. */
  start(change?: Partial<EngineStart>): Promise<void>;
  /** Starts it and does not wait. */
  launch(change?: Partial<EngineStart>): void;
  ready(): Promise<void>;
  kill(): Promise<void>;
  running(): Promise<number>;
  /** What it wrote since it was launched. */
  readonly log: string;
}

/** A free port for an engine that is not started yet. */
export async function openEngineProcess(
  engine: Engine,
  start: Partial<EngineStart> = {},
): Promise<EngineProcess> {
  const port = await freePort();
  const behind = engine.behind === undefined ? null : await openEngineProcess(engine.behind, start);
  const at = { port, sparePort: await freePort(), originBehind: behind?.origin ?? "" };
  const origin = `http://127.0.0.1:${String(port)}`;
  let now: EngineStart = { template: null, contextTokens: 2_048, alias: "smol", ...start };
  let child: ChildProcess | null = null;
  let log = "";

  function launch(change: Partial<EngineStart> = {}): void {
    now = { ...now, ...change };
    behind?.launch(change);
    const [program, ...words] = engine.command(at, now);
    const env = { ...process.env, ...engine.environment(at, now) };
    log = "";
    // A group of its own: vLLM has children, which are killed with it.
    const started = spawn(program, words, {
      env,
      stdio: ["ignore", "pipe", "pipe"],
      detached: true,
    });
    for (const stream of [started.stdout, started.stderr])
      stream.on("data", (bytes: Buffer) => (log += bytes.toString("utf8")));
    child = started;
  }

  function isAlive(): boolean {
    return child !== null && child.exitCode === null && child.signalCode === null;
  }

  async function ready(): Promise<void> {
    const until = performance.now() + engine.loadMs;
    await behind?.ready();
    while (performance.now() < until && isAlive()) {
      if (await answers(`${origin}${engine.healthPath}`)) {
        await engine.load?.(origin, now.alias);
        return;
      }
      await sleep(50);
    }
    throw new Error(`${engine.name} does not answer:\n${log.slice(-4_000)}`);
  }

  async function kill(): Promise<void> {
    await behind?.kill();
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
    behind,
    launch,
    ready,
    kill,
    async start(change) {
      launch(change);
      await ready();
    },
    running: () => behind?.running() ?? engine.countRunning(origin, log),
    get log() {
      return log;
    },
    [Symbol.asyncDispose]: kill,
  };
}

async function answers(url: string): Promise<boolean> {
  try {
    return (await fetch(url)).ok;
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
