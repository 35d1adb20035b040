import { existsSync, readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import {
  answersWell,
  firstLine,
  freePort,
  gatewayCore,
  otherCore,
  programPath,
  startProgram,
  stop,
} from "./children.ts";
import { processTree } from "./process-usage.ts";
import { type BenchFormat, chat, formats } from "./wire.ts";

/** One way from the load generator to the mock deployment. */
export interface Arm extends AsyncDisposable {
  /** As tables and `--only` name it. */
  readonly name: string;
  /** Of the chat completions endpoint; other formats have their path at the same origin. */
  readonly url: string;
  readonly key: string;
  /** Beside the key. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Processes whose CPU and memory count; none for the direct connection. */
  readonly processIds: () => readonly number[];
  /** The database's, which count apart. */
  readonly databaseIds?: () => readonly number[];
  /** What it can answer in front of a deployment that speaks chat; absent: chat. */
  readonly formats?: readonly BenchFormat[];
  /** How it names the model in a format; absent: as all do. */
  readonly models?: Readonly<Partial<Record<BenchFormat["name"], string>>>;
  /** What it does for each request beside passing it on, or that it does not. */
  readonly does?: string;
  /** From the start of the process to the first answer; absent: not measured. */
  readonly coldStartMs?: number;
  /** Another gateway, measured with what it is given. */
  readonly isPeer?: boolean;
}

/** Starts the mock deployment; resolves with its origin. */
export async function startMock(): Promise<{ readonly origin: string } & AsyncDisposable> {
  const child = startProgram(process.execPath, [programPath("mock-deployment.ts")], {
    core: otherCore,
  });
  const port = await firstLine(child, () => true);
  return { origin: `http://127.0.0.1:${port}`, [Symbol.asyncDispose]: () => stop(child) };
}

/** The connection without anything in between. */
export function openDirect(origin: string): Arm {
  return {
    name: "direct",
    url: `${origin}${chat.path}`,
    key: "",
    processIds: () => [],
    [Symbol.asyncDispose]: async () => {},
  };
}

/** nginx that passes bytes on. */
export async function openNginx(origin: string, folder: string): Promise<Arm> {
  const program = ["/usr/sbin/nginx", "/usr/local/sbin/nginx", "/opt/homebrew/bin/nginx"].find(
    (candidate) => existsSync(candidate),
  );
  if (program === undefined) throw new Error("not installed here");
  const port = await freePort();
  const settings = join(folder, "nginx.conf");
  await writeFile(settings, nginxSettings(origin, port, folder));
  const child = startProgram(program, ["-p", folder, "-c", settings, "-g", "daemon off;"], {
    core: gatewayCore,
  });
  const url = `http://127.0.0.1:${String(port)}`;
  await answersWell(() => fetch(`${url}/v1/models`), { child, seconds: 10 });
  return {
    name: "nginx",
    url: `${url}${chat.path}`,
    key: "",
    does: "passes bytes on",
    processIds: () => processTree(child.pid ?? 0),
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
    readonly name?: string;
    /** Another checkout, to be compared with this one. */
    readonly checkout?: string | null;
  },
): Promise<Arm> {
  const { synchronous } = settings;
  const name = settings.name ?? synchronous;
  const startMs = performance.now();
  const program = startOf(settings.checkout ?? programPath(".."));
  const child = startProgram(process.execPath, [program, "serve"], {
    core: settings.everyCore === true ? `${otherCore},${gatewayCore}` : gatewayCore,
    folder,
    environment: {
      TRIBUTARY_PORT: "0",
      TRIBUTARY_DATA_DIR: join(folder, `data-${name}`),
      TRIBUTARY_DEPLOYMENT_URL: origin,
      TRIBUTARY_STARTING_CREDIT: "1000000",
      TRIBUTARY_SQLITE_SYNCHRONOUS: synchronous,
      TRIBUTARY_CONCURRENCY_PER_ACCOUNT: "1000",
      TRIBUTARY_REQUESTS_PER_MINUTE: "1000000",
      TRIBUTARY_LOG_FORMAT: "json",
      TRIBUTARY_METRICS: "both",
      ...settings.environment,
    },
  });
  const lines: Record<string, unknown>[] = [];
  await firstLine(child, (line) => {
    lines.push(JSON.parse(line) as Record<string, unknown>);
    return lines.some(isFirst) && lines.some((one) => "url" in one);
  });
  const url = String(lines.find((line) => "url" in line)?.["url"]);
  // Off a terminal the first key is in a file, which the log names; versions of before wrote the key itself.
  const named = (name: string): string =>
    String(lines.find((line) => isFirst(line) && name in line)?.[name]);
  const isInFile = lines.some((line) => isFirst(line) && "file" in line);
  const key = isInFile ? readFileSync(named("file"), "utf8").trim() : named("key");
  const body = JSON.stringify(chat.body({ chunks: 1, intervalMs: 0 }));
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const ask = (): Promise<Response> => fetch(url + chat.path, { method: "POST", headers, body });
  await answersWell(ask, { child, seconds: 10 });
  return {
    name,
    url: url + chat.path,
    key,
    formats,
    does: "key, rate, credit, ledger, metering, log, metrics",
    coldStartMs: performance.now() - startMs,
    processIds: () => processTree(child.pid ?? 0),
    [Symbol.asyncDispose]: () => stop(child),
  };
}

/** What `npm start` runs in a checkout. */
function startOf(checkout: string): string {
  const text = readFileSync(join(checkout, "package.json"), "utf8");
  const { scripts } = JSON.parse(text) as { readonly scripts: Readonly<Record<string, string>> };
  const program = /\bnode (\S+) serve$/.exec(scripts["start"] ?? "")?.[1];
  if (program === undefined) throw new Error(`${checkout}: npm start is not "node FILE serve"`);
  return join(checkout, program);
}

function isFirst(line: Readonly<Record<string, unknown>>): boolean {
  return line["event"] === "first_key";
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
