import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openOperatorsAnswerCheck } from "../operators/check-operator-answer.ts";
import { openOperatorLedger } from "../service/operator-ledger.ts";
import { configOf } from "../service/start-service.ts";
import { inspectWith } from "../wire/watch-answers.ts";
import { openFakeEngine } from "./fake-engine.ts";
import { openRecordingShell } from "./recording-shell.ts";
import { firstKeyOf, type Program, startProgram } from "./start-program.ts";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "tributary-serve-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

function serve(
  engineUrl: string,
  more: Readonly<Record<string, string>> = {},
  from?: "sources",
): Program {
  const environment = {
    TRIBUTARY_PORT: "0",
    TRIBUTARY_DEPLOYMENT_URL: engineUrl,
    TRIBUTARY_SQLITE_SYNCHRONOUS: "normal",
    ...more,
  };
  return startProgram(["serve"], folder, environment, from);
}

function linesOf(text: string): readonly Record<string, unknown>[] {
  return text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

function ask(url: string, key: string, content: string): Promise<Response> {
  return fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ messages: [{ role: "user", content }], stream: true }),
  });
}

/** Notes what files the event loop of a program loads. */
function watchLoads() {
  const [hook, loaded] = [join(folder, "note-loads.mjs"), join(folder, "loaded")];
  const text = `import { appendFileSync } from "node:fs";
    import { registerHooks } from "node:module";
    import { isMainThread } from "node:worker_threads";
    if (isMainThread) registerHooks({ load(url, context, next) {
      appendFileSync(${JSON.stringify(loaded)}, url + "\\n");
      return next(url, context);
    } });`;
  writeFileSync(hook, text);
  return {
    environment: { NODE_OPTIONS: `--import=${pathToFileURL(hook).href}` },
    /** Their own and those of their libraries, in order. */
    ofOperators: () =>
      readFileSync(loaded, "utf8")
        .split("\n")
        .filter((url) => /src\/operators\/|node_modules\/(@?hono|zod)\//.test(url)),
  };
}

async function addressAndKey(program: Program): Promise<{ url: string; key: string }> {
  const [, url = ""] = await program.waitFor(/(http:\/\/127\.0\.0\.1:\d+)/);
  return { url, key: await firstKeyOf(program) };
}

describe("serve", () => {
  it("writes JSON lines where nobody looks: where it listens, the first key's file, how it stopped", async () => {
    await using engine = await openFakeEngine({ words: "MARKERanswer" });
    await using first = serve(engine.url);
    const { key, url } = await addressAndKey(first);
    const response = await ask(url, key, "MARKERprompt");
    expect(await response.text()).toContain("MARKERanswer");
    const refused = await ask(url, `${key.slice(0, -6)}MARKER`, "MARKERprompt");
    expect(refused.status).toBe(401);
    first.signal("SIGTERM");
    expect(await first.exited).toBe(0);

    const lines = linesOf(first.stdout());
    expect(lines.map(({ event }) => event)).toEqual(
      expect.arrayContaining(["listening", "first_key", "request", "draining", "stopped"]),
    );
    expect(lines.at(-1)).toMatchObject({ event: "stopped" });
    expect(lines.find(({ event }) => event === "first_key")).toMatchObject({
      accountId: expect.stringMatching(/^acct_/) as string,
      balance: "10",
      file: join(folder, "data", "first-key"),
    });
    expect(lines).toContainEqual(
      expect.objectContaining({ event: "request", status: 401, failureCode: "authentication" }),
    );
    const said = first.stdout() + first.stderr();
    expect(said).not.toContain(key.slice(-20));
    expect(said).not.toContain("MARKER");

    await using second = serve(engine.url);
    await second.waitFor(/"event":"listening"/);
    expect((await ask(await urlOf(second), key, "again")).status).toBe(200);
    second.signal("SIGINT");
    expect(await second.exited).toBe(0);
    expect(second.stdout()).not.toContain("first_key");
  });

  it.each(["info", "debug"])("writes what a deployment said at debug alone: %s", async (level) => {
    await using engine = await openFakeEngine({ status: 400, words: "you said MARKERprompt" });
    await using program = serve(engine.url, {
      TRIBUTARY_LOG_LEVEL: level,
      TRIBUTARY_DEPLOYMENT_API_KEY: "sk-SECRET",
    });
    const { key, url } = await addressAndKey(program);
    expect((await ask(url, key, "MARKERprompt")).status).toBe(400);
    const broken = await fetch(`${url}/v1/messages?MARKER=1`, {
      method: "POST",
      headers: { "x-api-key": key, "content-type": "application/json" },
      body: '{"messages": MARKERprompt}',
    });
    expect(broken.status).toBe(400);
    await fetch(`${url}/v1/models/MARKERmodel`);
    await program.waitFor(/"route":"\/v1\/models\/:id"/);
    program.signal("SIGTERM");
    await program.exited;
    const said = program.stdout() + program.stderr();
    expect(said).toContain('"event":"deployment refused"');
    expect(said.includes("MARKER")).toBe(level === "debug");
    expect(said).not.toContain("SECRET");
  });

  it("lets a running answer finish when it is told to stop, and refuses new ones meanwhile", async () => {
    await using engine = await openFakeEngine({ hold: true });
    await using program = serve(engine.url);
    const { key, url } = await addressAndKey(program);
    const running = await ask(url, key, "hello");
    program.signal("SIGTERM");
    await program.waitFor(/"event":"draining"/);
    const [, operators = ""] = await program.waitFor(/"address":"(http:[^"]+)"/);
    for (const path of ["/healthz", "/metrics"])
      expect((await fetch(operators + path)).status).toBe(200);
    const refused = await ask(url, key, "hello");
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, expect.any(String)]);
    await refused.text();
    engine.release();
    expect(await running.text()).toMatch(/"finish_reason":"stop"[^]*\[DONE\]\n\n$/);
    expect(await program.exited).toBe(0);
  });

  it("serves on for the delay of its drain while /readyz fails, until another signal ends that", async () => {
    await using engine = await openFakeEngine();
    await using program = serve(engine.url, { TRIBUTARY_DRAIN_DELAY_SECONDS: "3600" });
    const { key, url } = await addressAndKey(program);
    expect((await fetch(`${url}/readyz`)).status).toBe(200);
    program.signal("SIGTERM");
    await program.waitFor(/"event":"leaving","seconds":3600|"seconds":3600,"event":"leaving"/);
    const leavingAtMs = performance.now();
    const ready = await fetch(`${url}/readyz`);
    expect([ready.status, await ready.json()]).toEqual([
      503,
      { status: "not ready", reasons: { service: "shutting down" } },
    ]);
    const served = await ask(url, key, "hello");
    expect([served.status, await served.text()]).toEqual([
      200,
      expect.stringContaining("[DONE]") as string,
    ]);
    // Signals that come together are one; and one more, while the process ends, would be the one that ends it.
    await expect.poll(() => performance.now() - leavingAtMs).toBeGreaterThan(700);
    program.signal("SIGTERM");
    expect(await program.exited).toBe(0);
    const events = linesOf(program.stdout()).map(({ event }) => event);
    expect(events.slice(events.indexOf("leaving"))).toEqual([
      "leaving",
      "request",
      "draining",
      "stopped",
    ]);
  });

  it("leaves at once at the second Ctrl-C", async () => {
    await using engine = await openFakeEngine({ hold: true });
    await using program = serve(engine.url);
    const { key, url } = await addressAndKey(program);
    const running = await ask(url, key, "hello");
    program.signal("SIGINT");
    await program.waitFor(/"event":"draining"/);
    await signalUntilExit(program, "SIGINT");
    expect(await program.exited).toBe(0);
    await expect(running.text()).rejects.toThrow();
  });

  it("waits for a database that is not up yet, says so, and stops at once when it is told to", async () => {
    await using program = startProgram(["serve"], folder, {
      TRIBUTARY_PORT: "0",
      TRIBUTARY_DEPLOYMENT_URL: "http://127.0.0.1:1",
      TRIBUTARY_DATABASE_URL: "postgres://me:MARKER@127.0.0.1:1/ledger",
    });
    await program.waitFor(/waiting for the ledger/);
    program.signal("SIGTERM");
    expect(await program.exited).toBe(0);
    expect(linesOf(program.stdout())).toEqual([
      expect.objectContaining({
        event: "waiting for the ledger",
        reason: "PostgreSQL: connect ECONNREFUSED 127.0.0.1:1",
        secondsLeft: 60,
      }),
      expect.objectContaining({ event: "stopped" }),
    ]);
    expect(program.stderr()).toBe("");
    expect(program.stdout()).not.toContain("MARKER");
  });

  it("listens for operators beside it with all code of theirs, and ends with 2 where their port was asked for and is taken", async () => {
    inspectWith(openOperatorsAnswerCheck);
    await using engine = await openFakeEngine();
    const loads = watchLoads();
    await using program = serve(engine.url, loads.environment, "sources");
    const [, url = ""] = await program.waitFor(
      /"address":"(http:[^"]+)","event":"operators listening"/,
    );
    const atStart = loads.ofOperators();
    expect(atStart.join()).toMatch(/operators\/api\.ts.*zod/);
    expect((await fetch(`${url}/metrics`)).status).toBe(200);
    const asked = await fetch(`${url}/api/v1/accounts`);
    expect(asked.status).toBe(401);
    expect(loads.ofOperators()).toEqual(atStart);
    expect(await asked.json()).toMatchObject({ code: "token_unknown" });
    const [, callers = ""] = await program.waitFor(/"url":"(http:[^"]+)"/);
    const moved = await fetch(`${callers}/metrics`);
    expect([moved.status, moved.headers.get("content-type")]).toEqual([
      410,
      "text/plain; charset=utf-8",
    ]);
    expect(await moved.text()).toMatch(
      /^[^\n]*TRIBUTARY_OPERATOR_PORT[^\n]*TRIBUTARY_METRICS=both[^\n]*\n$/,
    );
    const { port } = new URL(url);
    await using taken = serve(engine.url, { TRIBUTARY_OPERATOR_PORT: port });
    expect(await taken.exited).toBe(2);
    expect(taken.stderr()).toContain(`TRIBUTARY_OPERATOR_PORT=${port}: another program listens`);
  });

  it("ends an answer that an operator cancels at once, and drains when an operator says so", async () => {
    inspectWith(openOperatorsAnswerCheck);
    await using engine = await openFakeEngine({ hold: true });
    await using program = serve(engine.url);
    const { key, url } = await addressAndKey(program);
    const [, operators = ""] = await program.waitFor(/"address":"(http:[^"]+)"/);
    await using ledger = await openOperatorLedger(
      configOf({ TRIBUTARY_DATA_DIR: join(folder, "data") }),
    );
    const { secret } = await ledger.createOperator({ name: "o", role: "owner", expiresAtMs: null });
    const askOperators = async (method: string, path: string) => {
      const headers = { authorization: `Bearer ${secret}` };
      const answer = await fetch(`${operators}/api/v1${path}`, { method, headers });
      return (await answer.json()) as Record<string, unknown>;
    };
    const running = await ask(url, key, "hello");
    const list = await askOperators("GET", "/generations");
    const [one] = list["data"] as { id: string; output_tokens_so_far: number }[];
    expect(one?.output_tokens_so_far).toEqual(expect.any(Number));
    await askOperators("DELETE", `/generations/${one?.id ?? ""}`);
    const text = await running.text();
    expect(text).toMatch(/"code":"cancelled_by_operator"[^]*$/);
    expect(text).not.toContain("[DONE]");
    expect(await ledger.showReceipt(one?.id ?? "")).toMatchObject({
      outcome: "cancelled-by-operator",
      chargedNanos: 0n,
    });
    const refusals = await askOperators("GET", "/refusals");
    expect(refusals["data"]).toMatchObject([{ code: "cancelled_by_operator", status: 200 }]);
    await askOperators("POST", "/verify");
    await expect
      .poll(() => askOperators("GET", "/verify"))
      .toMatchObject({ state: "ended", report: { ok: true } });
    const status = await askOperators("GET", "/status");
    const drained = await askOperators("POST", `/replicas/${String(status["replica"])}/drain`);
    expect(drained).toMatchObject({ id: status["replica"] });
    expect(await program.exited).toBe(0);
    expect(await ledger.listReplicas()).toEqual([]);
  });

  it("ends with one line when the port is taken, and with 2 when a setting is wrong", async () => {
    await using engine = await openFakeEngine();
    const { port } = new URL(engine.url);
    await using taken = serve(engine.url, { TRIBUTARY_PORT: port });
    expect(await taken.exited).toBe(1);
    expect(taken.stderr()).toBe(
      `TRIBUTARY_HOST=127.0.0.1 TRIBUTARY_PORT=${port}: another program listens there already; end it, or set TRIBUTARY_PORT to another port (0 picks a free one)\n`,
    );
    await using next = serve(engine.url);
    await next.waitFor(/"event":"first_key"/);
    await using wrong = serve("", { TRIBUTARY_MODEL: "nothing-of-this-name" });
    expect(await wrong.exited).toBe(2);
    expect(wrong.stderr()).toMatch(/^TRIBUTARY_MODEL=nothing-of-this-name: .+\n$/);
    await using nowhere = serve(engine.url, { TRIBUTARY_HOST: "unix:/no/such/folder/callers" });
    expect(await nowhere.exited).toBe(1);
    expect(nowhere.stderr()).toBe(
      "TRIBUTARY_HOST=unix:/no/such/folder/callers: there is no such folder, or this user may make no file in it; make it, or name another\n",
    );
    // What is known before anything is opened needs no process of its own.
    const bare = await openRecordingShell(folder, {
      TRIBUTARY_DEPLOYMENT_URL: engine.url,
      TRIBUTARY_OPERATOR_TLS_CERTIFICATE_FILE: "/no/cert.pem",
      TRIBUTARY_OPERATOR_TLS_KEY_FILE: "/no/key.pem",
    })("serve");
    expect(bare.exitCode).toBe(2);
    expect(bare.stderr).toBe(
      "TRIBUTARY_OPERATOR_TLS_CERTIFICATE_FILE, TRIBUTARY_OPERATOR_TLS_KEY_FILE: /no/cert.pem cannot be read (ENOENT): correct the path, or let this user read it\n",
    );
  });
});

async function urlOf(program: Program): Promise<string> {
  return (await program.waitFor(/http:\/\/127\.0\.0\.1:\d+/))[0];
}

/** A signal that comes within half a second of another one is npm's repetition of it. */
async function signalUntilExit(program: Program, name: NodeJS.Signals): Promise<void> {
  let exited = false;
  void program.exited.then(() => (exited = true));
  const press = (): boolean => {
    program.signal(name);
    return exited;
  };
  await expect.poll(press, { interval: 100 }).toBe(true);
}
