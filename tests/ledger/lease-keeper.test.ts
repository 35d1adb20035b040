import { describe, expect, test } from "vitest";
import { Failure } from "../../src/failure.ts";
import { limits } from "../../src/limits.ts";
import { openLeaseKeeper, type LeaseKeeper } from "../../src/ledger/lease-keeper.ts";
import type { RequestId } from "../../src/ledger/scalars.ts";
import { StoreFault } from "../../src/ledger/store-fault.ts";
import type { GivenBack } from "../../src/ledger/ledger.ts";

/** Time that moves when the test moves it, with the timers that come due on the way. */
class FakeTime {
  nowMs = 0;
  private timers: { readonly atMs: number; readonly callback: () => void }[] = [];

  readonly timersPort = {
    set: (callback: () => void, delayMs: number): unknown => {
      const timer = { atMs: this.nowMs + delayMs, callback };
      this.timers.push(timer);
      return timer;
    },
    clear: (timer: unknown): void => {
      this.timers = this.timers.filter((one) => one !== timer);
    },
  };

  async advance(ms: number): Promise<void> {
    const endMs = this.nowMs + ms;
    await settled();
    for (;;) {
      const [next] = this.timers.toSorted((a, b) => a.atMs - b.atMs);
      if (next === undefined || next.atMs > endMs) break;
      this.timers = this.timers.filter((one) => one !== next);
      this.nowMs = Math.max(next.atMs, this.nowMs);
      next.callback();
      await settled();
    }
    this.nowMs = endMs;
  }

  get waiting(): number {
    return this.timers.length;
  }
}

/** Lets every promise that is ready run on. */
async function settled(): Promise<void> {
  for (let turns = 0; turns < 20; turns += 1) await Promise.resolve();
}

type Renew = (ids: readonly RequestId[]) => Promise<ReadonlySet<RequestId>>;

interface Scene extends AsyncDisposable {
  readonly time: FakeTime;
  readonly keeper: LeaseKeeper;
  readonly renewals: [number, readonly RequestId[]][];
  readonly expiries: number[];
  readonly events: string[];
  readonly looks: number[];
  renew: Renew;
  expired: number;
  dead: GivenBack;
  look?: () => Promise<GivenBack>;
  /** What operators have cancelled. */
  cancelled: readonly RequestId[];
  /** How long the machine has stood still: the monotonic clock did not see it. */
  suspendedMs: number;
}

const allOurs: Renew = (ids) => Promise.resolve(new Set(ids));

function openScene(leaseMs = 60_000, renew = allOurs): Scene {
  const time = new FakeTime();
  const events: string[] = [];
  const renewals: Scene["renewals"] = [];
  const expiries: number[] = [];
  const looks: number[] = [];
  const port: Pick<Scene, "renew" | "expired" | "dead" | "look" | "suspendedMs" | "cancelled"> = {
    renew,
    cancelled: [],
    expired: 0,
    dead: { count: 0, known: true, againInMs: null },
    suspendedMs: 0,
  };
  const keeper = openLeaseKeeper(
    {
      renew(ids) {
        renewals.push([time.nowMs, ids]);
        return port.renew(ids);
      },
      cancelledGenerations: () => Promise.resolve(port.cancelled),
      expire() {
        expiries.push(time.nowMs);
        return port.expired < 0
          ? Promise.reject(new Error("no store"))
          : Promise.resolve(port.expired);
      },
      giveBackDead() {
        looks.push(time.nowMs);
        return port.look?.() ?? Promise.resolve(port.dead);
      },
    },
    {
      leaseMs,
      monotonicMs: () => time.nowMs,
      wallMs: () => time.nowMs + port.suspendedMs,
      timers: time.timersPort,
      telemetry: {
        leasesLost: ({ count }) => void events.push(`lost ${String(count)}`),
        reservationsExpired: ({ count }) => void events.push(`expired ${String(count)}`),
        ledgerRetry: ({ operation }) => void events.push(`retry ${operation}`),
        lifecycle: (event, { reason }) => void events.push(`${event} ${reason ?? ""}`.trim()),
      },
    },
  );
  return Object.assign(port, {
    time,
    keeper,
    renewals,
    expiries,
    looks,
    events,
    [Symbol.asyncDispose]: () => keeper[Symbol.asyncDispose](),
  });
}

/** Holds a lease; the list says when it was lost. */
function hold(scene: Scene, id: RequestId, askedAtMs?: number): readonly number[] {
  const lostAt: number[] = [];
  scene.keeper.hold(id, () => void lostAt.push(scene.time.nowMs), askedAtMs);
  return lostAt;
}

describe("the lease keeper", () => {
  test("renews what runs every third of a lease, and nothing else", async () => {
    await using scene = openScene();
    await scene.time.advance(1_000);
    const lost = hold(scene, "req_1");
    hold(scene, "req_2");
    scene.keeper.drop("req_2");
    await scene.time.advance(199_000);
    expect(scene.renewals.map(([atMs]) => atMs)).toEqual(
      [20, 40, 60, 80, 100, 120, 140, 160, 180, 200].map((seconds) => seconds * 1_000),
    );
    expect(scene.renewals.every(([, ids]) => ids.join() === "req_1")).toBe(true);
    expect(lost).toEqual([]);
    expect(scene.events).toEqual([]);
  });

  test("gives back what dead processes left, at once and while running", async () => {
    await using scene = openScene();
    scene.expired = 3;
    await scene.time.advance(40_000);
    expect(scene.expiries).toEqual([0, 20_000, 40_000]);
    expect(scene.events).toContain("expired 3");
  });

  test("renews its own before it expires others", async () => {
    await using scene = openScene();
    await scene.time.advance(1);
    hold(scene, "req_1");
    const order: string[] = [];
    scene.renew = (ids) => {
      order.push(`renewed after ${String(scene.expiries.length)} expiries`);
      return allOurs(ids);
    };
    await scene.time.advance(20_000);
    expect(order).toEqual(["renewed after 1 expiries"]);
    expect(scene.expiries.length).toBe(2);
  });

  test("cancels at once what is no longer ours, once", async () => {
    await using scene = openScene();
    const first = hold(scene, "req_1");
    const second = hold(scene, "req_2");
    scene.renew = () => Promise.resolve(new Set<RequestId>(["req_2"]));
    await scene.time.advance(100_000);
    expect(first).toEqual([20_000]);
    expect(second).toEqual([]);
    expect(scene.events).toEqual(["lost 1"]);
  });

  test("ends what an operator cancelled with the next renewal, once, and renews it until it is settled", async () => {
    await using scene = openScene();
    const ended: string[] = [];
    scene.keeper.hold("req_1", (why) => void ended.push(`${why} at ${String(scene.time.nowMs)}`));
    const settling = hold(scene, "req_2");
    scene.keeper.settling("req_2");
    await scene.time.advance(1_000);
    scene.cancelled = ["req_1", "req_2", "req_elsewhere"];
    await scene.time.advance(60_000);
    expect(ended).toEqual(["cancelled-by-operator at 20000"]);
    expect(settling).toEqual([]);
    expect(scene.renewals.at(-1)?.[1]).toEqual(["req_1", "req_2"]);
    expect(scene.events).toEqual([]);
  });

  test("looks for what was cancelled at once where it is told to", async () => {
    await using scene = openScene();
    const lost = hold(scene, "req_1");
    await scene.time.advance(1_000);
    scene.cancelled = ["req_1"];
    scene.keeper.look();
    await scene.time.advance(1);
    expect(lost).toEqual([1_000]);
  });

  test("cancels 10 s before the lease ends what could not be renewed, and tries more often meanwhile", async () => {
    await using scene = openScene();
    scene.renew = () => Promise.reject(new Error("no store"));
    await scene.time.advance(5_000);
    const lost = hold(scene, "req_1");
    await scene.time.advance(49_999);
    expect(lost).toEqual([]);
    await scene.time.advance(10_000);
    expect(lost).toEqual([55_000]);
    expect(scene.renewals.map(([atMs]) => atMs)).toEqual([
      20_000, 25_000, 30_000, 35_000, 40_000, 45_000, 50_000, 55_000, 60_000,
    ]);
    expect(scene.events.filter((event) => event === "lost 1")).toHaveLength(1);
  });

  test("counts a lease from before it was asked for", async () => {
    await using scene = openScene();
    scene.renew = () => Promise.reject(new Error("no store"));
    await scene.time.advance(5_000);
    const lost = hold(scene, "req_1", 2_000);
    await scene.time.advance(100_000);
    expect(lost).toEqual([52_000]);
  });

  test("counts a renewal from when it was asked for, not from when it was answered", async () => {
    await using scene = openScene();
    const lost = hold(scene, "req_1");
    scene.renew = (ids) =>
      new Promise((resolve) => {
        scene.time.timersPort.set(() => {
          resolve(new Set(ids));
        }, 15_000);
        scene.renew = () => Promise.reject(new Error("no store"));
      });
    await scene.time.advance(200_000);
    // Asked for at 20 s: that lease ends at 80 s.
    expect(lost).toEqual([70_000]);
  });

  test("renews in its rhythm however long an answer takes, and sooner when others could not be expired", async () => {
    await using scene = openScene();
    hold(scene, "req_1");
    scene.renew = (ids) =>
      new Promise((resolve) => {
        scene.time.timersPort.set(() => {
          resolve(new Set(ids));
        }, 15_000);
      });
    await scene.time.advance(79_000);
    expect(scene.renewals.map(([atMs]) => atMs)).toEqual([20_000, 40_000, 60_000]);
    scene.renew = allOurs;
    scene.expired = -1;
    await scene.time.advance(7_000);
    expect(scene.renewals.map(([atMs]) => atMs).slice(3)).toEqual([80_000, 85_000]);
    expect(scene.events).toEqual(["retry expire", "retry expire"]);
  });

  test("cancels in time when the store does not answer at all", async () => {
    await using scene = openScene();
    const never = Promise.withResolvers<ReadonlySet<RequestId>>();
    scene.renew = () => never.promise;
    const lost = hold(scene, "req_1");
    const later = (await scene.time.advance(30_000), hold(scene, "req_2"));
    await scene.time.advance(100_000);
    expect([lost, later]).toEqual([[50_000], [80_000]]);
    never.resolve(new Set());
  });

  test("one that was dropped while it was being renewed is not lost", async () => {
    await using scene = openScene();
    const lost = hold(scene, "req_1");
    scene.renew = () => {
      scene.keeper.drop("req_1");
      return Promise.resolve(new Set());
    };
    await scene.time.advance(100_000);
    expect(lost).toEqual([]);
  });

  test("one whose settlement is on the way is renewed, and is not lost when the store calls it closed", async () => {
    await using scene = openScene();
    const lost = hold(scene, "req_1");
    scene.keeper.settling("req_1");
    await scene.time.advance(20_000);
    expect(scene.renewals).toEqual([[20_000, ["req_1"]]]);
    scene.renew = () => Promise.resolve(new Set());
    await scene.time.advance(20_000);
    expect(lost).toEqual([]);
    expect(scene.events).toEqual([]);
  });

  test("one whose settlement waits for a store that is away is not lost either", async () => {
    await using scene = openScene();
    const lost = hold(scene, "req_1");
    const other = hold(scene, "req_2");
    scene.keeper.settling("req_1");
    scene.keeper.settling("req_3");
    scene.renew = () => Promise.reject(new Error("no store"));
    await scene.time.advance(100_000);
    expect([lost, other]).toEqual([[], [50_000]]);
    expect(scene.events.filter((event) => event.startsWith("lost"))).toEqual(["lost 1"]);
  });

  test("short leases keep the proportions", async () => {
    await using scene = openScene(6_000);
    scene.renew = () => Promise.reject(new Error("no store"));
    const lost = hold(scene, "req_1");
    await scene.time.advance(20_000);
    expect(lost).toEqual([5_000]);
    expect(scene.renewals[0]?.[0]).toBe(2_000);
  });

  test("has given back what dead processes held within a second, and says how much", async () => {
    await using scene = openScene();
    await scene.time.advance(1_500);
    expect(scene.looks).toEqual([0, 750, 1_500]);
    scene.dead = { count: 4, known: true, againInMs: null };
    await scene.time.advance(750);
    expect(scene.events).toEqual(["expired 4"]);
    expect(scene.renewals).toEqual([]);
  });

  test("asks at once what is still its own when it was taken for dead", async () => {
    await using scene = openScene();
    await scene.time.advance(1_000);
    const [lost, kept] = [hold(scene, "req_1"), hold(scene, "req_2")];
    scene.dead = { count: 0, known: false, againInMs: null };
    scene.renew = (ids) => Promise.resolve(new Set(ids.filter((id) => id === "req_2")));
    await scene.time.advance(500);
    expect(scene.renewals[0]).toEqual([1_500, ["req_1", "req_2"]]);
    expect([lost, kept]).toEqual([[1_500], []]);
  });

  test("asks at once when the machine stood still, which its clock did not see", async () => {
    await using scene = openScene();
    await scene.time.advance(1_000);
    const lost = hold(scene, "req_1");
    scene.suspendedMs = 120_000;
    scene.renew = () => Promise.resolve(new Set());
    await scene.time.advance(500);
    expect([scene.renewals.length, lost]).toEqual([1, [1_500]]);
    // Once, and then every third of a lease again.
    hold(scene, "req_2");
    scene.renew = allOurs;
    await scene.time.advance(20_000);
    expect(scene.renewals.map(([atMs]) => atMs)).toEqual([1_500, 21_500]);
  });

  test("looks again when a process that is missed counts as dead, and frees what it held within 2 s of its death", async () => {
    for (const diedAtMs of [1, 400, 749]) {
      await using scene = openScene();
      const freedAtMs: number[] = [];
      let missedAtMs: number | null = null;
      scene.look = () => {
        const { nowMs } = scene.time;
        if (nowMs > diedAtMs) missedAtMs ??= nowMs;
        const leftMs = missedAtMs === null ? null : missedAtMs + limits.ledgerReturnMs - nowMs;
        if (leftMs !== null && leftMs <= 0) freedAtMs.push(nowMs);
        return Promise.resolve({
          ...scene.dead,
          againInMs: leftMs !== null && leftMs > 0 ? leftMs : null,
        });
      };
      await scene.time.advance(10_000);
      expect(freedAtMs[0]).toBe(limits.ledgerDeadAskMs + limits.ledgerReturnMs);
      // Before and after it looks as often as ever.
      expect(scene.looks.slice(0, 5)).toEqual([0, 750, 1_500, 2_000, 2_750]);
    }
    expect(limits.ledgerDeadAskMs + limits.ledgerReturnMs).toBeLessThanOrEqual(2_000);
  });

  test("says once that it cannot look, however long the ledger is away", async () => {
    await using scene = openScene();
    scene.look = () => Promise.reject(new Error("no store"));
    await scene.time.advance(5_000);
    expect(scene.events).toEqual(["retry giveBackDead"]);
  });

  test("says once that the ledger's file is gone, and when it is back", async () => {
    await using scene = openScene();
    const fault = new StoreFault("unavailable", "ledger.sqlite was deleted", {
      reason: "file-gone",
    });
    scene.look = () => Promise.reject(new Failure("overloaded", "Away.", { cause: fault }));
    await scene.time.advance(5_000);
    expect(scene.events).toEqual(["ledger gone ledger.sqlite was deleted"]);
    scene.look = () => Promise.resolve(scene.dead);
    await scene.time.advance(5_000);
    expect(scene.events.slice(1)).toEqual(["ledger back"]);
  });

  test("leaves no timer behind", async () => {
    const scene = openScene();
    hold(scene, "req_1");
    await scene.time.advance(30_000);
    await scene.keeper[Symbol.asyncDispose]();
    expect(scene.time.waiting).toBe(0);
  });
});
