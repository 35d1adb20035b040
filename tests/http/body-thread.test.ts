import { Worker } from "node:worker_threads";
import { afterEach, describe, expect, it } from "vitest";
import { Failure } from "../../src/failure.ts";
import { type BodyThread, openBodyThread } from "../../src/http/body-thread.ts";
import { openBodyWorkers } from "../../src/http/body-workers.ts";
import { describeCause } from "../../src/telemetry/describe-cause.ts";
import { systemTimers } from "../../src/timers.ts";
import { openManualTimers } from "../doubles/manual-timers.ts";

const url = new URL("../doubles/moody-thread.ts", import.meta.url);
const threads: BodyThread<string, string>[] = [];
afterEach(async () => {
  for (const thread of threads.splice(0)) await thread.stop();
});

function open() {
  const timers = openManualTimers();
  const thread = openBodyThread<string, string>(() => new Worker(url), timers);
  threads.push(thread);
  return { thread, timers };
}

async function causeOf(answer: Promise<unknown>): Promise<unknown> {
  const error: unknown = await answer.catch((thrown: unknown) => thrown);
  if (!(error instanceof Failure)) throw new Error("it did not fail as it should");
  expect(error.code).toBe("internal");
  return error.facts.cause;
}

describe("a thread that ends instead of answering", () => {
  it("tells who waits for it why, and the next question has another thread", async () => {
    const { thread } = open();
    const first = await thread.run("one", []);
    expect(await causeOf(thread.run("throw", []))).toMatchObject({
      name: "TypeError",
      message: "a bug of the thread",
    });
    const second = await thread.run("two", []);
    expect(second).not.toBe(first.replace("one", "two"));
    expect(String(await causeOf(thread.run("leave", [])))).toMatch(/left with code 3/);
    expect(await thread.run("three", [])).toMatch(/^three by/);
  });

  it("because it is stopped tells so too, and starts no more", async () => {
    const { thread } = open();
    const waiting = causeOf(thread.run("hang", []));
    await thread.stop();
    expect(String(await waiting)).toMatch(/has been stopped/);
    expect(String(await causeOf(thread.run("one", [])))).toMatch(/has been stopped/);
  });
});

describe("a thread that is not asked", () => {
  it("ends after a while, and is another one then", async () => {
    const { thread, timers } = open();
    const first = await thread.run("one", []);
    timers.advance(29_999);
    const second = await thread.run("one", []);
    expect(second).toBe(first);
    timers.advance(30_000);
    expect(await thread.run("one", [])).not.toBe(first);
  });

  it("does not end while it works, however long that takes", async () => {
    const { thread, timers } = open();
    await thread.run("one", []);
    const waiting = causeOf(thread.run("hang", []));
    timers.advance(3_600_000);
    await thread.stop();
    expect(String(await waiting)).toMatch(/has been stopped/);
    expect(timers.waiting).toBe(0);
  });
});

it("a bug behind a large body reaches the log with its class and its place, in the words of no caller", async () => {
  await using workers = openBodyWorkers(
    () => [{ id: "a", secret: new Uint8Array(32) }],
    systemTimers,
  );
  const bytes = new Uint8Array(new TextEncoder().encode('{"messages":[]}'));
  const task = { type: "prepare", format: "none" as never, bytes, accountId: "acct_a" } as const;
  const cause = await causeOf(
    workers.prepare({ ...task, promptSettings: null }, new AbortController().signal),
  );
  const told = describeCause(cause, { withMessages: false, redact: (text) => text });
  expect(told).toMatchObject({ name: "TypeError", message: null });
  expect(told.stack).toMatch(/prepareRequest .*prepare-request\.ts:\d+/);
  const withWords = describeCause(cause, { withMessages: true, redact: (text) => text });
  expect(withWords.message).toMatch(/parseRequest/);
});
