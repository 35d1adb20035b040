import { once } from "node:events";
import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { type AgentOptions, request } from "node:https";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import type { TLSSocket } from "node:tls";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { limits } from "../../src/limits.ts";
import { makeCertificate, type MadeCertificate } from "../doubles/make-certificate.ts";
import { openManualTimers } from "../doubles/manual-timers.ts";
import { delta, finish } from "../doubles/scripted-deployment.ts";
import { startService, type TestService } from "./start-service.ts";

const body = JSON.stringify({ stream: true, messages: [{ role: "user", content: "Hi" }] });

let folder: string;
let service: TestService;
const clock = openManualTimers();
/** When the old one and the renewed one end. */
const endsMs = [4_000_000_000_000, 4_100_000_000_000] as const;
const [old, renewed] = ["old.test", "renewed.test"].map((name, index) =>
  makeCertificate({ name, validToMs: endsMs[index] ?? 0 }),
);

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "tributary-tls-"));
  put(old);
  service = await startService({
    clock,
    environment: {
      TRIBUTARY_TLS_CERTIFICATE_FILE: join(folder, "cert.pem"),
      TRIBUTARY_TLS_KEY_FILE: join(folder, "key.pem"),
      TRIBUTARY_CONCURRENCY_PER_ACCOUNT: "1000",
      // A drain would wait for an answer that a failed test has left, by a clock that stands still.
      TRIBUTARY_DRAIN_SECONDS: "0",
    },
  });
});

afterEach(async () => {
  await service[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

/** As renewals do: each file is replaced by another one. */
function put(made: Pick<MadeCertificate, "cert" | "key"> | undefined): void {
  for (const [name, text] of [
    ["cert.pem", made?.cert ?? ""],
    ["key.pem", made?.key ?? ""],
  ] as const) {
    writeFileSync(join(folder, `${name}.new`), text);
    renameSync(join(folder, `${name}.new`), join(folder, name));
  }
}

async function ask(options: AgentOptions = {}): Promise<IncomingMessage> {
  const sent = request(`${service.url}/v1/chat/completions`, {
    method: "POST",
    agent: false,
    ca: [old?.cert ?? "", renewed?.cert ?? ""],
    headers: { authorization: `Bearer ${service.key}`, "content-type": "application/json" },
    ...options,
  });
  sent.end(body);
  const [answer] = (await once(sent, "response")) as [IncomingMessage];
  return answer;
}

function nameOf({ socket }: IncomingMessage): unknown {
  return (socket as TLSSocket).getPeerCertificate().subject.CN;
}

/** The end of the listener's certificate, as its metric says it. */
async function endSeconds(): Promise<number> {
  const text = (await service.gateway.metrics()).toString();
  const [, file = "", seconds = ""] =
    /^tributary_certificate_expiry_timestamp_seconds\{file="([^"]+)"\} (\d+)$/m.exec(text) ?? [];
  expect(file).toBe(join(folder, "cert.pem"));
  return Number(seconds);
}

function lines(event: string): readonly string[] {
  return service.logLines.filter((line) => line.includes(`"event":"${event}"`));
}

/** Looks at the files, until the log has so many lines of the event. */
async function look(event: string, count: number): Promise<void> {
  clock.advance(limits.certificateLookMs);
  await expect.poll(() => lines(event)).toHaveLength(count);
}

describe("a listener with a certificate", () => {
  it("takes a new one from its files: streams run on, no request fails, new connections see it", async () => {
    const rest = Promise.withResolvers<void>();
    service.deployment.answerNext(
      delta({ content: "before " }),
      { type: "wait", until: rest.promise },
      delta({ content: "and after" }),
      finish("stop"),
    );
    const stream = await ask();
    expect(nameOf(stream)).toBe("old.test");
    expect(await endSeconds()).toBe(endsMs[0] / 1_000);
    const written = text(stream);

    const answers: Promise<unknown>[] = [];
    const askOne = (): void =>
      void answers.push(ask().then(async (one) => [nameOf(one), await text(one)]));
    for (let index = 0; index < 8; index += 1) askOne();
    // One that has its answer had the certificate of before; the others may meet the change.
    await answers[0];
    put(renewed);
    clock.advance(limits.certificateLookMs);
    // As long as the change is under way, requests are asked all the time.
    await expect
      .poll(() => {
        askOne();
        return lines("certificate loaded");
      })
      .toHaveLength(1);
    for (let index = 0; index < 8; index += 1) askOne();
    const seen = (await Promise.all(answers)) as [string, string][];
    for (const [, whole] of seen) expect(whole).toContain("data: [DONE]");
    expect(seen.slice(0, 1)[0]?.[0]).toBe("old.test");
    expect(seen.slice(-8).map(([name]) => name)).toEqual(Array(8).fill("renewed.test"));

    expect(await endSeconds()).toBe(endsMs[1] / 1_000);
    rest.resolve();
    expect(await written).toMatch(/before [^]*and after[^]*data: \[DONE\]/);
    expect(nameOf(stream)).toBe("old.test");
  });

  it("keeps the old one while its files are broken, and says so once until they are mended", async () => {
    put({ cert: renewed?.cert ?? "", key: old?.key ?? "" });
    await look("certificate not loaded", 1);
    expect(lines("certificate not loaded")[0]).toMatch(
      /"level":"error".*is not the key of the certificate.*"remedy":"The certificate that was there before/,
    );
    expect(lines("certificate not loaded").join()).not.toContain("BEGIN");
    // The next look finds the same, and says nothing of it.
    clock.advance(limits.certificateLookMs);
    expect(nameOf(await ask())).toBe("old.test");
    expect(lines("certificate not loaded")).toHaveLength(1);
    put({ cert: "not a certificate", key: "none" });
    await look("certificate not loaded", 2);
    rmSync(join(folder, "key.pem"));
    await look("certificate not loaded", 3);
    expect(lines("certificate not loaded")[2]).toContain("cannot be read (ENOENT)");
    expect(nameOf(await ask())).toBe("old.test");
    put(renewed);
    await look("certificate loaded", 1);
    expect(nameOf(await ask())).toBe("renewed.test");
    expect(lines("certificate not loaded")).toHaveLength(3);
  });

  it("closes a connection on which comes no TLS, and serves on", async () => {
    const { hostname, port } = new URL(service.url);
    const plain = connect(Number(port), hostname);
    plain.write("GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n");
    let received = "";
    plain.on("data", (piece: Buffer) => (received += piece.toString("latin1")));
    await once(plain, "close");
    expect(received).not.toContain("HTTP/1.1");
    expect((await ask()).statusCode).toBe(200);
  });

  it("ends the answer of a reader that has stopped", async () => {
    service.deployment.answerNext({
      type: "numbers",
      count: 200_000,
      text: (index) => `${String(index)} `.repeat(20),
    });
    const answer = await ask();
    answer.pause();
    const ended = once(answer.socket, "close");
    const running = await service.deployment.request(service.deployment.requests.length - 1);
    let before = -1;
    await expect
      .poll(() => {
        const still = before === running.bytesWritten;
        before = running.bytesWritten;
        return still;
      })
      .toBe(true);
    clock.advance(limits.readerStallMs);
    expect((await running.ended).byPeer).toBe(true);
    answer.resume();
    await ended;
  });
});
