import { Worker } from "node:worker_threads";
import { limits } from "../../limits.ts";
import { entryUrl } from "../../worker-url.ts";
import {
  answerErrorFromData,
  type FromWorker,
  type NumberedCall,
  type ToWorker,
} from "./messages.ts";
import type { OperationName } from "../operations.ts";
import { StoreFault } from "../store-fault.ts";
import type { StoreClient } from "../store-ledger.ts";
import type { StoreSettings } from "./store.ts";

interface Pending {
  readonly resolve: (value: never) => void;
  readonly reject: (error: Error) => void;
}

/** What belongs to one life of the thread. */
interface Thread {
  readonly worker: Worker;
  readonly pending: Map<number, Pending>;
  readonly exited: Promise<void>;
}

// A thread that died is replaced at most this often.
const restartAfterMs = 250;

/** Starts the thread and waits until the ledger is open. */
export async function connectStore(
  settings: StoreSettings,
  now: () => number,
): Promise<StoreClient> {
  let lastId = 0;
  let closed = false;
  let unsent: NumberedCall[] = [];
  let startedAtMs = performance.now();
  let thread: Thread | null = null;
  thread = await startThread(settings, forget);

  function forget(ended: Worker): void {
    if (thread?.worker === ended) thread = null;
  }

  function flush(): void {
    const calls = unsent;
    unsent = [];
    const message: ToWorker = { type: "calls", calls, sentAtNs: process.hrtime.bigint() };
    thread?.worker.postMessage(message, []);
  }

  async function running(): Promise<Thread> {
    if (thread !== null) return thread;
    if (performance.now() - startedAtMs < restartAfterMs)
      throw new StoreFault("unavailable", "the ledger's thread has ended and is being replaced");
    startedAtMs = performance.now();
    const started = await startThread(settings, forget);
    thread = started;
    return started;
  }

  function post(name: OperationName, argument: unknown, to: Thread): Promise<never> {
    if (to.pending.size >= limits.ledgerWaitingMax)
      return Promise.reject(new StoreFault("busy", "too many operations wait for the ledger"));
    lastId += 1;
    const id = lastId;
    // The calls of one tick travel as one message.
    if (unsent.length === 0) queueMicrotask(flush);
    unsent.push({ id, name, argument: argument as NumberedCall["argument"], nowMs: now() });
    return new Promise((resolve, reject) => {
      to.pending.set(id, { resolve, reject });
    });
  }

  return {
    call(name, argument) {
      if (closed)
        return Promise.reject(new StoreFault("unavailable", "the ledger has been closed"));
      return thread === null
        ? running().then((started) => post(name, argument, started))
        : post(name, argument, thread);
    },
    async [Symbol.asyncDispose]() {
      closed = true;
      const ending = thread;
      if (ending === null) return;
      // Behind the calls of this tick, which are still in the queue.
      await Promise.resolve();
      const message: ToWorker = { type: "close" };
      ending.worker.postMessage(message, []);
      await ending.exited;
    },
  };
}

async function startThread(
  settings: StoreSettings,
  forget: (ended: Worker) => void,
): Promise<Thread> {
  const worker = new Worker(entryUrl("worker", import.meta.url), {
    workerData: settings,
    name: "ledger",
  });
  const pending = new Map<number, Pending>();
  let cause: unknown = null;
  worker.on("error", (error) => {
    cause = error;
  });
  const exited = new Promise<void>((resolve) => {
    worker.on("exit", () => {
      // Before anybody hears of it: nobody may ask a thread that has gone.
      forget(worker);
      for (const { reject } of pending.values()) reject(diedFault(cause));
      pending.clear();
      resolve();
    });
  });
  await new Promise<void>((resolve, reject) => {
    worker.on("message", (message: FromWorker) => {
      switch (message.type) {
        case "open":
          resolve();
          return;
        case "unusable":
          reject(answerErrorFromData(message.error));
          return;
        case "answers":
          for (const answer of message.answers) {
            const waiting = pending.get(answer.id);
            pending.delete(answer.id);
            if ("error" in answer) waiting?.reject(answerErrorFromData(answer.error));
            // The number ties the answer to the call whose type it has.
            else waiting?.resolve(answer.value as never);
          }
          return;
        default:
          message satisfies never;
      }
    });
    worker.on("exit", () => {
      reject(diedFault(cause));
    });
  });
  return { worker, pending, exited };
}

function diedFault(cause: unknown): StoreFault {
  const reason = cause instanceof Error ? (cause.stack ?? cause.message) : "no reason given";
  return new StoreFault("unavailable", `the ledger's thread has ended: ${reason}`);
}
