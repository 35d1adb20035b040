import { describe, expect, test } from "vitest";
import type { SealKeyRecord } from "../../src/ledger/records.ts";
import { openSealRing, type SealRing } from "../../src/ledger/seal-ring.ts";
import { openSqliteLedger } from "../../src/ledger/sqlite/sqlite-ledger.ts";
import { limits } from "../../src/limits.ts";
import { openReasoningSeal } from "../../src/seal/reasoning-seal.ts";
import { defaultSettings, temporaryLedger } from "./support.ts";

interface Scene {
  readonly ring: SealRing;
  readonly retries: string[];
  readonly timers: { waiting: (() => void) | null; cleared: number };
  /** Lets the next look at the keys be made, and done. */
  refresh(): Promise<void>;
}

async function openScene(read: () => Promise<readonly SealKeyRecord[]>): Promise<Scene> {
  const timers: Scene["timers"] = { waiting: null, cleared: 0 };
  const retries: string[] = [];
  const ring = await openSealRing(
    { sealKeys: read },
    {
      telemetry: { ledgerRetry: ({ operation }) => void retries.push(operation) },
      timers: {
        set(callback, delayMs) {
          expect(delayMs).toBe(limits.sealRefreshMs);
          timers.waiting = callback;
          return callback;
        },
        clear: () => void (timers.cleared += 1),
      },
    },
  );
  return {
    ring,
    retries,
    timers,
    async refresh() {
      const look = timers.waiting;
      timers.waiting = null;
      look?.();
      await expect.poll(() => timers.waiting).not.toBeNull();
    },
  };
}

const key = (id: string, ageMs: number): SealKeyRecord => ({
  id,
  ageMs,
  secret: new Uint8Array(32).fill(id.charCodeAt(0)),
});
const old = limits.sealKeyLearnMs;

describe("the keys that seal", () => {
  test.each([
    ["the newest that every process knows seals", [key("a", 9 * old), key("b", old)], "ab"],
    ["one that is younger opens only", [key("a", 9 * old), key("b", old - 1)], "ba"],
    ["two that are younger too", [key("a", 9 * old), key("b", 5), key("c", 0)], "bca"],
    ["the first of a ledger seals at once", [key("a", 0)], "a"],
    ["of several that are new the oldest seals", [key("a", 2), key("b", 1)], "ba"],
    ["a clock that was set back holds up no rotation", [key("a", old), key("b", -old)], "ab"],
  ])("%s", async (_name, keys, ids) => {
    const { ring } = await openScene(() => Promise.resolve(keys));
    expect(ring.keys.map(({ id }) => id).join("")).toBe(ids);
  });

  test("are looked at again and again, and kept while the ledger is away", async () => {
    let read = (): Promise<readonly SealKeyRecord[]> => Promise.resolve([key("a", old)]);
    const scene = await openScene(() => read());
    read = () => Promise.reject(new Error("no store"));
    await scene.refresh();
    expect(scene.retries).toEqual(["sealKeys"]);
    expect(scene.ring.keys.map(({ id }) => id)).toEqual(["a"]);
    read = () => Promise.resolve([key("a", 2 * old), key("b", old)]);
    await scene.refresh();
    expect(scene.ring.keys.map(({ id }) => id)).toEqual(["a", "b"]);
    scene.ring[Symbol.dispose]();
    expect(scene.timers.cleared).toBe(1);
  });
});

test("a rotation reaches two services that run, and what was sealed before still opens", async () => {
  using file = temporaryLedger();
  let now = 1_000_000;
  const open = (): ReturnType<typeof openSqliteLedger> =>
    openSqliteLedger({ ...defaultSettings, path: file.path }, { now: () => now });
  await using ledger = await open();
  await using command = await open();
  const one = await openScene(() => ledger.sealKeys());
  const other = await openScene(() => command.sealKeys());
  const seal = (scene: Scene): string =>
    openReasoningSeal(scene.ring.keys, "acct_a").seal("thought");
  const opens = (scene: Scene, sealed: string): boolean =>
    openReasoningSeal(scene.ring.keys, "acct_a").unseal(sealed) === "thought";
  const before = seal(one);
  const { id } = await command.rotateSealKey();
  now += limits.sealRefreshMs;
  await one.refresh();
  // The other has not looked yet: what the first seals must open there.
  expect(seal(one)).not.toContain(id);
  expect(opens(other, seal(one))).toBe(true);
  now += limits.sealKeyLearnMs;
  await one.refresh();
  await other.refresh();
  expect(seal(one)).toContain(`.${id}.`);
  expect([opens(other, seal(one)), opens(one, before), opens(other, before)]).toEqual([
    true,
    true,
    true,
  ]);
});
