import { afterAll, expect, test } from "vitest";
import type { Plan } from "./plan.ts";
import { runPlan } from "./run-plan.ts";
import { shrinkPlan } from "./shrink.ts";
import { planFor, runSeed } from "./simulate.ts";
import type { Execute, SimulatedStore } from "./simulated-store.ts";
import { openSqliteStores } from "./sqlite-store.ts";

const stores = openSqliteStores();
afterAll(() => {
  stores[Symbol.dispose]();
});

test("a seed does the same every time", async () => {
  const traceOf = async (seed: number): Promise<readonly string[]> => {
    const plan = planFor(seed, stores);
    const { trace } = await runPlan(plan, seed, { store: stores.fresh(plan.rules), traced: true });
    return trace;
  };
  for (const seed of [3, 41, 108]) {
    const first = await traceOf(seed);
    expect(first.length).toBeGreaterThan(20);
    expect(await traceOf(seed)).toEqual(first);
  }
});

test("no rule breaks in the first seeds", async () => {
  for (let seed = 1; seed <= 60; seed += 1) {
    const { violation } = await runSeed(seed, stores);
    expect(violation?.message ?? "none", `seed ${String(seed)}`).toBe("none");
  }
});

/** A store whose settlements say that nothing was charged. */
function forgetful(store: SimulatedStore): SimulatedStore {
  return {
    ...store,
    async openProcess(...parameters): Promise<Execute> {
      const execute = await store.openProcess(...parameters);
      return async (calls) =>
        (await execute(calls)).map((answer, index) =>
          answer.ok && calls[index]?.name === "settle"
            ? { ok: true, value: { chargedNanos: 0n, applied: true } }
            : answer,
        );
    },
  };
}

test("shrinks a plan to what the violation needs", async () => {
  const rule = "the answer of settle";
  for (let seed = 1; seed <= 60; seed += 1) {
    const breaks = async (plan: Plan): Promise<boolean> => {
      const store = forgetful(stores.fresh(plan.rules));
      return (await runPlan(plan, seed, { store, traced: false })).violation?.rule === rule;
    };
    const plan = planFor(seed, stores);
    if (plan.requests.length < 5 || plan.incidents.length < 2 || !(await breaks(plan))) continue;
    const shrunk = await shrinkPlan(plan, breaks);
    // One request settles; how its steps come to fall may need another, and then none that is left can go.
    expect(shrunk.requests.length).toBeLessThanOrEqual(2);
    for (const one of [...shrunk.requests, ...shrunk.incidents]) {
      const without = {
        ...shrunk,
        requests: shrunk.requests.filter((other) => other !== one),
        incidents: shrunk.incidents.filter((other) => other !== one),
      };
      expect(await breaks(without)).toBe(false);
    }
    return;
  }
  throw new Error("no seed to shrink");
});
