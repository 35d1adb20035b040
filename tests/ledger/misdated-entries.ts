import { expect } from "vitest";
import type { StoreLedger } from "../../src/ledger/store-ledger.ts";

const dayMs = 86_400_000;
const year = 365 * dayMs;

/** Checkpoints of accounts whose entries were written by clocks that were wrong; the same for every store. */
export async function checkpointMisdatedEntries(
  ledger: StoreLedger,
  setNow: (nowMs: number) => void,
): Promise<void> {
  const today = 100 * dayMs;
  const accountWith = async (daysAgo: readonly number[]): Promise<string> => {
    setNow(today);
    const { id } = await ledger.createAccount("test", 0n);
    for (const days of daysAgo) {
      setNow(today - days * dayMs);
      await ledger.creditAccount(id, 1n, null);
    }
    setNow(today);
    return id;
  };
  const checkpoint = (id: string): Promise<unknown> => ledger.checkpoint(id, today - 30 * dayMs);
  const ahead = -year / dayMs;

  // A clock that was a year ahead for one entry, and one that was 10 days ahead for another, do not end it for ever.
  const twice = await accountWith([90, 80, ahead, 70, 5, 60, 50, 3, 2, 1]);
  expect(await checkpoint(twice)).toEqual({ removed: 7, misdated: 2 });
  expect(await checkpoint(twice)).toEqual({ removed: 0, misdated: 0 });
  // What was written while it was ahead and is followed by nothing old stays, as what is new does.
  const last = await accountWith([90, 80, ahead, ahead, 3, 2]);
  expect(await checkpoint(last)).toEqual({ removed: 2, misdated: 0 });
  // A clock that was behind makes nothing before it old.
  const behind = await accountWith([5, 4, 3, 99, 2, 1]);
  expect(await checkpoint(behind)).toEqual({ removed: 0, misdated: 0 });
  const both = await accountWith([90, 80, 70, 5, 4, 99, 2]);
  expect(await checkpoint(both)).toEqual({ removed: 3, misdated: 0 });
  expect(await ledger.verify([])).toMatchObject({ ok: true });
}
