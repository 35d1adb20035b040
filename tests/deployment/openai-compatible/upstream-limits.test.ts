import { describe, expect, test } from "vitest";
import { driveGeneration, drivenTimes } from "../driven-generation.ts";

const { connectMs, firstEventMs, silenceMs } = drivenTimes;

const piece = (content: string): string =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content } }] })}\n\n`;
const usage = `data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":7}}\n\n`;
const finished = `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n`;
const done = "data: [DONE]\n\n";
const nothing = 'data: {"choices":[]}\n\n';

/** One that has its first piece. */
async function begun(options: Parameters<typeof driveGeneration>[0] = {}) {
  const one = driveGeneration(options);
  one.ask();
  one.answer();
  await one.send(piece("a"));
  return one;
}

describe("the limit of the first event", () => {
  test("is that of the second connection too", async () => {
    const one = driveGeneration({});
    one.ask();
    one.clock.advance(firstEventMs - 1_000);
    one.break();
    one.clock.advance(999);
    expect([one.requests, await one.outcome()]).toEqual([2, null]);
    one.clock.advance(1);
    expect(await one.outcome()).toBe("overloaded");
    expect(one.fates).toEqual(["drop first", "drop fresh"]);
  });

  test("is that of a refusal's words too", async () => {
    const one = driveGeneration({});
    one.ask();
    one.clock.advance(firstEventMs - 1_000);
    one.answer(500);
    await one.send("words");
    one.clock.advance(999);
    expect(await one.outcome()).toBeNull();
    one.clock.advance(1);
    expect(one.ending).toBeNull();
    expect(await one.outcome()).toBe("refused_by_deployment");
    expect(one.ending).toMatchObject({ failure: { message: "500 words" } });
  });
});

test("the limit of a silence holds at once, though that of the first event is far away", async () => {
  const one = driveGeneration({});
  one.ask();
  // The timer of the connection has made room for that of the first event.
  one.clock.advance(2 * connectMs);
  one.answer();
  await one.send(piece("a"));
  one.clock.advance(silenceMs - 1);
  expect(await one.outcome()).toBeNull();
  one.clock.advance(1);
  expect(await one.outcome()).toBe("deployment_timeout");
});

describe("the limit of the next piece", () => {
  test("begins with the first frame, though that brings nothing", async () => {
    const one = driveGeneration({});
    one.ask();
    one.answer();
    one.clock.advance(firstEventMs / 2);
    const step = silenceMs / 2;
    for (let waited = 0; waited < firstEventMs; waited += step) {
      await one.send(nothing);
      expect(await one.outcome()).toBeNull();
      one.clock.advance(step);
    }
    expect(await one.outcome()).toBe("deployment_timeout");
  });

  test("is a silence, where that may be longer than the wait for the first event", async () => {
    const one = await begun({ times: { firstEventMs: 1_000, silenceMs: 5_000 } });
    for (let waited = 0; waited < 5_000; waited += 500) {
      await one.send(": alive\n\n");
      expect(await one.outcome()).toBeNull();
      one.clock.advance(500);
    }
    expect(await one.outcome()).toBe("deployment_timeout");
  });
});

test("an answer can be paused again after it was resumed", async () => {
  const one = await begun();
  for (let round = 0; round < 3; round += 1) {
    one.generation.pause();
    one.clock.advance(10 * firstEventMs);
    one.generation.resume();
    one.clock.advance(silenceMs / 4);
  }
  expect(one.calls.slice(1)).toEqual(["pause", "resume", "pause", "resume", "pause", "resume"]);
  expect(await one.outcome()).toBeNull();
  one.clock.advance(silenceMs / 4);
  expect(await one.outcome()).toBe("deployment_timeout");
});

describe("an end", () => {
  test("is told in a task of its own, also of a request that could not be made", async () => {
    const one = await begun();
    one.generation.cancel();
    expect(one.ending).toBeNull();
    expect(await one.outcome()).toBe("cancelled");
    const other = driveGeneration({ unsendable: new Error("no such method") });
    expect(other.ending).toBeNull();
    expect(await other.outcome()).toBe("internal");
    expect(other.fates).toEqual(["drop first"]);
    expect(other.clock.waiting).toBe(0);
  });

  test("stays as it is when the answer is cancelled while its connection waits for the body's end", async () => {
    const one = await begun();
    await one.send(finished, done);
    one.generation.cancel();
    expect(await one.outcome()).toBe("finished");
    one.endBody();
    expect(one.fates).toEqual(["keep first"]);
  });

  test("that the sink asks for inside its events is followed by no more of them", async () => {
    const one = await begun({ onEvents: (generation) => generation.cancel() });
    expect(await one.outcome()).toBe("cancelled");
    const other = driveGeneration({ onEvents: (generation) => generation.cancel() });
    other.ask();
    other.answer();
    // What comes behind a finish is ended by the last word.
    await other.send(piece("a"), finished, piece("b"), done);
    expect(await other.outcome()).toBe("cancelled");
    expect(other.batches).toHaveLength(1);
    expect(other.text).toBe("ab");
  });

  test("that is a failure brings no usage behind the last events", async () => {
    const one = await begun();
    await one.send(usage);
    one.break();
    expect(await one.outcome()).toBe("deployment_failed");
    expect(one.usages).toEqual([null]);
  });

  test("in nonsense comes behind what the same read brought before it", async () => {
    const one = await begun();
    await one.send(piece("b"), "data: {\n\n");
    expect(await one.outcome()).toBe("deployment_failed");
    expect(one.text).toBe("ab");
  });
});

test.each(["UND_ERR_SOCKET", "ECONNRESET", "EPIPE", "ECONNABORTED"])(
  "a used connection that ends with %s is one that was closed: the request is sent again",
  (code) => {
    const one = driveGeneration({});
    one.ask();
    one.break(code);
    expect(one.requests).toBe(2);
  },
);

test("a redirection is a refusal: no other address gets the prompt or the key", async () => {
  const one = driveGeneration({});
  one.ask();
  one.answer(307, { location: "http://elsewhere/" });
  one.endBody();
  expect(await one.outcome()).toBe("refused_by_deployment");
  expect(one.ending).toMatchObject({ failure: { message: "307 " } });
  expect(one.requests).toBe(1);
});

test("what the body's end brings is told, though it fails the answer", async () => {
  const one = await begun();
  const choice = { index: 0, delta: { content: "b" }, finish_reason: "abort" };
  // Without the blank line that would end it.
  await one.send(`data: ${JSON.stringify({ choices: [choice] })}`);
  one.endBody();
  expect(await one.outcome()).toBe("deployment_failed");
  expect(one.text).toBe("ab");
});

test("a refusal that breaks off is told with its status, and the words that came", async () => {
  const one = driveGeneration({});
  one.ask();
  one.answer(500);
  await one.send("out of mem");
  one.break();
  expect(await one.outcome()).toBe("refused_by_deployment");
  expect(one.ending).toMatchObject({ failure: { message: "500 out of mem" } });
  expect(one.fates).toEqual(["drop first"]);
});

test("of a header that came twice the first counts", async () => {
  const one = driveGeneration({});
  one.ask();
  one.answer(200, { "content-type": ["application/json", "text/event-stream"] });
  const choice = { index: 0, message: { content: "whole" }, finish_reason: "stop" };
  await one.send(JSON.stringify({ object: "chat.completion", choices: [choice] }));
  one.endBody();
  expect(await one.outcome()).toBe("finished");
  expect(one.text).toBe("whole");
});
