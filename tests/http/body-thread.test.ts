import { EventEmitter, once } from "node:events";
import { readdirSync } from "node:fs";
import { getPriority } from "node:os";
import { Worker } from "node:worker_threads";
import { afterEach, describe, expect, it } from "vitest";
import { Failure } from "../../src/failure.ts";
import { type BodyThread, openBodyThread } from "../../src/http/body-thread.ts";
import { openBodyWorkers } from "../../src/http/body-workers.ts";
import { describeCause } from "../../src/telemetry/describe-cause.ts";
import { systemTimers } from "../../src/timers.ts";
import { openManualTimers } from "../doubles/manual-timers.ts";
import { startThreadsFromSources } from "../setup/bundled-threads.ts";

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

/** A worker in the hands of the test. */
class HeldWorker extends EventEmitter {
  readonly calls: unknown[] = [];
  readonly ended = Promise.withResolvers<number>();

  unref(): void {
    this.calls.push("unref");
  }

  postMessage(question: string, transfer: readonly ArrayBuffer[]): void {
    this.calls.push([question, transfer]);
  }

  terminate(): Promise<number> {
    this.calls.push("terminate");
    return this.ended.promise;
  }
}

describe("a worker", () => {
  function openHeld() {
    const timers = openManualTimers();
    const workers: HeldWorker[] = [];
    const thread = openBodyThread<string, string>(() => {
      const worker = new HeldWorker();
      workers.push(worker);
      return worker as unknown as Worker;
    }, timers);
    const worker = (): HeldWorker => {
      const last = workers.at(-1);
      if (last === undefined) throw new Error("no worker was started");
      return last;
    };
    return { thread, timers, worker, workers };
  }

  it("keeps no process, and is handed the memory of a question", async () => {
    const { thread, worker } = openHeld();
    const memory = new ArrayBuffer(8);
    const answer = thread.run("one", [memory]);
    worker().emit("message", "two");
    expect(await answer).toBe("two");
    expect(worker().calls).toEqual(["unref", ["one", [memory]]]);
  });

  it("that was not asked for a while is ended, once, and one that left by itself is not", async () => {
    const { thread, timers, worker } = openHeld();
    const answer = thread.run("one", []);
    worker().emit("message", "two");
    await answer;
    expect(timers.waiting).toBe(1);
    timers.advance(30_000);
    expect(worker().calls.filter((call) => call === "terminate")).toHaveLength(1);
    const other = thread.run("one", []);
    worker().emit("message", "two");
    await other;
    worker().emit("exit", 0);
    expect(timers.waiting).toBe(0);
    timers.advance(30_000);
    expect(worker().calls).not.toContain("terminate");
  });

  it("that has ended answers nothing any more, and takes nothing from the next", async () => {
    const { thread, worker, workers } = openHeld();
    const first = causeOf(thread.run("one", []));
    worker().emit("error", new TypeError("a bug"));
    expect(await first).toMatchObject({ name: "TypeError" });
    const second = thread.run("two", []);
    expect(workers).toHaveLength(2);
    workers[0]?.emit("message", "late");
    workers[0]?.emit("exit", 1);
    worker().emit("message", "right");
    expect(await second).toBe("right");
  });

  it("whose answer cannot be read is ended, and the question told so", async () => {
    const { thread, worker } = openHeld();
    const cause = causeOf(thread.run("one", []));
    worker().emit("messageerror", new RangeError("no memory for it"));
    expect(await cause).toMatchObject({ name: "RangeError" });
    expect(worker().calls).toContain("terminate");
  });

  it("is waited for when its thread is stopped, and leaves no timer", async () => {
    const { thread, timers, worker } = openHeld();
    const answer = thread.run("one", []);
    worker().emit("message", "two");
    await answer;
    let stopped = false;
    const stopping = thread.stop().then(() => (stopped = true));
    await new Promise(setImmediate);
    expect([stopped, timers.waiting]).toEqual([false, 0]);
    worker().ended.resolve(0);
    await stopping;
  });
});

it("a bug behind a large body reaches the log with its class and its place, in the words of no caller", async () => {
  using _ = startThreadsFromSources();
  await using workers = openBodyWorkers(
    () => [{ id: "a", secret: new Uint8Array(32) }],
    systemTimers,
  );
  const bytes = new Uint8Array(new TextEncoder().encode('{"messages":[]}'));
  const task = {
    type: "prepare",
    format: "none" as never,
    bytes,
    accountId: "acct_a",
    labelFields: [],
  } as const;
  const cause = await causeOf(
    workers.prepare({ ...task, promptSettings: null }, new AbortController().signal),
  );
  const told = describeCause(cause, { withMessages: false, redact: (text) => text });
  expect(told).toMatchObject({ name: "TypeError", message: null });
  expect(told.stack).toMatch(/prepareRequest .*prepare-request\.ts:\d+/);
  const withWords = describeCause(cause, { withMessages: true, redact: (text) => text });
  expect(withWords.message).toMatch(/parseRequest/);
});

it.runIf(process.platform === "linux")(
  "a thread for bodies yields the processor to the others",
  async () => {
    await using workers = openBodyWorkers(
      () => [{ id: "a", secret: new Uint8Array(32) }],
      systemTimers,
    );
    const bytes = Uint8Array.from(Buffer.from('{"messages":[{"role":"user","content":"Hi"}]}'));
    const task = {
      type: "count-tokens",
      bytes,
      accountId: "acct_a",
      promptSettings: null,
    } as const;
    await workers.countTokens(task, new AbortController().signal);
    const threads = readdirSync("/proc/self/task").map((id) => getPriority(Number(id)));
    expect(threads).toContain(Math.min(getPriority() + 10, 19));
  },
);

describe("the worker for bodies", () => {
  it("holds none of the bytes of a body that it has answered", async () => {
    const worker = new Worker(new URL("../../src/http/body-worker.ts", import.meta.url));
    try {
      const size = 4 * 1024 * 1024;
      const refuse = async (): Promise<number> => {
        const bytes = new Uint8Array(size).fill(0xff);
        const task = { type: "count-tokens", bytes, accountId: "a", promptSettings: null };
        worker.postMessage({ ...task, sealKeys: [] }, [bytes.buffer]);
        const [answer] = (await once(worker, "message")) as [{ readonly type: string }];
        expect(answer.type).toBe("failed");
        return (await worker.getHeapStatistics()).external_memory;
      };
      const first = await refuse();
      expect((await refuse()) - first).toBeLessThan(size / 2);
      expect((await refuse()) - first).toBeLessThan(size / 2);
    } finally {
      await worker.terminate();
    }
  });
});
