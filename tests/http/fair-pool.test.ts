import { getEventListeners } from "node:events";
import { describe, expect, it } from "vitest";
import { Failure } from "../../src/failure.ts";
import { openFairPool } from "../../src/http/fair-pool.ts";

interface Task {
  readonly accountId: string;
  readonly name: string;
}

interface PoolOptions {
  readonly threads: number;
  /** When its threads have stopped; at once where it is left out. */
  readonly stopped?: Promise<void>;
}

/** A pool whose threads do what a test tells them: tasks whose name begins with "count" are patient. */
function openPool({ stopped: stopping, ...sizes }: PoolOptions) {
  const begun: string[] = [];
  const running = new Map<string, PromiseWithResolvers<string>>();
  let opened = 0;
  let stopped = 0;
  const pool = openFairPool<Task, string>({
    ...sizes,
    threadsPerAccount: 1,
    threadsForPatient: 1,
    isPatient: ({ name }) => name.startsWith("count"),
    openThread() {
      opened += 1;
      return {
        run({ name }) {
          begun.push(name);
          const answer = Promise.withResolvers<string>();
          running.set(name, answer);
          return answer.promise;
        },
        stop() {
          stopped += 1;
          for (const answer of running.values()) answer.reject(new Error("stopped"));
          return stopping ?? Promise.resolve();
        },
      };
    },
  });
  return {
    pool,
    begun,
    get threads() {
      return { opened, stopped };
    },
    run: (name: string, gone = new AbortController().signal): Promise<string> =>
      // The account is the letter before the number.
      pool.run({ accountId: /[A-Z]/.exec(name)?.[0] ?? "", name }, gone),
    /** Answers a task, and lets what waits for it begin. */
    end: async (name: string): Promise<void> => {
      running.get(name)?.resolve(`${name} done`);
      await new Promise((resolve) => setImmediate(resolve));
    },
    fail: async (name: string, error: Error): Promise<void> => {
      running.get(name)?.reject(error);
      await new Promise((resolve) => setImmediate(resolve));
    },
  };
}

describe("a pool of threads", () => {
  it("lets accounts take turns, each in its own order", async () => {
    const { begun, end, run } = openPool({ threads: 1 });
    const all = ["A1", "A2", "A3", "B1", "C1", "B2"].map((name) => run(name));
    for (const name of ["A1", "A2", "B1", "C1", "A3", "B2"]) await end(name);
    expect(begun).toEqual(["A1", "A2", "B1", "C1", "A3", "B2"]);
    expect(await Promise.all(all)).toEqual(
      ["A1", "A2", "A3", "B1", "C1", "B2"].map((name) => `${name} done`),
    );
  });

  it("lets an account that comes again wait behind those that came meanwhile", async () => {
    const { begun, end, run } = openPool({ threads: 1 });
    const all = ["A1", "B1", "A2", "C1"].map((name) => run(name));
    for (const name of ["A1", "B1", "A2", "C1"]) await end(name);
    expect(begun).toEqual(["A1", "B1", "A2", "C1"]);
    await Promise.all(all);
  });

  it("leaves nothing on the signal of a caller who was answered", async () => {
    const { end, run } = openPool({ threads: 1 });
    const { signal } = new AbortController();
    const all = ["A1", "A2"].map((name) => run(name, signal));
    expect(getEventListeners(signal, "abort")).toHaveLength(2);
    await end("A1");
    await end("A2");
    await Promise.all(all);
    expect(getEventListeners(signal, "abort")).toEqual([]);
  });

  it("is closed when its threads have stopped", async () => {
    const stopped = Promise.withResolvers<void>();
    const { end, pool, run } = openPool({ threads: 1, stopped: stopped.promise });
    const answer = run("A1");
    await end("A1");
    await answer;
    let closed = false;
    const closing = pool[Symbol.asyncDispose]().then(() => (closed = true));
    await new Promise(setImmediate);
    expect(closed).toBe(false);
    stopped.resolve();
    await closing;
  });

  it("keeps a thread for another account, however much one sends", async () => {
    const { begun, end, run } = openPool({ threads: 2 });
    const all = ["A1", "A2", "A3"].map((name) => run(name));
    expect(begun).toEqual(["A1"]);
    all.push(run("B1"));
    expect(begun).toEqual(["A1", "B1"]);
    await end("B1");
    expect(begun).toEqual(["A1", "B1"]);
    await end("A1");
    await end("A2");
    await end("A3");
    await Promise.all(all);
  });

  it("keeps a thread for those who are not patient, also of the same account", async () => {
    const { begun, end, run } = openPool({ threads: 3 });
    const counts = ["count A1", "count A2", "count B1"].map((name) => run(name));
    expect(begun).toEqual(["count A1"]);
    const others = ["A1", "B1"].map((name) => run(name));
    expect(begun).toEqual(["count A1", "A1", "B1"]);
    await end("A1");
    expect(begun).toHaveLength(3);
    await end("count A1");
    expect(begun.at(-1)).toBe("count A2");
    await end("count A2");
    expect(begun.at(-1)).toBe("count B1");
    await end("count B1");
    await end("B1");
    await Promise.all([...counts, ...others]);
  });

  it("opens no more threads than are needed, nor than there may be", async () => {
    const pool = openPool({ threads: 2 });
    expect(pool.threads.opened).toBe(0);
    for (const name of ["A1", "A2"]) {
      const done = pool.run(name);
      await pool.end(name);
      await done;
    }
    expect(pool.threads.opened).toBe(1);
    expect(pool.pool.load).toEqual({ waiting: 0, busy: 0 });
    const all = ["A3", "B1", "C1"].map((name) => pool.run(name));
    expect(pool.threads.opened).toBe(2);
    expect(pool.pool.load).toEqual({ waiting: 1, busy: 2 });
    for (const name of ["A3", "B1", "C1"]) await pool.end(name);
    await Promise.all(all);
    await pool.pool[Symbol.asyncDispose]();
    expect(pool.threads).toEqual({ opened: 2, stopped: 2 });
  });

  it("does not begin what its caller waits for no more", async () => {
    const { begun, end, run } = openPool({ threads: 1 });
    const gone = new AbortController();
    const first = run("A1", gone.signal);
    const second = run("A2", gone.signal);
    const third = run("B1");
    gone.abort();
    // No fault of the service: the log has it as a caller's.
    await expect(second).rejects.toMatchObject({ code: "invalid_request", message: /broke off/ });
    await expect(run("A3", gone.signal)).rejects.toThrow("broke off");
    await end("A1");
    await end("B1");
    expect(begun).toEqual(["A1", "B1"]);
    // What had begun goes to its end.
    expect(await Promise.all([first, third])).toEqual(["A1 done", "B1 done"]);
  });

  it("goes on behind a task that fails", async () => {
    const { begun, end, fail, run } = openPool({ threads: 1 });
    const first = run("A1");
    const failed = expect(first).rejects.toThrow("the thread died");
    const second = run("A2");
    await fail("A1", new Error("the thread died"));
    await failed;
    expect(begun).toEqual(["A1", "A2"]);
    await end("A2");
    await second;
  });

  it("tells everyone who waits when it is closed", async () => {
    const { begun, pool, run } = openPool({ threads: 1 });
    const outcomes = ["A1", "A2", "B1"].map((name) => run(name).catch((error: unknown) => error));
    await pool[Symbol.asyncDispose]();
    const [began, ...waited] = await Promise.all(outcomes);
    expect(began).toMatchObject({ message: "stopped" });
    for (const error of waited) {
      expect(error).toBeInstanceOf(Failure);
      expect(error).toMatchObject({ code: "overloaded" });
    }
    await expect(run("C1")).rejects.toMatchObject({ code: "overloaded" });
    expect(begun).toEqual(["A1"]);
  });
});
