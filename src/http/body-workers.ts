import { Worker } from "node:worker_threads";
import { failureFromData } from "../failure.ts";
import { limits } from "../limits.ts";
import type { SealKey } from "../seal/reasoning-seal.ts";
import type { Timers } from "../timers.ts";
import { entryUrl } from "../worker-url.ts";
import { openBodyThread } from "./body-thread.ts";
import type { BodyTask, BodyTaskAnswer, CountedTokens, SealedBodyTask } from "./body-tasks.ts";
import { openFairPool, type PoolLoad, type PoolThread } from "./fair-pool.ts";
import type { PreparedRequest } from "./prepare-request.ts";

/** Threads for what would hold up the streams: large bodies, and counts of tokens. Fair between accounts. */
export interface BodyWorkers extends AsyncDisposable {
  /** `gone`: the caller has left, so that nothing needs to be begun for it. */
  prepare(
    task: BodyTask & { readonly type: "prepare" },
    gone: AbortSignal,
  ): Promise<PreparedRequest>;
  countTokens(
    task: BodyTask & { readonly type: "count-tokens" },
    gone: AbortSignal,
  ): Promise<CountedTokens>;
  readonly load: PoolLoad;
}

/** Opens the threads; each starts when it is needed, and each task gets the keys of its moment. */
export function openBodyWorkers(sealKeys: () => readonly SealKey[], timers: Timers): BodyWorkers {
  const pool = openFairPool<BodyTask, BodyTaskAnswer>({
    threads: limits.bodyThreads,
    threadsPerAccount: limits.bodyThreadsPerAccount,
    threadsForPatient: limits.bodyThreadsForCounts,
    // A count may be slow, and waits in front of no generation.
    isPatient: ({ type }) => type === "count-tokens",
    openThread: () => openThread(sealKeys, timers),
  });
  return {
    async prepare(task, gone) {
      const answer = await pool.run(task, gone);
      if (answer.type !== "prepared") throw new Error("a body worker answered another question");
      return answer.prepared;
    },
    async countTokens(task, gone) {
      const answer = await pool.run(task, gone);
      if (answer.type !== "counted") throw new Error("a body worker answered another question");
      return answer.counted;
    },
    get load() {
      return pool.load;
    },
    [Symbol.asyncDispose]: () => pool[Symbol.asyncDispose](),
  };
}

function openThread(
  sealKeys: () => readonly SealKey[],
  timers: Timers,
): PoolThread<BodyTask, BodyTaskAnswer> {
  const url = entryUrl("body-thread-entry", import.meta.url);
  const thread = openBodyThread<SealedBodyTask, BodyTaskAnswer>(
    () =>
      new Worker(url, {
        name: "body",
        resourceLimits: { maxYoungGenerationSizeMb: limits.threadYoungMebibytes },
      }),
    timers,
  );
  return {
    async run(task) {
      const answer = await thread.run({ ...task, sealKeys: sealKeys() }, [task.bytes.buffer]);
      if (answer.type === "failed") throw failureFromData(answer.failure);
      return answer;
    },
    stop: () => thread.stop(),
  };
}
