import { describe, expect, it } from "vitest";
import { openThreadChoice, planThreads } from "../src/engine-threads.ts";

/** A machine of four cores on which we keep one busy, and others so many. */
function openMachine(cores = 4) {
  let nowMs = 0;
  let busyMs = 0;
  let ownMs = 0;
  let looks = 0;
  const choose = openThreadChoice({
    cores,
    now: () => nowMs,
    measure: () => {
      looks += 1;
      return { busyMs, ownMs };
    },
  });
  return {
    choose,
    looks: () => looks,
    pass(ms: number, others: number) {
      nowMs += ms;
      ownMs += ms;
      busyMs += ms * (1 + others);
    },
  };
}

describe("the number of threads", () => {
  it.each([
    { others: 0, threads: 4 },
    { others: 0.2, threads: 4 },
    { others: 0.5, threads: 3 },
    { others: 1.2, threads: 3 },
    { others: 1.6, threads: 2 },
    { others: 3, threads: 1 },
    { others: 12, threads: 1 },
  ])("is $threads of four cores while others take $others of them", ({ others, threads }) => {
    const machine = openMachine();
    machine.pass(1_000, others);
    expect(machine.choose()).toBe(threads);
  });

  it("leaves one core until something is known, and follows what changes", () => {
    const machine = openMachine();
    expect(machine.choose()).toBe(3);
    machine.pass(300, 0);
    expect(machine.choose()).toBe(4);
    machine.pass(300, 2);
    expect(machine.choose()).toBe(2);
    machine.pass(300, 0);
    expect(machine.choose()).toBe(4);
  });

  it("is looked at no more than four times a second", () => {
    const machine = openMachine();
    for (let batch = 0; batch < 100; batch += 1) {
      machine.pass(20, 0);
      machine.choose();
    }
    expect(machine.looks()).toBeLessThanOrEqual(1 + 2_000 / 250);
  });

  it("is never none", () => {
    const machine = openMachine(1);
    expect(machine.choose()).toBe(1);
    machine.pass(1_000, 1);
    expect(machine.choose()).toBe(1);
  });

  it("stays as it was set, and is one less than the cores beside a GPU", () => {
    const set = planThreads(3, false);
    expect([set.most, set.alone, set.shared(4)]).toEqual([3, 3, 3]);
    const beside = planThreads(null, true);
    expect(beside.shared(4)).toBe(beside.alone);
    expect(beside.most).toBe(beside.alone);
  });

  it("is the same all the time for what must be repeatable", () => {
    const plan = planThreads(null, false);
    expect(plan.alone).toBeGreaterThanOrEqual(1);
    expect(plan.alone).toBeLessThanOrEqual(plan.most);
  });

  it("leaves a core when there is one token to evaluate", () => {
    const plan = planThreads(null, false);
    expect(plan.shared(1)).toBeLessThanOrEqual(plan.alone);
  });
});
