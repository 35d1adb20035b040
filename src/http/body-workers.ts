import { Worker } from "node:worker_threads";
import { Failure, failureFromData } from "../failure.ts";
import type { SealKey } from "../seal/reasoning-seal.ts";
import { entryUrl } from "../worker-url.ts";
import type { BodyTask, BodyTaskAnswer, CountedTokens, NumberedBodyTask } from "./body-tasks.ts";
import type { PreparedRequest } from "./prepare-request.ts";

/** Threads for what would hold up the streams: large bodies on one, token counts on another. */
export interface BodyWorkers extends AsyncDisposable {
  prepare(task: BodyTask & { readonly type: "prepare" }): Promise<PreparedRequest>;
  countTokens(task: BodyTask & { readonly type: "count-tokens" }): Promise<CountedTokens>;
}

/** Opens the threads; each starts with its first task, and each task gets the keys of its moment. */
export function openBodyWorkers(sealKeys: () => readonly SealKey[]): BodyWorkers {
  // Apart, so that a slow count never waits in front of a generation.
  const preparing = openThread(sealKeys);
  const counting = openThread(sealKeys);
  return {
    async prepare(task) {
      const answer = await preparing.run(task);
      if (answer.type !== "prepared") throw new Error("a body worker answered another question");
      return answer.prepared;
    },
    async countTokens(task) {
      const answer = await counting.run(task);
      if (answer.type !== "counted") throw new Error("a body worker answered another question");
      return answer.counted;
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([preparing.stop(), counting.stop()]);
    },
  };
}

interface Thread {
  run(task: BodyTask): Promise<BodyTaskAnswer>;
  stop(): Promise<void>;
}

interface Waiting {
  resolve(answer: BodyTaskAnswer): void;
  reject(error: Error): void;
}

function openThread(sealKeys: () => readonly SealKey[]): Thread {
  let worker: Worker | null = null;
  let tasks = 0;
  const waiting = new Map<number, Waiting>();

  function start(): Worker {
    const started = new Worker(entryUrl("body-worker", import.meta.url));
    started.unref();
    started.on("message", (answer: BodyTaskAnswer) => {
      const asker = waiting.get(answer.task);
      waiting.delete(answer.task);
      if (answer.type === "failed") asker?.reject(failureFromData(answer.failure));
      else asker?.resolve(answer);
    });
    const lost = (cause: unknown): void => {
      if (worker !== started) return;
      // The next task starts a new thread; what this one held is answered now.
      worker = null;
      const failure = new Failure(
        "internal",
        "Something went wrong inside the service. Try again.",
        { cause },
      );
      for (const asker of waiting.values()) asker.reject(failure);
      waiting.clear();
    };
    started.on("error", lost);
    started.on("exit", (code) => lost(new Error(`a body worker left with code ${String(code)}`)));
    return started;
  }

  return {
    run(task) {
      worker ??= start();
      const running = worker;
      tasks += 1;
      const number = tasks;
      return new Promise((resolve, reject) => {
        waiting.set(number, { resolve, reject });
        const message: NumberedBodyTask = { ...task, task: number, sealKeys: sealKeys() };
        running.postMessage(message, [task.bytes.buffer]);
      });
    },
    async stop() {
      const stopping = worker;
      worker = null;
      await stopping?.terminate();
    },
  };
}
