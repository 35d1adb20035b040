import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import {
  type EngineEvent,
  type EngineExit,
  startEngineProcess,
} from "../../src/deployment/embedded/engine-process.ts";
import {
  engineEnvironment,
  engineArguments,
} from "../../src/deployment/embedded/engine-settings.ts";
import { startProgram } from "../cli/start-program.ts";

// The engine's own process, whose weights cannot be had, as its service starts it: it listens, and goes on trying.

/** Weights behind a port of this machine at which no process listens any more. */
async function weightsNowhere(): Promise<string> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return `http://127.0.0.1:${String(port)}/tiny.gguf`;
}

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "tributary-engine-faults-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

const isPosix = process.platform !== "win32";

test.skipIf(!isPosix)("SIGUSR1 opens no inspector in the engine and ends nothing", async () => {
  const settings = { dataDir: newFolder(), model: await weightsNowhere() };
  const listening = Promise.withResolvers<EngineEvent>();
  const exited = Promise.withResolvers<EngineExit>();
  const environment = engineEnvironment({ ...settings, environment: process.env }, "key");
  const engine = startEngineProcess(engineArguments(settings), environment, {
    event: (event) => event.event === "listening" && listening.resolve(event),
    exited(exit) {
      listening.reject(new Error(exit.output));
      exited.resolve(exit);
    },
  });
  onTestFinished(() => engine.close());
  const { host, port } = await listening.promise;
  if (engine.processId === null) throw new Error("the engine has no process");
  process.kill(engine.processId, "SIGUSR1");
  // One that has no model answers that it has none.
  const health = await fetch(`http://${String(host)}:${String(port)}/health`);
  expect(health.status).toBe(503);
  await engine.close();
  expect((await exited.promise).output).toBe("");
});

interface LogLine {
  readonly level: string;
  readonly event: string;
  readonly reason?: string;
  readonly signal?: string;
  readonly remedy?: string;
}

test.skipIf(!isPosix)(
  "at level warn the log of a service names cause and remedy of missing weights, and of an engine that was killed",
  async () => {
    await using program = startProgram(["serve"], newFolder(), {
      TRIBUTARY_PORT: "0",
      TRIBUTARY_LOG_LEVEL: "warn",
      TRIBUTARY_SQLITE_SYNCHRONOUS: "normal",
      TRIBUTARY_MODEL: await weightsNowhere(),
    });
    await program.waitFor(/"event":"weights missing".*\n/u);
    const [engine] = childrenOf(program.processId);
    if (engine === undefined) throw new Error("the service has no engine");
    process.kill(engine, "SIGKILL");
    await program.waitFor(/"event":"model process ended".*\n/u);
    const lines = program
      .stdout()
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as LogLine);
    const missing = lines.find(({ event }) => event === "weights missing");
    expect(missing).toMatchObject({ level: "error" });
    expect(missing?.reason).toMatch(/127\.0\.0\.1.*ECONNREFUSED/u);
    expect(missing?.remedy).toMatch(
      /^Put the weights where TRIBUTARY_MODEL says, or .*model pull/u,
    );
    const ended = lines.find(({ event }) => event === "model process ended");
    expect(ended).toMatchObject({ level: "error", signal: "SIGKILL" });
    expect(ended?.remedy).toMatch(/^It is started again by itself\. .*memory.*smaller weights/u);
    // Nothing else at this level: no false alarm, and no key. Whether the console was built is not this test's to say.
    const events = lines.map(({ event }) => event).filter((one) => one !== "console not built");
    expect(new Set(events)).toEqual(new Set(["weights missing", "model process ended"]));
    program.signal("SIGTERM");
    expect(await program.exited).toBe(0);
  },
);

function childrenOf(processId: number): readonly number[] {
  return execFileSync("ps", ["-A", "-o", "pid=,ppid="], { encoding: "utf8" })
    .split("\n")
    .map((line) => line.trim().split(/\s+/u).map(Number))
    .filter(([, parent]) => parent === processId)
    .map(([child = 0]) => child);
}
