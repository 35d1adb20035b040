import { once } from "node:events";
import { type IncomingMessage, request as openRequest } from "node:http";
import { Session } from "node:inspector/promises";
import { fileURLToPath } from "node:url";
import { setImmediate as nextTurn } from "node:timers/promises";
import { limits } from "../../src/limits.ts";
import { systemTimers } from "../../src/timers.ts";
import { delta, finish, openGate } from "../doubles/scripted-deployment.ts";
import { startService } from "../service/start-service.ts";

// Runs as a process of its own and prints, as JSON, the source files of which a function was entered by one streamed
// request: until the body is asked for, until the deployment answers, and from its answer to the end.

const source = new URL("../../src/", import.meta.url).href;
const profiler = new Session();
profiler.connect();
await profiler.post("Profiler.enable");
await profiler.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });

/** Files with a function that was called since the last look; module bodies do not count. */
async function entered(): Promise<readonly string[]> {
  const { result } = await profiler.post("Profiler.takePreciseCoverage");
  const files = new Set<string>();
  for (const script of result) {
    if (!script.url.startsWith(source)) continue;
    const called = script.functions.some(
      ({ functionName, ranges }) => functionName !== "" && (ranges[0]?.count ?? 0) > 0,
    );
    if (called) files.add(`src/${fileURLToPath(script.url).slice(fileURLToPath(source).length)}`);
  }
  return [...files].toSorted();
}

const bodyAskedFor = Promise.withResolvers<void>();
/** Other timers of the service have the same delay. */
let requested = false;
/** Service, deployment and client share this event loop: what they do of themselves is done in a few of its turns. */
async function rest(): Promise<void> {
  for (let turn = 0; turn < 200; turn += 1) await nextTurn();
}

await using service = await startService({
  clock: {
    set(callback, delayMs) {
      // What looks for events every second is no part of a request.
      if (delayMs === limits.deskLookMs) return null;
      if (requested && delayMs === limits.requestReceiveMs) bodyAskedFor.resolve();
      return systemTimers.set(callback, delayMs);
    },
    clear: (timer) => systemTimers.clear(timer),
    monotonicMs: () => performance.now(),
  },
  environment: { TRIBUTARY_LOG_LEVEL: "silent" },
  // What looks at the event loop every 20 ms is no part of a request.
  telemetryTimers: { set: () => null, clear: () => undefined },
});
const gate = openGate();
service.deployment.answerAlways(gate.step, delta({ content: "Hello" }), finish("stop"));
const body = JSON.stringify({ messages: [{ role: "user", content: "Hi" }], stream: true });
const request = openRequest(`${service.url}/v1/chat/completions`, {
  method: "POST",
  headers: {
    authorization: `Bearer ${service.key}`,
    "content-type": "application/json",
    "content-length": Buffer.byteLength(body),
  },
});
// What the start has asked of the ledger's thread was asked before this is.
for await (const piece of (await fetch(`${service.url}/readyz`)).body ?? []) void piece;
await rest();
await entered();
requested = true;
request.flushHeaders();
await bodyAskedFor.promise;
await rest();
const untilBody = await entered();
request.end(body);
const index = service.deployment.requests.length;
await service.deployment.request(index);
await rest();
const untilAnswer = await entered();
gate.open();
const [response] = (await once(request, "response")) as [IncomingMessage];
let text = "";
for await (const chunk of response.setEncoding("utf8")) text += String(chunk);
if (!text.endsWith("data: [DONE]\n\n")) throw new Error(`the request failed: ${text}`);
await rest();
const untilEnd = await entered();
process.stdout.write(`${JSON.stringify({ untilBody, untilAnswer, untilEnd }, null, 2)}\n`);
