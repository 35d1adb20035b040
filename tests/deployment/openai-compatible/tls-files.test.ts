import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TLSSocket } from "node:tls";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Deployment } from "../../../src/deployment/deployment.ts";
import { makeCertificate } from "../../doubles/make-certificate.ts";
import { openDeployment, openReadyDeployment } from "./open-deployment.ts";
import { record } from "../recording-sink.ts";

// An engine behind an authority of its own, which serves only whoever shows a certificate of that authority.

const authority = makeCertificate({ name: "authority.test" });
const engine = makeCertificate({ name: "engine.test", by: authority });
const folder = mkdtempSync(join(tmpdir(), "tributary-deployment-tls-"));
const files = {
  caFile: join(folder, "ca.pem"),
  certificateFile: join(folder, "cert.pem"),
  keyFile: join(folder, "key.pem"),
};
const answer = `data: {"choices":[{"delta":{"content":"Hello."},"finish_reason":"stop"}]}

data: [DONE]

`;
/** Names of the certificates that were shown, one a connection. */
const shown: string[] = [];
const server = createServer(
  { cert: engine.cert, key: engine.key, ca: authority.cert, requestCert: true },
  (request, response) => {
    response.setHeader("connection", "close");
    if (request.url === "/v1/models") response.end('{"data":[{"id":"model"}]}');
    else if (request.method !== "POST") response.writeHead(404).end("{}");
    else response.setHeader("content-type", "text/event-stream").end(answer);
  },
);
server.on("secureConnection", (socket: TLSSocket) => {
  shown.push(String(socket.getPeerCertificate().subject.CN));
});
let url = "";

function show(name: string): void {
  const { cert, key } = makeCertificate({ name, by: authority });
  writeFileSync(files.certificateFile, cert);
  writeFileSync(files.keyFile, key);
}

beforeAll(async () => {
  writeFileSync(files.caFile, authority.cert);
  show("service.test");
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  url = `https://127.0.0.1:${String((server.address() as AddressInfo).port)}/v1`;
});
afterAll(() => {
  server.close();
  rmSync(folder, { recursive: true, force: true });
});

const never = new AbortController().signal;

async function ask(deployment: Deployment): Promise<string> {
  const prompt = deployment.prepare(
    {
      turns: [{ role: "user", text: "hi" }],
      tools: [],
      toolChoice: { type: "auto" },
      parallelToolCalls: null,
    },
    {
      temperature: null,
      topP: null,
      topK: null,
      stopSequences: [],
      seed: null,
      presencePenalty: null,
      frequencyPenalty: null,
      reasoningEffort: null,
      responseFormat: "text",
    },
  );
  return (await record(deployment, prompt).ended).type;
}

test("a deployment is known by the authority of the settings, and knows the service by a certificate, the newest in its file", async () => {
  await using deployment = await openReadyDeployment(url, { tls: files });
  expect(deployment.describe().model).toBe("model");
  expect(await ask(deployment)).toBe("finished");
  expect(new Set(shown.splice(0))).toEqual(new Set(["service.test"]));
  show("renewed.test");
  expect(await ask(deployment)).toBe("finished");
  expect(shown.splice(0)).toEqual(["renewed.test"]);
  // What cannot be read any more was read before.
  rmSync(files.keyFile);
  expect(await ask(deployment)).toBe("finished");
  await deployment.check(never);
  expect(new Set(shown)).toEqual(new Set(["renewed.test"]));
});

test("one of an authority that is not known is not asked", async () => {
  const before = shown.length;
  await using deployment = openDeployment(url, { model: "model" });
  await expect(deployment.check(never)).rejects.toMatchObject({ code: "overloaded" });
  expect(await ask(deployment)).toBe("failed");
  expect(shown).toHaveLength(before);
});
