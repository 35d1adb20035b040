import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { compileCache } from "../setup/compile-cache.ts";
import { openAnswerCheck } from "../wire/check-answer.ts";
import { inspectWith } from "../wire/watch-answers.ts";

inspectWith(openAnswerCheck);

const execute = promisify(execFile);
const root = join(import.meta.dirname, "../..");
const entry = join(root, "src/cli/tributary.cjs");

interface Description {
  readonly bin: Readonly<Record<string, string>>;
  readonly engines: { readonly node: string };
  readonly scripts: Readonly<Record<string, string>>;
}
const description = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as Description;

/** The entry file under a Node that says it is another one. */
async function startOn(version: string): Promise<{ code: number; stdout: string; stderr: string }> {
  const before = `Object.defineProperty(process.versions, "node", { value: "${version}" });`;
  const words = ["--eval", `${before} require(${JSON.stringify(entry)})`, "--", "--version"];
  const settled = await execute(process.execPath, words).then(
    (said) => ({ code: 0, ...said }),
    (error: unknown) => error as { code: number; stdout: string; stderr: string },
  );
  return { code: settled.code, stdout: settled.stdout, stderr: settled.stderr };
}

test.each(["12.22.12", "20.20.2", "22.21.0"])(
  "Node %s is told in one line which one is needed",
  async (version) => {
    const { code, stderr, stdout } = await startOn(version);
    expect([code, stdout]).toEqual([1, ""]);
    expect(stderr).toMatch(/^Tributary needs Node 24 or later; this is Node [^\n]+\n$/);
    expect(stderr).toContain(`Node ${version}, ${process.execPath}. npm start `);
  },
);

test("the Node that engines allows runs the program", async () => {
  expect(description.engines.node).toBe(">=24");
  const { stdout } = await execute(process.execPath, [entry, "--version"]);
  expect(stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
});

// Optional chaining, `??`, private names and top-level await are what Node 12 does not parse, `node:` what it does not find.
test("the entry file has nothing that an old Node does not parse", () => {
  const code = readFileSync(entry, "utf8").replaceAll(/^\s*(?:\/\/|\/\*\*|#!).*$/gm, "");
  expect(code).not.toMatch(/\?\.|\?\?|\|\|=|&&=|#\w|\bawait\b|^import |^export |"node:|\d_\d/m);
});

test("the package, npm start and npm run tributary begin with it, and signals reach it", () => {
  expect(description.bin).toEqual({
    tributary: "dist/cli/tributary.cjs",
    "tributary-gateway": "dist/cli/tributary.cjs",
    // A program of its own, which the service starts.
    "tributary-engine": "engine/dist/main.js",
  });
  expect(description.scripts).toMatchObject({
    start: "exec node src/cli/tributary.cjs serve",
    tributary: "exec node src/cli/tributary.cjs",
  });
});

test.skipIf(process.platform === "win32")(
  "SIGUSR1 opens no inspector and ends nothing",
  async () => {
    const folder = mkdtempSync(join(tmpdir(), "tributary-entry-"));
    const child = spawn(process.execPath, [entry, "serve"], {
      cwd: folder,
      env: {
        PATH: process.env["PATH"],
        ...compileCache,
        TRIBUTARY_PORT: "0",
        TRIBUTARY_DEPLOYMENT_URL: "http://127.0.0.1:1",
      },
      stdio: ["ignore", "pipe", "pipe"],
      timeout: 110_000,
      killSignal: "SIGKILL",
    });
    const closed = once(child, "close");
    const said = { stdout: "", stderr: "" };
    child.stderr.on("data", (chunk) => (said.stderr += String(chunk)));
    try {
      const listening = Promise.withResolvers<string>();
      child.stdout.on("data", (chunk) => {
        said.stdout += String(chunk);
        const [, url] = /"url":"([^"]+)"/.exec(said.stdout) ?? [];
        if (url !== undefined) listening.resolve(url);
      });
      void closed.then(() => listening.reject(new Error(said.stdout + said.stderr)));
      const url = await listening.promise;
      child.kill("SIGUSR1");
      expect((await fetch(`${url}/healthz`)).status).toBe(200);
      child.kill("SIGTERM");
      expect((await closed)[0]).toBe(0);
      expect(said.stderr).toBe("");
    } finally {
      child.kill("SIGKILL");
      rmSync(folder, { recursive: true, force: true });
    }
  },
);
