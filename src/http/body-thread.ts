import type { Worker } from "node:worker_threads";
import { Failure } from "../failure.ts";
import { limits } from "../limits.ts";
import type { Timers } from "../timers.ts";

/** A thread of our own that answers one message after another. */
export interface BodyThread<Question, Answer> {
  /** Rejects with a Failure when the thread ends instead of answering; the next question starts another one. */
  run(question: Question, transfer: readonly ArrayBuffer[]): Promise<Answer>;
  /** Ends the thread; a question that waits fails. */
  stop(): Promise<void>;
}

interface Life {
  readonly worker: Worker;
  readonly waiting: PromiseWithResolvers<unknown> | null;
}

/**
 * Opens a thread that starts with its first question, and ends when it was not asked for a while: what a large body
 * made the heap grow to goes back to the system only with the thread.
 */
export function openBodyThread<Question, Answer>(
  start: () => Worker,
  timers: Timers,
): BodyThread<Question, Answer> {
  let life: Life | null = null;
  let idleTimer: unknown;
  let stopped = false;

  function end(worker: Worker, cause: unknown): void {
    if (life?.worker !== worker) return;
    timers.clear(idleTimer);
    const { waiting } = life;
    life = null;
    waiting?.reject(threadEnded(cause));
  }

  function openWorker(): Worker {
    const worker = start();
    worker.unref();
    worker.on("message", (answer: Answer) => {
      if (life?.worker !== worker) return;
      life.waiting?.resolve(answer);
      life = { worker, waiting: null };
      idleTimer = timers.set(() => {
        life = null;
        void worker.terminate();
      }, limits.bodyThreadIdleMs);
    });
    worker.on("messageerror", (error) => {
      end(worker, error);
      void worker.terminate();
    });
    worker.on("error", (error) => end(worker, error));
    worker.on("exit", (code) => {
      end(worker, new Error(`a body worker left with code ${String(code)}`));
    });
    return worker;
  }

  return {
    run(question, transfer) {
      if (stopped) return Promise.reject(threadEnded(new Error("the thread has been stopped")));
      timers.clear(idleTimer);
      const worker = life?.worker ?? openWorker();
      const waiting = Promise.withResolvers<Answer>();
      life = { worker, waiting: waiting as PromiseWithResolvers<unknown> };
      worker.postMessage(question, transfer);
      return waiting.promise;
    },
    async stop() {
      stopped = true;
      const worker = life?.worker;
      if (worker === undefined) return;
      end(worker, new Error("the thread has been stopped"));
      await worker.terminate();
    },
  };
}

function threadEnded(cause: unknown): Failure {
  return new Failure("internal", "Something went wrong inside the service. Try again.", { cause });
}
