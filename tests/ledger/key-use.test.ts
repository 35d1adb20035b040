import { expect, test } from "vitest";
import { openKeyUse } from "../../src/ledger/key-use.ts";
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
  return { scene, note: openKeyUse(run, () => scene.nowMs) };
}

test("a key costs one write a minute, however often it is used", () => {
  const { note, scene } = open();
  for (let count = 0; count < 1_000; count += 1) note(one);
  note(other);
  expect(scene.written).toEqual([
    { ...one, usedAtMs: 600_000 },
    { ...other, usedAtMs: 600_000 },
  ]);
  scene.nowMs += 59_999;
  note(one);
  expect(scene.written).toHaveLength(2);
  scene.nowMs += 1;
  note(one);
  note(one);
  expect(scene.written.slice(2)).toEqual([{ ...one, usedAtMs: 660_000 }]);
});

test("what could not be written is written with the next use", async () => {
  const { note, scene } = open();
  scene.fails = true;
  note(one);
  await Promise.resolve().then(() => undefined);
  scene.fails = false;
  note(one);
  note(one);
  expect(scene.written).toHaveLength(2);
});
