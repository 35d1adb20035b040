import { EventEmitter } from "node:events";
import { syncBuiltinESMExports } from "node:module";
import workerThreads from "node:worker_threads";
import { describe, expect, onTestFinished, test } from "vitest";
import { OperatorError } from "../../src/ledger/operator-error.ts";
import { StoreFault } from "../../src/ledger/store-fault.ts";
import type { StoreClient } from "../../src/ledger/store-operations.ts";
import {
  answerErrorToData,
  type FromWorker,
  type ToWorker,
} from "../../src/ledger/sqlite/thread-messages.ts";
import { openThreadLine } from "../../src/ledger/sqlite/thread-line.ts";
import { connectStore } from "../../src/ledger/sqlite/worker-client.ts";
import { limits } from "../../src/limits.ts";
import { defaultSettings } from "./support.ts";

// The ledger's side of its thread, with a thread in the hands of the test. tests/ledger/ledger.test.ts has the real one.

const { ledgerRestartFirstMs, ledgerRestartLongestMs, ledgerWaitingMax } = limits;

class HeldThread extends EventEmitter {
  readonly posted: ToWorker[] = [];
  #answered = 0;

  postMessage(message: ToWorker): void {
    this.posted.push(message);
  }

  get calls() {
    return this.posted.flatMap((message) => (message.type === "calls" ? message.calls : []));
  }

  tell(message: FromWorker): void {
    this.emit("message", message);
  }

  /** Answers what was not answered yet, `most` of it. */
  answer(most = Number.POSITIVE_INFINITY): void {
    const calls = this.calls.slice(this.#answered, this.#answered + most);
    this.#answered += calls.length;
    this.tell({ type: "answers", answers: calls.map(({ id }) => ({ id, value: null })) });
  }

  die(error?: Error): void {
    if (error !== undefined) this.emit("error", error);
    this.emit("exit", 1);
  }
}

interface Scene {
  readonly client: StoreClient;
  readonly threads: readonly HeldThread[];
  /** The thread that was started last. */
  readonly thread: HeldThread;
  readonly clock: { monotonicMs: number };
}

/** Threads that are started from now on, until the test ends, do nothing by themselves. */
function holdThreads(): readonly HeldThread[] {
  const threads: HeldThread[] = [];
  const original = workerThreads.Worker;
  const Held = class extends HeldThread {
    constructor() {
      super();
      threads.push(this);
    }
  };
  workerThreads.Worker = Held as unknown as typeof original;
  syncBuiltinESMExports();
  onTestFinished(() => {
    workerThreads.Worker = original;
    syncBuiltinESMExports();
  });
  return threads;
}

function lastOf(threads: readonly HeldThread[]): HeldThread {
  const thread = threads.at(-1);
  if (thread === undefined) throw new Error("no thread was started");
  return thread;
}

/** A client whose first thread is open. */
async function openScene(): Promise<Scene> {
  const threads = holdThreads();
  const clock = { monotonicMs: 0 };
  const parts = { now: () => 5, monotonicMs: () => clock.monotonicMs };
  const connecting = connectStore(openThreadLine({ ...defaultSettings, path: "held" }), parts);
  lastOf(threads).tell({ type: "open" });
  const client = await connecting;
  return {
    client,
    threads,
    clock,
    get thread() {
      return lastOf(threads);
    },
  };
}

/** What becomes of a call; "done" for an answer. */
function ask(client: StoreClient): Promise<unknown> {
  return client.call("check", null).then(
    () => "done",
    (error: unknown) => error,
  );
}

function askOften(client: StoreClient, times: number): Promise<unknown>[] {
  return Array.from({ length: times }, () => ask(client));
}

/** Two turns of the event loop: in the second the calls leave that were made in the first. */
async function settle(): Promise<void> {
  await new Promise(setImmediate);
  await new Promise(setImmediate);
}

async function isSettled(promise: PromiseLike<unknown>): Promise<boolean> {
  await settle();
  const open = Symbol("open");
  return (await Promise.race([promise, Promise.resolve(open)])) !== open;
}

const unusable = (error: unknown): FromWorker => ({
  type: "unusable",
  error: answerErrorToData(error),
});
const readOnly = new StoreFault("unavailable", "it may not be written", { reason: "read-only" });
const tooMany = { kind: "busy", reason: "overloaded" };

test("what several sockets ask for in one turn of the event loop travels as one message, each call once", async () => {
  const { client, thread } = await openScene();
  const first = askOften(client, 1);
  // After every callback of a socket come the microtasks.
  for (let socket = 0; socket < 2; socket += 1) {
    await new Promise<void>((resolve) => process.nextTick(resolve));
    first.push(ask(client));
  }
  await settle();
  const second = ask(client);
  await settle();
  expect(thread.posted).toMatchObject([
    { calls: [{ id: 1, name: "check", nowMs: 5 }, { id: 2 }, { id: 3 }] },
    { calls: [{ id: 4 }] },
  ]);
  thread.answer();
  expect(await Promise.all([...first, second])).toEqual(["done", "done", "done", "done"]);
});

describe("what waits for the ledger is bounded", () => {
  test("in its thread, and what was answered waits no more", async () => {
    const { client, thread } = await openScene();
    const answers = askOften(client, ledgerWaitingMax);
    expect(await ask(client)).toMatchObject(tooMany);
    await settle();
    thread.answer(1);
    expect(await answers[0]).toBe("done");
    const later = ask(client);
    expect(await ask(client)).toMatchObject(tooMany);
    await settle();
    thread.answer();
    expect(new Set(await Promise.all([...answers, later]))).toEqual(new Set(["done"]));
  });

  test("before the next thread, and who had one waits no more", async () => {
    const scene = await openScene();
    const { client, clock } = scene;
    for (let round = 0; round < 2; round += 1) {
      scene.thread.die();
      clock.monotonicMs += 1_000_000;
      const answers = askOften(client, ledgerWaitingMax);
      expect(await ask(client)).toMatchObject(tooMany);
      scene.thread.tell({ type: "open" });
      await settle();
      scene.thread.answer();
      expect(new Set(await Promise.all(answers))).toEqual(new Set(["done"]));
    }
    expect(scene.threads).toHaveLength(3);
  });
});

describe("a thread that dies", () => {
  test("tells those who wait for it why, and those who ask before the next may start", async () => {
    const { client, thread, threads } = await openScene();
    const waiting = ask(client);
    await settle();
    thread.die(new RangeError("out of memory"));
    const fault = { kind: "unavailable", reason: "thread-ended", code: null };
    expect(await waiting).toMatchObject({
      ...fault,
      message: "the ledger's thread has ended: out of memory",
      cause: { name: "RangeError" },
    });
    expect(await ask(client)).toMatchObject({
      ...fault,
      message: "the ledger's thread has ended and is being replaced",
    });
    expect(threads).toHaveLength(1);
  });

  test("before it has opened leaves no one waiting, at the first start and later", async () => {
    const threads = holdThreads();
    const connecting = connectStore(openThreadLine({ ...defaultSettings, path: "held" }), {
      now: () => 5,
    });
    lastOf(threads).die(new Error("no memory"));
    await expect(connecting).rejects.toThrow("the ledger's thread has ended: no memory");

    const scene = await openScene();
    scene.thread.die();
    scene.clock.monotonicMs += ledgerRestartFirstMs;
    const waiting = ask(scene.client);
    scene.thread.die(new Error("no memory"));
    expect(await waiting).toMatchObject({ message: /: no memory$/u, reason: "thread-ended" });
  });

  test("is replaced by one, for all who ask, and the next time by another", async () => {
    const scene = await openScene();
    for (let died = 1; died < 4; died += 1) {
      scene.thread.die();
      scene.clock.monotonicMs += 1_000_000;
      const answers = askOften(scene.client, 3);
      await settle();
      expect(scene.threads).toHaveLength(died + 1);
      scene.thread.tell({ type: "open" });
      await settle();
      expect(scene.thread.calls).toHaveLength(3);
      scene.thread.answer();
      expect(await Promise.all(answers)).toEqual(["done", "done", "done"]);
    }
  });

  test("is replaced soon again after a calm time", async () => {
    const { client, clock, threads } = await openScene();
    const dieAndAsk = async (afterMs: number): Promise<number> => {
      lastOf(threads).die();
      await settle();
      clock.monotonicMs += afterMs;
      void ask(client);
      return threads.length;
    };
    // Ever longer waits: 250 ms, 500 ms, then 1 s.
    expect(await dieAndAsk(ledgerRestartFirstMs)).toBe(2);
    expect(await dieAndAsk(2 * ledgerRestartFirstMs)).toBe(3);
    expect(await dieAndAsk(2 * ledgerRestartFirstMs)).toBe(3);
    clock.monotonicMs += 2 * ledgerRestartLongestMs;
    expect(await dieAndAsk(0)).toBe(4);
    expect(await dieAndAsk(ledgerRestartFirstMs - 1)).toBe(4);
    expect(await dieAndAsk(1)).toBe(5);
  });

  test("again and again is replaced after the longest wait, and no longer one", async () => {
    const { client, clock, threads } = await openScene();
    for (let died = 0; died < 12; died += 1) {
      lastOf(threads).die();
      await settle();
      clock.monotonicMs += ledgerRestartLongestMs;
      void ask(client);
      await settle();
    }
    expect(threads).toHaveLength(13);
  });

  test("takes what was not sent yet with it: the next one hears only what is asked of it", async () => {
    const { client, clock, threads } = await openScene();
    const lost = ask(client);
    lastOf(threads).die();
    clock.monotonicMs += 1_000_000;
    // Before the turn of the event loop in which the first call would have left.
    const asked = ask(client);
    lastOf(threads).tell({ type: "open" });
    await settle();
    lastOf(threads).answer();
    expect([await lost, await asked]).toMatchObject([{ reason: "thread-ended" }, "done"]);
    expect(lastOf(threads).calls).toHaveLength(1);
  });

  test("late, after the next one has opened, takes nothing from that", async () => {
    const scene = await openScene();
    scene.thread.die();
    scene.clock.monotonicMs += 1_000_000;
    const failed = ask(scene.client);
    const late = scene.thread;
    late.tell(unusable(readOnly));
    await failed;
    scene.clock.monotonicMs += 1_000_000;
    const waiting = ask(scene.client);
    scene.thread.tell({ type: "open" });
    await settle();
    late.die();
    scene.thread.answer();
    expect(await waiting).toBe("done");
    void ask(scene.client);
    await settle();
    expect(scene.threads).toHaveLength(3);
    expect(scene.thread.calls).toHaveLength(2);
  });
});

describe("a file that cannot be opened again", () => {
  test.each([
    ["a fault of the store", readOnly, { message: "it may not be written", reason: "read-only" }],
    [
      "an operator's mistake",
      new OperatorError("ledger_unusable", "it is a folder"),
      { message: "the ledger's thread has ended: it is a folder", reason: "thread-ended" },
    ],
  ])("for %s is told to all who ask, until it is tried again", async (_what, error, told) => {
    const scene = await openScene();
    scene.thread.die();
    scene.clock.monotonicMs += ledgerRestartFirstMs;
    const waiting = ask(scene.client);
    scene.thread.tell(unusable(error));
    expect(await waiting).toMatchObject({ kind: "unavailable", ...told });
    expect(await ask(scene.client)).toMatchObject({ kind: "unavailable", ...told });
    expect(scene.threads).toHaveLength(2);
  });
});

describe("a ledger that is closed", () => {
  test("sends the calls of the tick first, and waits until its thread has ended", async () => {
    const { client, thread, threads } = await openScene();
    const asked = ask(client);
    const closing = client[Symbol.asyncDispose]();
    expect(await ask(client)).toMatchObject({ kind: "unavailable", reason: "closed" });
    await settle();
    expect(thread.posted.map(({ type }) => type)).toEqual(["calls", "close"]);
    thread.answer();
    expect(await asked).toBe("done");
    expect(await isSettled(closing)).toBe(false);
    thread.die();
    await closing;
    expect(await ask(client)).toMatchObject({ reason: "closed" });
    expect(threads).toHaveLength(1);
  });

  test("while a thread opens closes that one too", async () => {
    const scene = await openScene();
    scene.thread.die();
    scene.clock.monotonicMs += ledgerRestartFirstMs;
    const asked = ask(scene.client);
    const closing = scene.client[Symbol.asyncDispose]();
    expect(await isSettled(closing)).toBe(false);
    scene.thread.tell({ type: "open" });
    await settle();
    expect(scene.thread.posted.map(({ type }) => type)).toEqual(["calls", "close"]);
    scene.thread.answer();
    scene.thread.die();
    await closing;
    expect(await asked).toBe("done");
  });

  test("while a thread opens in vain is closed with that", async () => {
    const scene = await openScene();
    scene.thread.die();
    scene.clock.monotonicMs += ledgerRestartFirstMs;
    const asked = ask(scene.client);
    const closing = scene.client[Symbol.asyncDispose]();
    scene.thread.tell(unusable(readOnly));
    await closing;
    expect(await asked).toMatchObject({ reason: "read-only" });
  });
});
