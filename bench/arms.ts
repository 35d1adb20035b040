import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

/** One way from the load generator to the mock deployment. */
export interface Arm extends AsyncDisposable {
  readonly name: string;
  /** Of the chat completions endpoint. */
  readonly url: string;
  readonly key: string;
  /** Processes whose CPU and memory count; none for the direct connection. */
  readonly processIds: () => readonly number[];
}

/** The gateway's core; mock and load generator have the other, where the machine lets us choose. */
export const gatewayCore = "1";
const otherCore = "0";
const canPin = canPinToCores();

/** Starts the mock deployment; resolves with its origin. */
export async function startMock(): Promise<{ readonly origin: string } & AsyncDisposable> {
  const child = start(process.execPath, [path("mock-deployment.ts")], { core: otherCore });
  const port = await firstLine(child, () => true);
  return { origin: `http://127.0.0.1:${port}`, [Symbol.asyncDispose]: () => stop(child) };
}

/** The connection without anything in between. */
export function openDirect(origin: string): Arm {
  return {
    name: "direct",
    url: `${origin}/v1/chat/completions`,
    key: "",
    processIds: () => [],
    [Symbol.asyncDispose]: async () => {},
  };
}

/** nginx that passes bytes on; null where it is not installed. */
export async function openNginx(origin: string, folder: string): Promise<Arm | null> {
  const program = ["/usr/sbin/nginx", "/usr/local/sbin/nginx", "/opt/homebrew/bin/nginx"].find(
    (candidate) => existsSync(candidate),
  );
  if (program === undefined) return null;
  const port = await freePort();
  const settings = join(folder, "nginx.conf");
  await writeFile(settings, nginxSettings(origin, port, folder));
  const child = start(program, ["-p", folder, "-c", settings, "-g", "daemon off;"], {
    core: gatewayCore,
  });
  const url = `http://127.0.0.1:${String(port)}`;
  await answers(url);
  return {
    name: "nginx",
    url: `${url}/v1/chat/completions`,
    key: "",
    processIds: () => [child.pid ?? 0, ...childrenOf(child.pid ?? 0)],
    [Symbol.asyncDispose]: () => stop(child),
  };
}

/** Tributary with everything on: authorization, admission, metering, settlement, logs, metrics. */
export async function openTributary(
  origin: string,
  folder: string,
  settings: {
    readonly synchronous: "full" | "normal";
    readonly environment?: Readonly<Record<string, string>>;
    /** Not bound to a core: what is measured is what its threads do to each other. */
    readonly everyCore?: boolean;
  },
): Promise<Arm & { readonly coldStartMs: number }> {
  const { synchronous } = settings;
  const startMs = performance.now();
  const child = start(process.execPath, [path("../src/cli/main.ts"), "serve"], {
    core: settings.everyCore === true ? `${otherCore},${gatewayCore}` : gatewayCore,
    folder,
    environment: {
      TRIBUTARY_PORT: "0",
      TRIBUTARY_DATA_DIR: join(folder, `data-${synchronous}`),
      TRIBUTARY_DEPLOYMENT_URL: origin,
      TRIBUTARY_STARTING_CREDIT: "1000000",
      TRIBUTARY_SQLITE_SYNCHRONOUS: synchronous,
      TRIBUTARY_CONCURRENCY_PER_ACCOUNT: "1000",
      TRIBUTARY_REQUESTS_PER_MINUTE: "1000000",
      TRIBUTARY_LOG_FORMAT: "json",
      ...settings.environment,
    },
  });
  const lines: Record<string, unknown>[] = [];
  await firstLine(child, (line) => {
    lines.push(JSON.parse(line) as Record<string, unknown>);
    return lines.some((one) => "file" in one) && lines.some((one) => "url" in one);
  });
  const url = String(lines.find((line) => "url" in line)?.["url"]);
  // Off a terminal the first key is in a file, which the log names.
  const key = readFileSync(String(lines.find((line) => "file" in line)?.["file"]), "utf8").trim();
  await served(`${url}/v1/chat/completions`, key);
  return {
    name: `tributary, commits at ${synchronous.toUpperCase()}`,
    url: `${url}/v1/chat/completions`,
    key,
    coldStartMs: performance.now() - startMs,
    processIds: () => [child.pid ?? 0],
    [Symbol.asyncDispose]: () => stop(child),
  };
}

/** CPU seconds that the processes have used until now. */
export function cpuSeconds(processIds: readonly number[]): number {
  let ticks = 0;
  for (const id of processIds) {
    const fields =
      readFileSync(`/proc/${String(id)}/stat`, "utf8")
        .split(") ")[1]
        ?.split(" ") ?? [];
    ticks += Number(fields[11]) + Number(fields[12]);
  }
  return ticks / 100;
}

/** Resident memory of the processes, MiB. */
export function residentMebibytes(processIds: readonly number[]): number {
  let kibibytes = 0;
  for (const id of processIds) {
    const status = readFileSync(`/proc/${String(id)}/status`, "utf8");
    kibibytes += Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0);
  }
  return kibibytes / 1_024;
}

function path(name: string): string {
  return fileURLToPath(new URL(name, import.meta.url));
}

/** Starts a program on a core of its own; it ends with the benchmark. */
export function start(
  program: string,
  values: readonly string[],
  options: {
    readonly core: string;
    readonly folder?: string;
    readonly environment?: Readonly<Record<string, string>>;
  },
): ChildProcess {
  const [command, rest] = canPin
    ? ["taskset", ["-c", options.core, program, ...values]]
    : [program, [...values]];
  const child = spawn(command, rest, {
    cwd: options.folder,
    env: { PATH: process.env["PATH"], HOME: process.env["HOME"], ...options.environment },
    stdio: ["pipe", "pipe", "inherit"],
  });
  children.add(child);
  child.on("exit", () => children.delete(child));
  return child;
}

// Also when the benchmark is broken off: what was started is ended.
const children = new Set<ChildProcess>();
process.on("exit", () => {
  for (const child of children) child.kill();
});
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => process.exit(1));

/** Ends what was started. */
export async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return;
  const ended = once(child, "exit");
  child.kill("SIGTERM");
  await ended;
}

/** The first line of its output that is wanted; the rest is thrown away. */
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
  const line = await Promise.race([found, ended]);
  ended.catch(() => undefined);
  // The log is read and thrown away, or the pipe would fill up and hold the process.
  child.stdout.resume();
  return line;
}

async function served(url: string, key: string): Promise<void> {
  const body = JSON.stringify({
    messages: [{ role: "user", content: '{"chunks":1,"intervalMs":0}' }],
  });
  let answered = "";
  for (let tries = 0; tries < 500; tries += 1) {
    const response = await fetch(url, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body,
    });
    answered = await response.text();
    if (response.status === 200) return;
    await sleep(5);
  }
  throw new Error(`the service does not answer as it should: ${answered}`);
}

async function answers(url: string): Promise<void> {
  for (let tries = 0; tries < 200; tries += 1) {
    try {
      await (await fetch(`${url}/v1/models`)).arrayBuffer();
      return;
    } catch {
      await sleep(20);
    }
  }
  throw new Error(`${url} does not answer`);
}

async function freePort(): Promise<number> {
  const { createServer } = await import("node:net");
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  return typeof address === "object" && address !== null ? address.port : 0;
}

function childrenOf(processId: number): readonly number[] {
  const id = String(processId);
  return readFileSync(`/proc/${id}/task/${id}/children`, "utf8").trim().split(" ").map(Number);
}

function canPinToCores(): boolean {
  try {
    execFileSync("taskset", ["-c", gatewayCore, "true"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

function nginxSettings(origin: string, port: number, folder: string): string {
  return `
worker_processes 1;
pid ${folder}/nginx.pid;
error_log ${folder}/error.log;
events { worker_connections 1024; }
http {
  access_log off;
  client_body_temp_path ${folder}/body;
  proxy_temp_path ${folder}/proxy;
  fastcgi_temp_path ${folder}/fastcgi;
  uwsgi_temp_path ${folder}/uwsgi;
  scgi_temp_path ${folder}/scgi;
  client_max_body_size 8m;
  client_body_buffer_size 8m;
  upstream mock { server ${origin.replace("http://", "")}; keepalive 64; }
  server {
    listen 127.0.0.1:${String(port)};
    location / {
      proxy_pass http://mock;
      proxy_http_version 1.1;
      proxy_set_header connection "";
      proxy_buffering off;
    }
  }
}
`;
}
