import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type Server } from "node:http";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { listenAt, openHttpServer, portOf, urlOf } from "../../src/network/http-server.ts";
import { askOwnServer } from "../../src/network/own-server.ts";
import { makeCertificate } from "../doubles/make-certificate.ts";
import { openManualTimers } from "../doubles/manual-timers.ts";

let folder: string;
let path: string;
const servers: Server[] = [];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "tributary-socket-"));
  path = join(folder, "callers");
});
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
  rmSync(folder, { recursive: true, force: true });
});

const at = (): { host: string; port: number } => ({ host: `unix:${path}`, port: 8080 });

function answering(words: string): Server {
  const server = createServer((_request, response) => response.end(words));
  servers.push(server);
  return server;
}

async function ask(host: string, port: number, url: string): Promise<string> {
  const request = askOwnServer({ host, port, url }, { method: "GET", path: "/" });
  request.end();
  const [answer] = (await once(request, "response")) as [IncomingMessage];
  return text(answer);
}

describe("a server at a path", () => {
  it("is reached there by user and group alone, and its file goes with it", async () => {
    const server = answering("here");
    await listenAt(server, at());
    expect(statSync(path).mode & 0o777).toBe(0o660);
    const url = urlOf({ ...at(), tls: null });
    expect([url, portOf(server)]).toEqual([`unix:${path}`, 0]);
    expect(await ask(at().host, 0, url)).toBe("here");
    server.close();
    await once(server, "close");
    expect(existsSync(path)).toBe(false);
  });

  it("takes the place of one whose process was killed", async () => {
    const program = `require("net").createServer().listen(${JSON.stringify(path)}, () => process.kill(process.pid, "SIGKILL"))`;
    spawnSync(process.execPath, ["-e", program]);
    expect(statSync(path).isSocket()).toBe(true);
    await listenAt(answering("anew"), at());
    expect(await ask(at().host, 0, `unix:${path}`)).toBe("anew");
  });

  it("takes neither the place of one that is listened to, nor of a file of another kind", async () => {
    await listenAt(answering("first"), at());
    await expect(listenAt(answering("second"), at())).rejects.toThrow(/EADDRINUSE/);
    expect(await ask(at().host, 0, `unix:${path}`)).toBe("first");
    const file = join(folder, "ledger");
    writeFileSync(file, "kept");
    await expect(listenAt(answering("third"), { host: `unix:${file}`, port: 0 })).rejects.toThrow(
      /EADDRINUSE/,
    );
    expect(readFileSync(file, "utf8")).toBe("kept");
  });
});

it("a process asks its own listener under TLS, whatever name its certificate has", async () => {
  const made = makeCertificate({ name: "llm.example.org" });
  const tls = { certificateFile: join(folder, "cert.pem"), keyFile: join(folder, "key.pem") };
  writeFileSync(tls.certificateFile, made.cert);
  writeFileSync(tls.keyFile, made.key);
  const parts = {
    options: {},
    timers: openManualTimers(),
    telemetry: { certificateUsed() {}, lifecycle() {} },
  };
  using opened = await openHttpServer({ tls }, (_request, response) => response.end("safe"), parts);
  servers.push(opened.server);
  await listenAt(opened.server, { host: "127.0.0.1", port: 0 });
  const port = portOf(opened.server);
  const url = urlOf({ host: "0.0.0.0", port, tls });
  expect(url).toBe(`https://0.0.0.0:${String(port)}`);
  expect(await ask("127.0.0.1", port, url)).toBe("safe");
});

it("a connection whose handshake of TLS never ends is closed, whatever is answered to bytes that are no HTTP", async () => {
  const made = makeCertificate({ name: "llm.example.org" });
  const tls = { certificateFile: join(folder, "cert.pem"), keyFile: join(folder, "key.pem") };
  writeFileSync(tls.certificateFile, made.cert);
  writeFileSync(tls.keyFile, made.key);
  const parts = {
    options: { handshakeTimeout: 1 },
    timers: openManualTimers(),
    telemetry: { certificateUsed() {}, lifecycle() {} },
  };
  using opened = await openHttpServer({ tls }, (_request, response) => response.end("safe"), parts);
  servers.push(opened.server);
  opened.server.on("clientError", (_error, socket) => socket.end("HTTP/1.1 400 Bad Request"));
  await listenAt(opened.server, { host: "127.0.0.1", port: 0 });
  const silent = connect(portOf(opened.server), "127.0.0.1");
  silent.resume();
  await once(silent, "close");
  expect(silent.bytesRead).toBe(0);
});
