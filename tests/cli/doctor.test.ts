import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Environment } from "../../src/config/environment.ts";
import { runCommandLine } from "../../src/cli/run-command.ts";
import { openFakeEngine } from "./fake-engine.ts";
import { openRecordingShell, plainShell } from "./recording-shell.ts";
import { firstKeyOf, startProgram } from "./start-program.ts";

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "tributary-doctor-test-"));
});
afterAll(() => rmSync(folder, { recursive: true }));

interface Report {
  readonly ok: boolean;
  readonly checks: readonly { name: string; ok: boolean; message: string; fix: string | null }[];
}

async function examine(
  environment: Environment,
  ...options: readonly string[]
): Promise<Report & { readonly exitCode: number }> {
  const run = openRecordingShell(folder, {
    TRIBUTARY_SQLITE_SYNCHRONOUS: "normal",
    ...environment,
  });
  const { exitCode, stdout } = await run("doctor", "--json", ...options);
  return { exitCode, ...(JSON.parse(stdout) as Report) };
}

describe("doctor", () => {
  it("tries all three formats, streamed and not, and leaves the ledger alone", async () => {
    await using engine = await openFakeEngine();
    const report = await examine({ TRIBUTARY_DEPLOYMENT_URL: engine.url });
    expect(report.checks.map(({ name, ok }) => [name, ok])).toEqual([
      ["looks at", true],
      ["settings", true],
      ["ledger", true],
      ["deployment", true],
      ["chat-completions", true],
      ["responses", true],
      ["messages", true],
    ]);
    expect(report).toMatchObject({ ok: true, exitCode: 0 });
    expect(report.checks[0]?.message).toBe(
      `ledger ${join(folder, "data", "ledger.sqlite")} (the default), engine ${engine.url} (TRIBUTARY_DEPLOYMENT_URL in the environment)`,
    );
    expect(report.checks[3]?.message).toBe("tiny, 8192 tokens of context, takes tools");
    for (const { message } of report.checks.slice(4))
      expect(message).toMatch(/^9 tokens in, 2 out/);
    expect(engine.bodies).toHaveLength(6);
    const accounts = await openRecordingShell(folder)("account", "list", "--json");
    expect(accounts.stderr).toContain("There is no ledger at");
  });

  it("says what to fix when the deployment is not there", async () => {
    const environment = { TRIBUTARY_DEPLOYMENT_URL: "http://127.0.0.1:9" };
    const report = await examine(environment, "--timeout", "1");
    expect(report).toMatchObject({ ok: false, exitCode: 1 });
    expect(report.checks.at(-1)).toMatchObject({
      name: "deployment",
      ok: false,
      // The log's words repeat those of the answer to callers.
      message: expect.stringMatching(
        /^not ready: The deployment cannot be reached\. connect E\w+ \S+$/,
      ) as string,
      fix: expect.stringContaining("TRIBUTARY_DEPLOYMENT_URL") as string,
    });
  });

  it("gives up soon where nothing listens, and says how to wait", async () => {
    // The usual wait of 30 s is longer than a test may take.
    const report = await examine({ TRIBUTARY_DEPLOYMENT_URL: "http://127.0.0.1:9" });
    expect(report).toMatchObject({ ok: false, exitCode: 1 });
    expect(report.checks.at(-1)).toMatchObject({
      name: "deployment",
      message: expect.stringContaining("ECONNREFUSED") as string,
      fix: expect.stringContaining("--timeout") as string,
    });
  });

  it("says which format fails, with the status that a client would see", async () => {
    await using engine = await openFakeEngine({ status: 500 });
    const report = await examine({ TRIBUTARY_DEPLOYMENT_URL: engine.url });
    expect(report).toMatchObject({ ok: false, exitCode: 1 });
    const failed = report.checks.filter(({ ok }) => !ok);
    expect(failed.map(({ name }) => name)).toEqual(["chat-completions", "responses", "messages"]);
    for (const { fix, message } of failed) {
      expect(message).toMatch(/^502 /);
      expect(fix).not.toBeNull();
    }
  });

  it("reports bad settings instead of stopping at them", async () => {
    const report = await examine({
      TRIBUTARY_PORT: "x",
      TRIBUTARY_LOG_LEVEL: "y",
      TRIBUTARY_PROT: "1",
    });
    expect(report).toMatchObject({ ok: false, exitCode: 1 });
    expect(report.checks.map(({ message }) => message.split("=")[0])).toEqual([
      "TRIBUTARY_PORT",
      "TRIBUTARY_LOG_LEVEL",
      "TRIBUTARY_PROT is no setting of Tributary",
    ]);
    expect(report.checks[2]?.fix).toContain("did you mean TRIBUTARY_PORT?");
    // The remedy stands there once.
    for (const { fix, message } of report.checks) expect(message).not.toContain(fix);
  });

  it.each([
    [{}, "the first start makes one with a key"],
    [{ TRIBUTARY_FIRST_ACCOUNT: "none" }, "tributary account create NAME makes one"],
  ])("says of an empty ledger how it gets its first account: %o", async (settings, words) => {
    const environment = { ...settings, TRIBUTARY_CACHE_DIR: join(folder, "no-weights") };
    const { checks } = await examine(environment);
    expect(checks[2]?.message).toContain(`no account yet: ${words}`);
  });

  it("reports a ledger that cannot be used", async () => {
    await using engine = await openFakeEngine();
    writeFileSync(join(folder, "broken"), "x".repeat(8192));
    const report = await examine({
      TRIBUTARY_DATABASE_URL: "sqlite:broken",
      TRIBUTARY_DEPLOYMENT_URL: engine.url,
    });
    expect(report.checks.filter(({ ok }) => !ok)).toMatchObject([{ name: "ledger" }]);
    expect(report.exitCode).toBe(1);
  });

  it("tries a service that runs, with a key of it", async () => {
    await using engine = await openFakeEngine();
    await using service = startProgram(["serve"], folder, {
      TRIBUTARY_PORT: "0",
      TRIBUTARY_DATA_DIR: "running",
      TRIBUTARY_DEPLOYMENT_URL: engine.url,
    });
    const [url] = await service.waitFor(/http:\/\/127\.0\.0\.1:\d+/);
    const key = await firstKeyOf(service);
    const well = await examine({ TRIBUTARY_API_KEY: key }, "--url", `${url}/v1/`);
    expect(well.checks[0]?.message).toContain(`the service at ${url} (--url)`);
    expect(well.checks.map(({ name, ok }) => [name, ok])).toEqual([
      ["looks at", true],
      ["health", true],
      ["ready", true],
      ["deployment", true],
      ["chat-completions", true],
      ["responses", true],
      ["messages", true],
    ]);
    const keyless = await examine({}, "--url", url);
    expect(keyless).toMatchObject({ ok: false, exitCode: 1 });
    expect(keyless.checks.filter(({ ok }) => !ok)).toMatchObject([
      { name: "key", fix: expect.stringContaining("TRIBUTARY_API_KEY") as string },
    ]);
    const wrongKey = await examine({}, "--url", url, "--key", `${key.slice(0, -2)}xx`);
    expect(wrongKey).toMatchObject({ ok: false, exitCode: 1 });
    expect(wrongKey.checks.at(-1)).toMatchObject({
      message: expect.stringMatching(/^401 /) as string,
      fix: "make a key: `tributary key create ACCOUNT`",
    });
  });

  it("says of a service that is not there, not ready, or something else what it is", async () => {
    const gone = await openFakeEngine();
    await gone[Symbol.asyncDispose]();
    const away = await examine({}, "--url", gone.url);
    expect(away.checks.slice(1)).toMatchObject([
      { name: "health", ok: false, message: expect.stringContaining("ECONNREFUSED") as string },
    ]);
    // An engine has no such route.
    await using engine = await openFakeEngine();
    const other = await examine({}, "--url", engine.url);
    expect(other.checks.slice(1)).toMatchObject([{ name: "health", ok: false, message: "404" }]);
    await using service = startProgram(["serve"], folder, {
      TRIBUTARY_PORT: "0",
      TRIBUTARY_DATA_DIR: "without-engine",
      TRIBUTARY_DEPLOYMENT_URL: "http://127.0.0.1:9",
    });
    const [url] = await service.waitFor(/http:\/\/127\.0\.0\.1:\d+/);
    const { checks } = await examine({}, "--url", url, "--key", await firstKeyOf(service));
    // No format is tried: each would wait for the deployment, and say no more.
    expect(checks.slice(1)).toMatchObject([
      { name: "health", ok: true },
      { name: "ready", ok: true },
      { name: "deployment", ok: false, message: expect.stringMatching(/^503 ./) as string },
    ]);
  });

  it("downloads no weights, and says so at once", async () => {
    const cache = join(folder, "empty-cache");
    const report = await examine({ TRIBUTARY_CACHE_DIR: cache });
    expect(report.checks.at(-1)).toEqual({
      name: "deployment",
      ok: false,
      message:
        "the weights of smollm2-135m-instruct are not on this machine, and doctor downloads nothing",
      fix: expect.stringContaining("tributary model pull") as string,
    });
    expect(existsSync(cache)).toBe(false);
  });

  it("shows each check as soon as it is known", async () => {
    await using engine = await openFakeEngine({ hold: true });
    const lines: string[] = [];
    const written = Promise.withResolvers<void>();
    const shell = {
      ...plainShell(folder, { TRIBUTARY_DEPLOYMENT_URL: engine.url }),
      stdout: {
        terminal: false,
        write(text: string) {
          lines.push(text);
          if (text.includes("  deployment ")) written.resolve();
        },
      },
    };
    const running = runCommandLine(["doctor"], shell);
    // No answer has come by now: the engine holds the first one.
    await written.promise;
    expect(lines.map((line) => line.split(/ {2,}/)[1])).toEqual([
      "looks at",
      "settings",
      "ledger",
      "deployment",
    ]);
    engine.release();
    expect(await running).toBe(0);
  });

  it("is readable", async () => {
    await using engine = await openFakeEngine({ status: 500 });
    const run = openRecordingShell(folder, { TRIBUTARY_DEPLOYMENT_URL: engine.url });
    const { exitCode, stdout } = await run("doctor");
    expect(exitCode).toBe(1);
    expect(stdout).toMatch(/^ok {4}settings +every setting is valid$/m);
    expect(stdout).toMatch(/^FAIL {2}responses +502 .+\n +fix: .+$/m);
  });
});
