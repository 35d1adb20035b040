import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  delta,
  finish,
  openGate,
  statusAnswer,
  textAnswer,
} from "../doubles/scripted-deployment.ts";
import { formats, startService, type TestService } from "./start-service.ts";

const keepaliveMs = 150;
let service: TestService;
beforeAll(async () => {
  service = await startService({
    environment: { TRIBUTARY_KEEPALIVE_MS: String(keepaliveMs) },
  });
});
afterAll(() => service[Symbol.asyncDispose]());

const terminals = {
  "chat-completions": "data: [DONE]",
  responses: "event: response.completed",
  messages: "event: message_stop",
} as const;

describe.each(formats)("a stream of $name", ({ name, path, body }) => {
  const ask = (): Promise<Response> => service.post(path, { ...body, stream: true });

  it("has the headers of an event stream, and one id everywhere", async () => {
    const response = await ask();
    expect(response.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
    expect(response.headers.get("cache-control")).toBe("no-cache");
    expect(response.headers.get("x-accel-buffering")).toBe("no");
    expect(response.headers.get("content-encoding")).toBeNull();
    const id = response.headers.get("x-request-id");
    expect(id).toMatch(/^req_/);
    if (name === "messages") expect(response.headers.get("request-id")).toBe(id);
    expect(await response.text()).toContain(terminals[name]);
    await sleep(20);
    expect(service.logLines.some((line) => line.includes(`"requestId":"${id}"`))).toBe(true);
  });

  it("opens after two seconds of a silent deployment, and keeps alive in silence", async () => {
    const gate = openGate();
    service.deployment.answerNext(gate.step, ...textAnswer("late"));
    const startMs = performance.now();
    const response = await ask();
    expect(performance.now() - startMs).toBeGreaterThan(1_900);
    expect(response.status).toBe(200);
    await sleep(keepaliveMs * 3.5);
    gate.open();
    const text = await response.text();
    const pings = text.split(": ping\n\n").length - 1;
    expect(pings).toBeGreaterThanOrEqual(2);
    const events = name === "messages" ? /event: ping\ndata: \{"type":"ping"\}\n\n/g : null;
    if (events !== null) expect(text.match(events)?.length).toBe(pings);
    if (name === "responses") {
      expect(text.match(/^event: response\.in_progress$/gm)?.length).toBe(pings + 1);
      const numbers = [...text.matchAll(/"sequence_number":(\d+)/g)].map((match) =>
        Number(match[1]),
      );
      expect(numbers).toEqual(numbers.map((_, index) => index));
    }
    if (name === "chat-completions") expect(text).not.toContain("event:");
  });

  it("carries a refusal of the deployment as a real status when it comes at once", async () => {
    service.deployment.answerNext(
      ...statusAnswer(400, { error: { message: "secret words of the engine", code: 400 } }),
    );
    const response = await ask();
    expect(response.status).toBe(400);
    expect(await response.text()).not.toContain("secret words");
    expect((await service.settledCredit()).held).toBe(0n);
  });

  it.each([
    ["ends without a finish", [delta({ content: "half an" })]],
    [
      "says an error and then a finish",
      [
        delta({ content: "half" }),
        { type: "write", bytes: 'data: {"error":{"message":"boom","code":500}}\n\n' },
        finish("stop"),
      ],
    ],
    ["is reset", [delta({ content: "half" }), openGateFor(30), { type: "reset" }]],
    [
      "sends nonsense",
      [delta({ content: "half" }), { type: "write", bytes: "data: {nonsense\n\n" }],
    ],
  ] as const)(
    "is failed honestly and costs nothing when the deployment %s",
    async (_name, steps) => {
      const before = (await service.settledCredit()).balance;
      service.deployment.answerNext(...steps);
      const text = await (await ask()).text();
      expect(text).toContain("half");
      for (const terminal of Object.values(terminals)) expect(text).not.toContain(terminal);
      const frames = text.trimEnd().split("\n\n");
      const last = frames.at(-1) ?? "";
      if (name === "responses") {
        expect(last).toMatch(/^event: response\.failed\n/);
        expect(frames.at(-2)).toMatch(/^event: error\n/);
      } else if (name === "messages") {
        expect(last).toMatch(/^event: error\ndata: \{"type":"error","error":\{"type":"api_error"/);
      } else {
        expect(last).toMatch(/^data: \{"error":\{"message":/);
      }
      expect((await service.settledCredit()).balance).toBe(before);
    },
  );

  it("ends only when its settlement is committed", async () => {
    const response = await ask();
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    while (!text.includes(terminals[name])) text += (await reader?.read())?.value ?? "";
    // Read at the very moment the terminal frame is there, not later.
    expect((await service.credit()).held).toBe(0n);
    await reader?.cancel();
  });

  it("delivers a piece in the read in which it arrived, whole characters only", async () => {
    const gate = openGate();
    const bytes = Buffer.from(
      `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: "grüße 😀" } }] })}\n\n`,
    );
    const cut = bytes.indexOf(Buffer.from("😀")) + 2;
    service.deployment.answerNext(
      { type: "write", bytes: bytes.subarray(0, cut) },
      openGateFor(30),
      { type: "write", bytes: bytes.subarray(cut) },
      gate.step,
      finish("stop"),
    );
    const response = await ask();
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    while (!text.includes("😀")) text += (await reader?.read())?.value ?? "";
    expect(text).not.toContain("\uFFFD");
    gate.open();
    while (!text.includes(terminals[name])) text += (await reader?.read())?.value ?? "";
  });
});

/** A step that waits for some milliseconds, so that what is around it travels apart. */
function openGateFor(ms: number): { readonly type: "wait"; readonly until: Promise<unknown> } {
  return {
    type: "wait",
    // Begins to run when the deployment gets there.
    get until() {
      return sleep(ms);
    },
  };
}
