import { expect, test } from "vitest";
import { openKeyUses } from "../../src/ledger/key-use.ts";
import type { KeyUse, RunOperation } from "../../src/ledger/store-operations.ts";

const one = { accountId: "acct_a", keyId: "key_a" } as const;
const other = { accountId: "acct_a", keyId: "key_b" } as const;

function open() {
  const written: KeyUse[] = [];
  const scene = { nowMs: 600_000, fails: false, written };
  const run = ((_name: string, use: KeyUse) => {
    written.push(use);
    return scene.fails ? Promise.reject(new Error("away")) : Promise.resolve(null);
  }) as unknown as RunOperation;
  return { scene, uses: openKeyUses(run, () => scene.nowMs) };
}

test("a key costs one write a minute, however often it is used, and none when it is used", () => {
  const { scene, uses } = open();
  for (let count = 0; count < 1_000; count += 1) uses.note(one);
  uses.note(other);
  expect(scene.written).toEqual([]);
  uses.write();
  uses.write();
  expect(scene.written).toEqual([
    { ...one, usedAtMs: 600_000 },
    { ...other, usedAtMs: 600_000 },
  ]);
  scene.nowMs += 59_999;
  uses.note(one);
  uses.write();
  expect(scene.written).toHaveLength(2);
  scene.nowMs += 1;
  uses.note(one);
  uses.note(one);
  uses.write();
  expect(scene.written.slice(2)).toEqual([{ ...one, usedAtMs: 660_000 }]);
});

test("what could not be written is written the next time, where nothing newer is", async () => {
  const { scene, uses } = open();
  scene.fails = true;
  uses.note(one);
  uses.note(other);
  uses.write();
  scene.nowMs += 60_000;
  uses.note(one);
  await Promise.resolve().then(() => undefined);
  scene.fails = false;
  uses.write();
  expect(scene.written.slice(2)).toEqual([
    { ...one, usedAtMs: 660_000 },
    { ...other, usedAtMs: 600_000 },
  ]);
});
