import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { cp, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { openAnswerCheck } from "../wire/check-answer.ts";
import { inspectWith } from "../wire/watch-answers.ts";

// The files of a clone, and the two commands that README begins with, and nothing else: the console is there.

inspectWith(openAnswerCheck);

const run = promisify(execFile);
const root = join(import.meta.dirname, "../..");
const bytesMax = 16 * 1024 * 1024;

test("a fresh clone serves the console and the callers' page after README's two commands", async () => {
  const [install, start] = await readFirstCommands();
  await using opened = new AsyncDisposableStack();
  const clone = await mkdtemp(join(tmpdir(), "tributary-clone-"));
  opened.defer(() => rm(clone, { recursive: true, force: true }));
  const listed = ["-c", "safe.directory=*", "ls-files", "-z"];
  const { stdout } = await run("git", listed, { cwd: root, maxBuffer: bytesMax });
  const files = stdout.split("\0").filter((name) => name !== "");
  // What is built has to come from the two commands.
  expect(files.filter((name) => name.startsWith("console/dist/"))).toEqual([]);
  for (const file of files) await cp(join(root, file), join(clone, file));

  const env = { ...outsideOf(process.env), ...settingsIn(clone) };
  const installing = run("npm", install, { cwd: clone, env, maxBuffer: bytesMax });
  installing.child.stdin?.end();
  await installing.catch((error: unknown) => {
    throw new Error(`npm ci: ${String((error as { stdout?: unknown }).stdout)}`, { cause: error });
  });
  const child = spawn("npm", start, {
    cwd: clone,
    env,
    stdio: ["ignore", "pipe", "inherit"],
    detached: true,
  });
  const ended = once(child, "exit");
  opened.defer(() => killGroup(child.pid));
  const said: string[] = [];
  const lines = createInterface({ input: child.stdout });
  lines.on("line", (line) => said.push(line));
  const addressOf = (pattern: RegExp): string => pattern.exec(said.join("\n"))?.[1] ?? "";
  for (const [name, pattern] of [
    ["operators", /"address":"(http:[^"]+)"/u],
    ["callers", /"url":"(http:[^"]+)".*"event":"listening"/u],
  ] as const) {
    await Promise.race([
      expect.poll(() => addressOf(pattern)).not.toBe(""),
      ended.then(() => expect.fail(`npm start ended: ${said.join("\n")}`)),
    ]);
    const url = addressOf(pattern);
    const page = await fetch(url, { headers: { accept: "text/html" } });
    expect([name, page.status]).toEqual([name, 200]);
    const [, script = ""] = /src="(\/console\/[^"]+\.js)"/u.exec(await page.text()) ?? [];
    expect(script).toContain(`/console/${name}-`);
    const file = await fetch(new URL(script, url));
    expect([script, file.status]).toEqual([script, 200]);
    expect(file.headers.get("content-type")).toContain("javascript");
    await file.arrayBuffer();
  }
  child.kill("SIGTERM");
  expect(await ended).toEqual([0, null]);
});

/** The words after `npm` of the first commands of README.md, which have to be two. */
async function readFirstCommands(): Promise<readonly [string[], string[]]> {
  const readme = await readFile(join(root, "README.md"), "utf8");
  const [, block = ""] = /```\w*\n((?:npm .*\n)+)```/u.exec(readme) ?? [];
  expect(block).toBe("npm ci\nnpm start\n");
  return [["ci"], ["start"]];
}

/** Ports that are free, a ledger of its own, and no weights: a deployment that is not there. */
function settingsIn(clone: string): NodeJS.ProcessEnv {
  return {
    TRIBUTARY_PORT: "0",
    TRIBUTARY_DATA_DIR: join(clone, "data"),
    TRIBUTARY_DEPLOYMENT_URL: "http://127.0.0.1:9",
    TRIBUTARY_LOG_FORMAT: "json",
    // What this repository was installed from is still on this machine.
    npm_config_prefer_offline: "true",
  };
}

/** What the machine has set, without what npm and vitest say of this repository, and without its own Node. */
function outsideOf(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const aboutUs =
    /^(?:npm_(?:package|lifecycle|command|config_local_prefix)|NODE$|NODE_(?:ENV|OPTIONS)|INIT_CWD|VITEST|TEST|TRIBUTARY_)/u;
  const kept = Object.fromEntries(Object.entries(env).filter(([name]) => !aboutUs.test(name)));
  const pinned = join(root, "node_modules/.bin");
  const path = (env["PATH"] ?? "").split(delimiter).filter((part) => part !== pinned);
  return { ...kept, PATH: path.join(delimiter) };
}

/** What npm left behind, if it did. */
function killGroup(pid: number | undefined): void {
  try {
    if (pid !== undefined) process.kill(-pid, "SIGKILL");
  } catch {
    // All of them have ended, as they should.
  }
}
