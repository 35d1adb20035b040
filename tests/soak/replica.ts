import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const program = fileURLToPath(new URL("../../src/cli/tributary.cjs", import.meta.url));

/** One replica of the service; the process behind it may be killed and started again. */
export interface Replica extends AsyncDisposable {
  readonly url: string;
  /** Of the process that was started last. */
  readonly pid: number;
  /** Counts the times that something was done to it; a request during which it changes is uncertain. */
  readonly disturbances: number;
  signal(name: NodeJS.Signals): void;
  kill(): Promise<void>;
  start(): Promise<void>;
  /** SIGTERM; resolves with the exit code. */
  stop(): Promise<number | null>;
}

/** Makes a replica with these variables only; `start` runs it. `onLine` hears each line of its log. */
export function makeReplica(
  folder: string,
  environment: Readonly<Record<string, string>>,
  onLine: (line: string) => void = () => undefined,
): Replica {
  let child: ChildProcess | null = null;
  let url = "";
  let disturbances = 0;
  return {
    get url() {
      return url;
    },
    get pid() {
      return child?.pid ?? 0;
    },
    get disturbances() {
      return disturbances;
    },
    signal(name) {
      disturbances += 1;
      child?.kill(name);
    },
    async kill() {
      disturbances += 1;
      if (child === null) return;
      const ended = once(child, "exit");
      child.kill("SIGKILL");
      await ended;
    },
    async start() {
      const started = spawn(process.execPath, [program, "serve", "--json"], {
        cwd: folder,
        env: { PATH: process.env["PATH"], HOME: folder, ...environment },
        stdio: ["ignore", "pipe", "inherit"],
      });
      child = started;
      const lines = createInterface({ input: started.stdout });
      url = await new Promise<string>((resolve, reject) => {
        lines.on("line", (line) => {
          onLine(line);
          const found = /"url":"(http:[^"]+)"/.exec(line)?.[1];
          if (found !== undefined && line.includes('"listening"')) resolve(found);
        });
        started.once("exit", (code) => reject(new Error(`a replica ended with ${String(code)}`)));
      });
      disturbances += 1;
    },
    async stop() {
      if (child === null || child.exitCode !== null) return child?.exitCode ?? null;
      const ended = once(child, "exit");
      child.kill("SIGTERM");
      const [code] = (await ended) as [number | null];
      return code;
    },
    async [Symbol.asyncDispose]() {
      if (child !== null && child.exitCode === null && child.signalCode === null) {
        const ended = once(child, "exit");
        child.kill("SIGKILL");
        await ended;
      }
    },
  };
}
