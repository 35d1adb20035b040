import { describe, expect, test } from "vitest";
import type { Caller, Ledger } from "../../src/ledger/ledger.ts";
import { StoreFault } from "../../src/ledger/store-fault.ts";
import { openStoreLedger } from "../../src/ledger/store-ledger.ts";
import { limits } from "../../src/limits.ts";
import { orderOf, settlementOf } from "./orders.ts";

interface Scene {
  readonly ledger: Ledger;
  readonly calls: string[];
  /** How long each wait for another try was to be, and the end of the last one. */
  readonly waits: number[];
  again: () => void;
  fault: StoreFault | null;
  nowMs: number;
}

/** A ledger over a store that answers, or fails with one fault. */
function openScene(): Scene {
  const calls: string[] = [];
  const waits: number[] = [];
  const state: Pick<Scene, "again" | "fault" | "nowMs"> = {
    again: () => {},
    fault: null,
    nowMs: 0,
  };
  const ledger = openStoreLedger(
    {
      call(name) {
        calls.push(name);
        // A check has room where a reservation has none.
        const fault = name === "check" ? null : state.fault;
        return fault === null ? Promise.resolve(null as never) : Promise.reject(fault);
      },
      [Symbol.asyncDispose]: () => Promise.resolve(),
    },
    {
      monotonicMs: () => state.nowMs,
      timers: {
        set(callback, delayMs) {
          waits.push(delayMs);
          state.again = callback;
          return null;
        },
        clear: () => {},
      },
    },
  );
  return Object.assign(state, { ledger, calls, waits });
}

const caller: Caller = {
  accountId: "acct_a",
  keyId: "key_a",
  ticket: null,
  rate: { limit: 1, remaining: 1, resetMs: 0 },
  concurrentRequests: 4,
};

function checked({ ledger }: Scene): Promise<unknown> {
  return ledger.check().then(
    () => "ready",
    (error: unknown) => (error as { readonly cause: StoreFault }).cause.reason,
  );
}

async function admitInVain(scene: Scene, fault: StoreFault): Promise<void> {
  scene.fault = fault;
  await expect(scene.ledger.admit(orderOf(caller))).rejects.toThrow();
  scene.fault = null;
}

const full = new StoreFault("unavailable", "full", { reason: "disk-full" });

describe("whether a ledger can be written", () => {
  test("is denied for as long as the fault of a request's write is fresh, without asking the store", async () => {
    const scene = openScene();
    await admitInVain(scene, full);
    scene.nowMs = limits.ledgerFaultHeldMs - 1;
    expect(await checked(scene)).toBe("disk-full");
    expect(scene.calls).not.toContain("check");
    scene.nowMs += 1;
    expect(await checked(scene)).toBe("ready");
    expect(scene.calls).toContain("check");
  });

  test("is true again once a request was written", async () => {
    const scene = openScene();
    await admitInVain(scene, full);
    await scene.ledger.settle(settlementOf(orderOf(caller)));
    expect(await checked(scene)).toBe("ready");
  });

  test("is not denied for a lock that has gone, a bug, or what writes nothing", async () => {
    const scene = openScene();
    await admitInVain(scene, new StoreFault("busy", "locked", { reason: "locked" }));
    await admitInVain(scene, new StoreFault("bug", "a bug"));
    scene.fault = full;
    await expect(scene.ledger.renew(["req_1"])).rejects.toThrow();
    expect(await checked(scene)).toBe("ready");
  });
});

describe("a settlement", () => {
  test("is tried again after ever longer waits, two seconds at most, until it is made", async () => {
    const scene = openScene();
    scene.fault = full;
    const settling = scene.ledger.settle(settlementOf(orderOf(caller)));
    const expected = [50, 100, 200, 400, 800, 1_600, 2_000, 2_000];
    for (let tries = 1; tries <= expected.length; tries += 1) {
      await expect.poll(() => scene.waits.length).toBe(tries);
      if (tries === expected.length) scene.fault = null;
      scene.again();
    }
    await settling;
    expect(scene.waits).toEqual(expected);
  });

  test("that fails by a bug is not tried again", async () => {
    const scene = openScene();
    scene.fault = new StoreFault("bug", "a bug");
    const settling = scene.ledger.settle(settlementOf(orderOf(caller)));
    await expect(settling).rejects.toMatchObject({ code: "internal" });
    expect([scene.waits, scene.calls]).toEqual([[], ["settle"]]);
  });
});
