import { request } from "node:http";
import { expect, test } from "vitest";
import {
  delta,
  finish,
  openGate,
  startScriptedDeployment,
  statusAnswer,
  textAnswer,
} from "./scripted-deployment.ts";
import { untilStill } from "./until-still.ts";

async function ask(url: string, body: unknown, signal: AbortSignal | null = null): Promise<string> {
  const response = await fetch(`${url}/chat/completions`, {
    method: "POST",
    body: JSON.stringify(body),
    signal,
  });
  return `${response.status} ${await response.text()}`;
}

test("records what arrived and answers in the order of the script", async () => {
  await using deployment = await startScriptedDeployment();
  deployment.answerNext(...textAnswer("abc", { pieceCharacters: 2, usage: null }));
  deployment.answerNext(...statusAnswer(503, { error: "busy" }, { "retry-after": "7" }));
  const first = await ask(deployment.url, { hello: 1 });
  expect(first.match(/"content":"[^"]*"/gu)).toEqual([
    '"content":""',
    '"content":"ab"',
    '"content":"c"',
  ]);
  expect(first).toContain('"finish_reason":"stop"');
  expect(first.endsWith("data: [DONE]\n\n")).toBe(true);
  expect(await ask(deployment.url, {})).toBe('503 {"error":"busy"}');
  expect(deployment.requests.map((recorded) => recorded.body)).toEqual(['{"hello":1}', "{}"]);
  expect((await deployment.request(0)).json).toEqual({ hello: 1 });
  expect(await (await fetch(`${deployment.url}/models`)).json()).toMatchObject({
    data: [{ id: "scripted-model", max_model_len: 131_072 }],
  });
  expect(deployment.otherRequests).toEqual(["GET /v1/models"]);
});

test("notices that the peer left while it hangs", async () => {
  await using deployment = await startScriptedDeployment();
  deployment.answerNext(delta({ content: "a" }), { type: "hang" });
  const controller = new AbortController();
  const asked = ask(deployment.url, {}, controller.signal).catch(() => "aborted");
  const recorded = await deployment.request(0);
  controller.abort();
  expect(await asked).toBe("aborted");
  expect(await recorded.ended).toMatchObject({ byPeer: true });
});

test("goes on when a test says so, and an answer that was written is not one that the peer left", async () => {
  await using deployment = await startScriptedDeployment();
  const gate = openGate();
  deployment.answerNext(gate.step, delta({ content: "late" }), finish("stop"));
  const asked = ask(deployment.url, {});
  const recorded = await deployment.request(0);
  expect(recorded.bytesWritten).toBe(0);
  gate.open();
  expect(await asked).toContain('"content":"late"');
  expect(await recorded.ended).toMatchObject({ byPeer: false });
});

test("stops writing numbers when nobody reads them", async () => {
  await using deployment = await startScriptedDeployment();
  deployment.answerNext({
    type: "numbers",
    count: 200_000,
    text: (index) => `${index} `.padEnd(400),
  });
  const outgoing = request(`${deployment.url}/chat/completions`, { method: "POST" });
  // Without this listener node reads the answer and throws it away.
  outgoing.on("response", () => undefined);
  outgoing.on("error", () => undefined);
  outgoing.end("{}");
  const recorded = await deployment.request(0);
  await expect.poll(() => recorded.bytesWritten).toBeGreaterThan(1_000);
  await untilStill(() => recorded.bytesWritten);
  expect(recorded.bytesWritten).toBeLessThan(50_000_000);
  outgoing.destroy();
  expect(await recorded.ended).toMatchObject({ byPeer: true });
});
