import { describe, expect, test } from "vitest";
import { limits } from "../../src/limits.ts";
import type { ChannelMessage } from "../../src/processes/channel.ts";
import {
  type ForkServing,
  openServingPool,
  type ServingPool,
} from "../../src/processes/serving-pool.ts";
import { openManualTimers } from "../doubles/manual-timers.ts";

const { processRestartFirstMs, processSoundMs, processStartsMax } = limits;

/** A process that does what a test says. */
interface HeldChild {
  readonly processId: number;
  readonly killed: boolean;
  die(): void;
}

interface Scene {
  readonly pool: Promise<ServingPool>;
  readonly children: readonly HeldChild[];
  readonly timers: ReturnType<typeof openManualTimers>;
  /** What the pool told: the number of each process, and its pause. */
  readonly told: readonly string[];
  /** What becomes of starts from now on. */
  next: "serves" | "fails" | "dies" | "hangs";
}

function openScene(
  processes: number,
  {
    next = "serves",
    signal,
  }: { readonly next?: Scene["next"]; readonly signal?: AbortSignal } = {},
): Scene {
  const children: HeldChild[] = [];
  const told: string[] = [];
  const timers = openManualTimers();
  const fork: ForkServing = ({ exited, message }) => {
    let alive = true;
    const end = (signalName: string | null): void => {
      if (!alive) return;
      alive = false;
      queueMicrotask(() => exited({ code: signalName === null ? 1 : null, signal: signalName }));
    };
    const child = {
      processId: children.length + 1,
      killed: false,
      die: () => end("SIGSEGV"),
    };
    children.push(child);
    return {
      processId: child.processId,
      send(asked: ChannelMessage) {
        if (asked.type !== "ask") return;
        const { id } = asked;
        if (scene.next === "serves")
          queueMicrotask(() => message({ type: "answer", id, value: null }));
        if (scene.next === "dies") end(null);
        const error = { message: "no database", stack: null, code: null, operator: null };
        if (scene.next === "fails") queueMicrotask(() => message({ type: "failed", id, error }));
      },
      kill() {
        child.killed = true;
        end("SIGKILL");
      },
    };
  };
  const scene: Omit<Scene, "pool"> = { children, told, timers, next };
  const pool = openServingPool({
    processes,
    fork,
    answers: () => ({ log: () => {}, metrics: () => Promise.resolve(""), ledger: () => {} }),
    start: async ({ channel }) => void (await channel.ask("describe", null)),
    ended: ({ process }, { signal: by }, restartMs) =>
      told.push(`${String(process)} ended by ${String(by)}, again in ${String(restartMs)}`),
    notStarted: ({ process }, reason, retryMs) =>
      told.push(`${String(process)} not started: ${String(reason)}, again in ${String(retryMs)}`),
    timers,
    monotonicMs: timers.monotonicMs,
    ...(signal === undefined ? {} : { signal }),
  });
  return Object.assign(scene, { pool });
}

/** To the next timer. */
const advance = ({ timers }: Scene): void => timers.advance(Math.min(...timers.delays));

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe("the processes that serve", () => {
  test("are as many as asked for, the first one before the others", async () => {
    const scene = openScene(3);
    expect(scene.children).toHaveLength(1);
    await using pool = await scene.pool;
    expect(pool.serving.map(({ process, processId }) => [process, processId])).toEqual([
      [1, 1],
      [2, 2],
      [3, 3],
    ]);
  });

  test("are replaced at once when one dies, and ever later when it dies again soon", async () => {
    const scene = openScene(2);
    await using pool = await scene.pool;
    const dieAndWait = async (): Promise<void> => {
      scene.children.at(-1)?.die();
      await turn();
      advance(scene);
      await turn();
    };
    for (let times = 0; times < 3; times += 1) await dieAndWait();
    scene.timers.advance(processSoundMs);
    await dieAndWait();
    expect(scene.told).toEqual(
      [0, processRestartFirstMs, 2 * processRestartFirstMs, 0].map(
        (ms) => `2 ended by SIGSEGV, again in ${String(ms)}`,
      ),
    );
    expect(pool.serving.map(({ process }) => process)).toEqual([1, 2]);
  });

  test("end the service where none serves and none can be started, and not before", async () => {
    const scene = openScene(1);
    await using pool = await scene.pool;
    const failed = pool.failed.catch((error: unknown) => String(error));
    scene.next = "fails";
    scene.children[0]?.die();
    await turn();
    for (let times = 1; times < processStartsMax; times += 1) {
      advance(scene);
      await turn();
    }
    expect(scene.told).toHaveLength(processStartsMax);
    expect(await Promise.race([failed, turn()])).toBe(undefined);
    advance(scene);
    expect(await failed).toBe("Error: no database");
    expect(scene.children.slice(1).every(({ killed }) => killed)).toBe(true);
  });

  test("that fail at the first start are the failure of the start, and leave no process", async () => {
    const failing = openScene(2, { next: "fails" });
    await expect(failing.pool).rejects.toThrow("no database");
    expect(failing.children.map(({ killed }) => killed)).toEqual([true]);
    const dying = openScene(2, { next: "dies" });
    await expect(dying.pool).rejects.toThrow("serving process 1 has ended with code 1");
  });

  test("are not replaced once they end, nor told of", async () => {
    const scene = openScene(2);
    const pool = await scene.pool;
    pool.settle();
    scene.children[1]?.die();
    await turn();
    expect([scene.told, scene.timers.waiting]).toEqual([[], 0]);
    await pool[Symbol.asyncDispose]();
    expect(scene.children.map(({ killed }) => killed)).toEqual([true, false]);
  });

  test("are killed when the start is given up", async () => {
    const giveUp = new AbortController();
    const scene = openScene(2, { next: "hangs", signal: giveUp.signal });
    giveUp.abort();
    await expect(scene.pool).rejects.toMatchObject({ name: "AbortError" });
    expect(scene.children.map(({ killed }) => killed)).toEqual([true]);
  });
});
