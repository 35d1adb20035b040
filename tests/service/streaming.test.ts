import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { limits } from "../../src/limits.ts";
import { openManualTimers } from "../doubles/manual-timers.ts";
import {
  delta,
  finish,
  frame,
  openGate,
  statusAnswer,
  type Step,
  textAnswer,
} from "../doubles/scripted-deployment.ts";
import { formats, startService, type TestService } from "./start-service.ts";

const keepaliveMs = 150;
const clock = openManualTimers();
let service: TestService;
beforeAll(async () => {
  service = await startService({
    clock,
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
    await expect
      .poll(() => service.logLines.some((line) => line.includes(`"requestId":"${id}"`)))
      .toBe(true);
  });

  it("opens after two seconds of a silent deployment, and keeps alive in silence", async () => {
    const gate = openGate();
    service.deployment.answerNext(gate.step, ...textAnswer("late"));
    const asked = ask();
    await expect.poll(() => clock.delays).toContain(limits.headersAfterMs);
    clock.advance(limits.headersAfterMs - 1);
    // Opening the answer would have cleared the timer.
    expect(clock.delays).toContain(limits.headersAfterMs);
    clock.advance(1);
    const response = await asked;
    expect(response.status).toBe(200);
    const pings = 3;
    for (let ping = 0; ping < pings; ping += 1) clock.advance(keepaliveMs);
    gate.open();
    const text = await response.text();
    expect(text.split(": ping\n\n").length - 1).toBe(pings);
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

  it.each<readonly [string, (half: Step, gate: Step) => readonly Step[]]>([
    ["ends without a finish", (half) => [half]],
    [
      "says an error and then a finish",
      (half) => [
        half,
        { type: "write", bytes: 'data: {"error":{"message":"boom","code":500}}\n\n' },
        finish("stop"),
      ],
    ],
    // A reset takes with it what is on the way, so it waits until the client has the first half.
    ["is reset", (half, gate) => [half, gate, { type: "reset" }]],
    ["sends nonsense", (half) => [half, { type: "write", bytes: "data: {nonsense\n\n" }]],
  ])("is failed honestly and costs nothing when the deployment %s", async (_name, stepsWith) => {
    const before = (await service.settledCredit()).balance;
    const gate = openGate();
    service.deployment.answerNext(...stepsWith(delta({ content: "half" }), gate.step));
    const stream = readText(await ask());
    await stream.until("half");
    gate.open();
    const text = await stream.whole();
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
  });

  it("ends only when its settlement is committed", async () => {
    const stream = readText(await ask());
    await stream.until(terminals[name]);
    // Read at the very moment the terminal frame is there, not later.
    expect((await service.credit()).held).toBe(0n);
    await stream.whole();
  });

  it("delivers a piece in the read in which it arrived, whole characters only", async () => {
    const [half, rest] = [openGate(), openGate()];
    const bytes = Buffer.from(
      `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: "grüße 😀" } }] })}\n\n`,
    );
    const cut = bytes.indexOf(Buffer.from("😀")) + 2;
    // What comes in one read with another piece has been read when that piece is there.
    const begun = Buffer.from(frame({ content: "whole " }));
    service.deployment.answerNext(
      { type: "write", bytes: Buffer.concat([begun, bytes.subarray(0, cut)]) },
      half.step,
      { type: "write", bytes: bytes.subarray(cut) },
      rest.step,
      finish("stop"),
    );
    const stream = readText(await ask());
    await stream.until("whole ");
    half.open();
    expect(await stream.until("😀")).not.toContain("\uFFFD");
    rest.open();
    expect(await stream.whole()).toContain(terminals[name]);
  });
});

/** Reads the body of an answer as it comes; both give all the text until then. */
function readText(response: Response): {
  until(part: string): Promise<string>;
  whole(): Promise<string>;
} {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  const more = async (): Promise<boolean> => {
    const piece = await reader?.read();
    text += piece?.value ?? "";
    return piece?.done === false;
  };
  return {
    async until(part) {
      while (!text.includes(part)) if (!(await more())) throw new Error(`no ${part} in ${text}`);
      return text;
    },
    async whole() {
      while (await more());
      return text;
    },
  };
}
