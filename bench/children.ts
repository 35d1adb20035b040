import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync } from "node:fs";
import { createServer } from "node:net";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

/** What is measured has one core, mock and load generator the other, where the machine lets us choose. */
export const gatewayCore = "1";
export const otherCore = "0";

/** Binds a process that runs, with all its threads, to the core of the load. */
export function pinToOtherCore(processId: number): void {
  if (canPin())
    execFileSync("taskset", ["-acp", otherCore, String(processId)], { stdio: "ignore" });
}

/** Where a program of this folder, or beside it, is. */
export function programPath(name: string): string {
  return fileURLToPath(new URL(name, import.meta.url));
}

const children = new Set<ChildProcess>();

/** Also when the benchmark is broken off: what was started is ended. */
function endWithBenchmark(child: ChildProcess): void {
  if (children.size === 0) {
    process.once("exit", () => {
      for (const one of children) one.kill();
    });
    for (const signal of ["SIGINT", "SIGTERM"] as const)
      process.once(signal, () => process.exit(1));
  }
  children.add(child);
  child.on("exit", () => children.delete(child));
}

/** Starts a program on a core; it ends with the benchmark. */
export function startProgram(
  program: string,
  values: readonly string[],
  options: {
    readonly core: string;
    readonly folder?: string;
    readonly environment?: Readonly<Record<string, string>>;
    /** A file for all that it says; absent: what goes wrong is shown, and the rest can be read. */
    readonly log?: string;
  },
): ChildProcess {
  const [command, rest] = canPin()
    ? ["taskset", ["-c", options.core, program, ...values]]
    : [program, [...values]];
  const log = options.log === undefined ? null : openSync(options.log, "w");
  const child = spawn(command, rest, {
    cwd: options.folder,
    env: { PATH: process.env["PATH"], HOME: process.env["HOME"], ...options.environment },
    stdio: log === null ? ["pipe", "pipe", "inherit"] : ["pipe", log, log],
  });
  if (log !== null) closeSync(log);
  endWithBenchmark(child);
  return child;
}

/** Ends a child and waits for it. */
export async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, "exit");
  child.kill("SIGTERM");
  const late = setTimeout(() => child.kill("SIGKILL"), 10_000);
  await ended;
  clearTimeout(late);
}

const startSeconds = 60;

/**
 * The first line that is wanted, within a minute; what comes after it is read and thrown away, or a full pipe would hold the process.
 */
export async function firstLine(
  child: ChildProcess,
  wanted: (line: string) => boolean,
): Promise<string> {
  if (child.stdout === null) throw new Error("the process has no output");
  const lines = createInterface({ input: child.stdout });
  const ended = once(child, "exit").then(([code]) => {
    throw new Error(`the process ended with ${String(code)}`);
  });
  const found = (async () => {
    for await (const line of lines) if (wanted(line)) return line;
    throw new Error("the process closed its output");
  })();
  const waited = new AbortController();
  const late = sleep(startSeconds * 1_000, null, waited).then(() => {
    throw new Error(`the process has not said within ${String(startSeconds)} s what is waited for`);
  });
  for (const one of [ended, late]) one.catch(() => undefined);
  const line = await Promise.race([found, ended, late]);
  waited.abort();
  child.stdout.resume();
  return line;
}

/** Asks until an answer is 200, for at most so long; a child that ends meanwhile is not waited for. */
export async function answersWell(
  ask: () => Promise<Response>,
  options: { readonly child: ChildProcess; readonly seconds: number },
): Promise<void> {
  let answered = "no answer";
  for (const endMs = performance.now() + options.seconds * 1_000; performance.now() < endMs;) {
    if (options.child.exitCode !== null) throw new Error("it ended at once");
    try {
      const response = await ask();
      answered = `${String(response.status)} ${(await response.text()).slice(0, 300)}`;
      if (response.status === 200) return;
    } catch (error) {
      answered = String(error);
    }
    await sleep(20);
  }
  throw new Error(`it does not answer as it should: ${answered}`);
}

/** A port that nothing listens on at this moment. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  return typeof address === "object" && address !== null ? address.port : 0;
}

let pins: boolean | null = null;

/** Where there is no such program, or no such core, nothing is bound. */
function canPin(): boolean {
  return (pins ??= tryToPin());
}

function tryToPin(): boolean {
  try {
    execFileSync("taskset", ["-c", gatewayCore, "true"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}
