import { Worker } from "node:worker_threads";
import { limits } from "../../limits.ts";
import { entryUrl } from "../../worker-url.ts";
import {
  answerErrorFromData,
  type FromWorker,
  type NumberedCall,
  type ToWorker,
} from "./thread-messages.ts";
import type { OperationName, StoreClient } from "../store-operations.ts";
import { StoreFault } from "../store-fault.ts";
import type { StoreSettings } from "./store.ts";

/** What the client of the ledger's thread works with. */
export interface StoreClientParts {
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Milliseconds of a clock that never jumps. */
  readonly monotonicMs?: () => number;
}

interface Pending {
  readonly resolve: (value: never) => void;
  readonly reject: (error: Error) => void;
}

/** One thread, from its start to its exit. */
interface Thread {
  readonly worker: Worker;
  readonly pending: Map<number, Pending>;
  readonly exited: Promise<void>;
}

/** Starts the thread and waits until the ledger is open. */
export async function connectStore(
  settings: StoreSettings,
  { monotonicMs = () => performance.now(), now }: StoreClientParts,
): Promise<StoreClient> {
  let lastId = 0;
  let closed = false;
  let unsent: NumberedCall[] = [];
  let thread: Thread | null = null;
  let waitingForThread = 0;
  const reopen = openReopening(() => startThread(settings, forget), monotonicMs);
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

  async function postToNextThread(name: OperationName, argument: unknown): Promise<never> {
    if (waitingForThread >= limits.ledgerWaitingMax) throw tooMany();
    waitingForThread += 1;
    try {
      thread = await reopen.next();
    } finally {
      waitingForThread -= 1;
    }
    return post(name, argument, thread);
  }

  function post(name: OperationName, argument: unknown, to: Thread): Promise<never> {
    if (to.pending.size >= limits.ledgerWaitingMax) return Promise.reject(tooMany());
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
        return Promise.reject(
          new StoreFault("unavailable", "the ledger has been closed", { reason: "closed" }),
        );
      return thread === null ? postToNextThread(name, argument) : post(name, argument, thread);
    },
    async [Symbol.asyncDispose]() {
      closed = true;
      // A thread that is still opening the file keeps the process from ending, too.
      const ending = thread ?? (await reopen.underWay());
      if (ending === null) return;
      // `flush` is queued for the calls of this tick, and `close` has to come after it.
      await Promise.resolve();
      const message: ToWorker = { type: "close" };
      ending.worker.postMessage(message, []);
      await ending.exited;
    },
  };
}

interface Reopening {
  /** The next thread, the same one for all who ask; rejects with a StoreFault. */
  next(): Promise<Thread>;
  /** The thread that is being started; null: none is, or it could not open the ledger. */
  underWay(): Promise<Thread | null>;
}

/** Starts one thread at a time, after twice the wait each time while threads end soon: a start reads and locks the file. */
function openReopening(start: () => Promise<Thread>, monotonicMs: () => number): Reopening {
  let opening: Promise<Thread> | null = null;
  let reason: unknown = null;
  let startedAtMs = monotonicMs();
  let delayMs: number = limits.ledgerRestartFirstMs;

  async function open(): Promise<Thread> {
    try {
      return await start();
    } catch (error) {
      reason = error;
      throw asFault(error);
    } finally {
      opening = null;
    }
  }

  return {
    next() {
      if (opening !== null) return opening;
      const livedMs = monotonicMs() - startedAtMs;
      if (livedMs < delayMs) return Promise.reject(asFault(reason));
      const calm = livedMs >= 2 * limits.ledgerRestartLongestMs;
      delayMs = calm
        ? limits.ledgerRestartFirstMs
        : Math.min(delayMs * 2, limits.ledgerRestartLongestMs);
      startedAtMs = monotonicMs();
      opening = open();
      return opening;
    },
    underWay: () => opening?.catch(() => null) ?? Promise.resolve(null),
  };
}

/** The fault of calls whose thread has ended, also where its file cannot be opened again: settlements are tried again. */
function asFault(error: unknown): StoreFault {
  if (error instanceof StoreFault) return error;
  const words = error instanceof Error ? `: ${error.message}` : " and is being replaced";
  return new StoreFault("unavailable", `the ledger's thread has ended${words}`, {
    reason: "thread-ended",
    ...(error instanceof Error ? { cause: error } : {}),
  });
}

function tooMany(): StoreFault {
  return new StoreFault("busy", "too many operations wait for the ledger", {
    reason: "overloaded",
  });
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
      // Before the pending calls reject: the next call must not go to this thread.
      forget(worker);
      for (const { reject } of pending.values()) reject(asFault(cause));
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
            // The id names the call, and with it the type of its answer.
            else waiting?.resolve(answer.value as never);
          }
          return;
        default:
          message satisfies never;
      }
    });
    worker.on("exit", () => {
      reject(asFault(cause));
    });
  });
  return { worker, pending, exited };
}
