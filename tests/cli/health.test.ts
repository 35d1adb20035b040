import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { listenAt, portOf } from "../../src/network/http-server.ts";
import { openRecordingShell } from "./recording-shell.ts";

// What a container's health check calls: it finds the service by the settings that the service itself was started with.

const answers: Record<string, [number, string]> = {};
const server = createServer((request, response) => {
  const [status, body] = answers[request.url ?? ""] ?? [404, ""];
  response.writeHead(status).end(body);
});
let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "tributary-health-"));
  answers["/healthz"] = [200, '{"status":"ok"}'];
  answers["/readyz"] = [503, '{"status":"not ready","reasons":{"ledger":"gone"}}'];
});
afterEach(() => {
  server.closeAllConnections();
  server.close();
  rmSync(folder, { recursive: true, force: true });
});

describe("health", () => {
  it("asks the port of the settings whether the service is up, and whether it is ready", async () => {
    await listenAt(server, { host: "127.0.0.1", port: 0 });
    const run = openRecordingShell(folder, {
      TRIBUTARY_HOST: "0.0.0.0",
      TRIBUTARY_PORT: String(portOf(server)),
    });
    expect(await run("health")).toEqual({ exitCode: 0, stdout: '{"status":"ok"}\n', stderr: "" });
    const ready = await run("health", "--ready");
    expect([ready.exitCode, ready.stdout]).toEqual([1, `${answers["/readyz"]?.[1] ?? ""}\n`]);
    const json = await run("health", "--ready", "--json");
    expect(JSON.parse(json.stdout)).toEqual({ ok: false, status: 503 });
  });

  it("asks at a unix socket, and says what it asked where there is no answer", async () => {
    const host = `unix:${join(folder, "callers")}`;
    await listenAt(server, { host, port: 0 });
    const run = openRecordingShell(folder, { TRIBUTARY_HOST: host });
    expect((await run("health")).exitCode).toBe(0);
    server.close();
    const gone = await run("health");
    expect(gone.exitCode).toBe(1);
    expect(gone.stderr).toContain(`${host}/healthz: connect ENOENT`);
  });

  it("wants a port that is the same at each start", async () => {
    await listenAt(server, { host: "127.0.0.1", port: 0 });
    const run = openRecordingShell(folder, { TRIBUTARY_PORT: "0" });
    expect(await run("health")).toMatchObject({ exitCode: 2 });
  });
});
