import { fork, spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { get, type IncomingMessage, request as openRequest } from "node:http";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { cpuSeconds } from "./process-usage.ts";
import type { DirectOrder, DirectReport } from "./engine-direct.ts";

/** A turn as Chat Completions has it. */
export interface Message {
  readonly role: "system" | "user" | "assistant";
  readonly content: string;
}

/** What is asked of the service. `temperature`: null leaves the model's own. */
export interface Question {
  readonly messages: readonly Message[];
  readonly outputTokensMax: number;
  readonly temperature: number | null;
}

/** What came back, and when. Times from the request on. */
export interface Measured {
  readonly text: string;
  readonly firstMs: number;
  readonly ms: number;
  readonly inputTokens: number;
  readonly cachedTokens: number;
  readonly outputTokens: number;
}

/** The whole service, with its embedded engine, as `npm start` runs it. */
export interface ServiceArm extends AsyncDisposable {
  /** What the engine said of itself. */
  readonly build: string;
  readonly threads: number;
  ask(question: Question): Promise<Measured>;
  /** How late the service's event loop was since the last reading, at p99. */
  readLatenessMs(): Promise<number>;
  /** CPU seconds of the model's process until now; null where the system does not tell. */
  modelCpuSeconds(): number | null;
}

const loadMs = 120_000;

/** Starts it on a fresh data folder, with the default model from the cache folder. */
export async function openService(folder: string, cacheDir: string): Promise<ServiceArm> {
  const child = spawn(process.execPath, [path("../src/cli/tributary.cjs"), "serve"], {
    env: {
      ...process.env,
      TRIBUTARY_PORT: "0",
      TRIBUTARY_DATA_DIR: folder,
      TRIBUTARY_CACHE_DIR: cacheDir,
      TRIBUTARY_DEPLOYMENT_URL: "",
      TRIBUTARY_MODEL: "",
      TRIBUTARY_STARTING_CREDIT: "1000000",
      TRIBUTARY_REQUESTS_PER_MINUTE: "100000",
      TRIBUTARY_LOG_FORMAT: "json",
      TRIBUTARY_LOG_LEVEL: "info",
    },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const service = watch(child);
  const known = await readLog(child);
  const agentKey = readFileSync(String(known["keyFile"]), "utf8").trim();
  const url = String(known["url"]);
  const operators = String(known["operators"]);
  return {
    build: String(known["build"]),
    threads: Number(known["threads"]),
    ask: (question) => ask(`${url}/v1/chat/completions`, agentKey, question),
    readLatenessMs: async () => readLateness(await read(`${operators}/metrics`)),
    modelCpuSeconds: () => modelCpuSeconds(child.pid),
    [Symbol.asyncDispose]: () => service.stop(),
  };
}

/** The library alone, in a process of its own. */
export interface DirectArm extends AsyncDisposable {
  ask(user: string, outputTokensMax: number): Promise<Extract<DirectReport, { type: "answered" }>>;
}

/** Starts it with so many threads. */
export async function openDirectModel(modelFile: string, threads: number): Promise<DirectArm> {
  const child = fork(path("./engine-direct.ts"), [], { execArgv: [] });
  const watched = watch(child);
  const tell = async (order: DirectOrder): Promise<DirectReport> => {
    const answered = once(child, "message", { signal: AbortSignal.timeout(loadMs) });
    child.send(order);
    const [report] = await Promise.race([answered, watched.ended]);
    return report as DirectReport;
  };
  await tell({ type: "load", modelFile, threads });
  return {
    async ask(user, outputTokensMax) {
      const report = await tell({ type: "ask", user, outputTokensMax });
      if (report.type !== "answered") throw new Error("the model driven directly did not answer");
      return report;
    },
    [Symbol.asyncDispose]: () => watched.stop(),
  };
}

function path(name: string): string {
  return fileURLToPath(new URL(name, import.meta.url));
}

/** Ends it with us, however we end. `ended` rejects when it ends by itself. */
function watch(child: ChildProcess) {
  const kill = (): void => void child.kill("SIGKILL");
  process.once("exit", kill);
  const left = once(child, "exit");
  const ended = left.then(([code]): never => {
    throw new Error(`a process of the benchmark ended with ${String(code)}`);
  });
  ended.catch(() => undefined);
  return {
    ended,
    async stop(): Promise<void> {
      child.kill("SIGTERM");
      await left;
      process.off("exit", kill);
    },
  };
}

/** The address, the file of the key and the engine's facts, from the log until the model is loaded. */
async function readLog(child: ChildProcess): Promise<Readonly<Record<string, unknown>>> {
  if (child.stdout === null) throw new Error("the service has no output");
  const known: Record<string, unknown> = {};
  const signal = AbortSignal.timeout(loadMs);
  const lines = createInterface({ input: child.stdout, signal });
  for await (const line of lines) {
    const facts = JSON.parse(line) as Readonly<Record<string, unknown>>;
    Object.assign(known, facts);
    if (facts["event"] === "operators listening") known["operators"] = facts["address"];
    if (facts["event"] === "first_key") known["keyFile"] = facts["file"];
    if (["keyFile", "url", "build", "operators"].every((name) => name in known)) {
      child.stdout.resume();
      return known;
    }
  }
  throw new Error("the service did not load the model", { cause: known });
}

async function read(url: string): Promise<string> {
  const [response] = (await once(get(url), "response")) as [IncomingMessage];
  let text = "";
  for await (const piece of response.setEncoding("utf8")) text += String(piece);
  return text;
}

/** The least bound below which 99 of 100 were, since the start. */
function readLateness(metrics: string): number {
  const name = "tributary_event_loop_lateness_seconds_bucket";
  const buckets = [...metrics.matchAll(new RegExp(`^${name}\\{le="(.+)"\\} (.+)$`, "gm"))].map(
    ([, bound, count]) => ({
      bound: bound === "+Inf" ? Infinity : Number(bound),
      count: Number(count),
    }),
  );
  const all = buckets.at(-1)?.count ?? 0;
  const found = buckets.find(({ count }) => count >= all * 0.99);
  if (found === undefined) throw new Error("the service tells no lateness");
  return found.bound * 1_000;
}

function modelCpuSeconds(serviceId: number | undefined): number | null {
  try {
    const id = String(serviceId);
    const children = readFileSync(`/proc/${id}/task/${id}/children`, "utf8").trim().split(" ");
    return cpuSeconds(children.map(Number));
  } catch {
    return null;
  }
}

interface Chunk {
  readonly usage?: {
    readonly prompt_tokens: number;
    readonly completion_tokens: number;
    readonly prompt_tokens_details: { readonly cached_tokens: number };
  } | null;
  readonly choices: readonly { readonly delta: { readonly content?: string | null } }[];
}

function ask(url: string, key: string, question: Question): Promise<Measured> {
  const { messages, outputTokensMax, temperature } = question;
  const body = JSON.stringify({
    messages,
    max_completion_tokens: outputTokensMax,
    stream: true,
    stream_options: { include_usage: true },
    // As the library alone: the model's own repeat penalty is off where the request names one.
    ...(temperature !== null && { temperature, presence_penalty: 0 }),
  });
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  return new Promise((resolve, reject) => {
    const startMs = performance.now();
    let firstMs = 0;
    let read = "";
    const outgoing = openRequest(url, { method: "POST", headers }, (response) => {
      response.setEncoding("utf8");
      response.on("data", (piece: string) => {
        read += piece;
        if (firstMs === 0 && /"content":"[^"]/.test(piece)) firstMs = performance.now() - startMs;
      });
      response.on("error", reject);
      response.on("end", () => {
        const ms = performance.now() - startMs;
        if (response.statusCode === 200 && read.includes("[DONE]")) {
          resolve({ firstMs, ms, ...readAnswer(read) });
        } else reject(new Error(`the service answered ${String(response.statusCode)}: ${read}`));
      });
    });
    outgoing.on("error", reject);
    outgoing.end(body);
  });
}

function readAnswer(frames: string): Omit<Measured, "firstMs" | "ms"> {
  let text = "";
  let usage: Chunk["usage"] = null;
  for (const [, data] of frames.matchAll(/^data: (\{.*)$/gm)) {
    const chunk = JSON.parse(data ?? "") as Chunk;
    text += chunk.choices[0]?.delta.content ?? "";
    usage = chunk.usage ?? usage;
  }
  if (usage === null) throw new Error("the service told no usage");
  return {
    text,
    inputTokens: usage.prompt_tokens,
    cachedTokens: usage.prompt_tokens_details.cached_tokens,
    outputTokens: usage.completion_tokens,
  };
}
