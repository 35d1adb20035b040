import { statSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { openStore } from "../../src/ledger/sqlite/store.ts";
import { newId } from "../../src/new-id.ts";
import { defaultSettings, openTill, temporaryLedger } from "./support.ts";

test("ids with a time sort by it, have the length of all others, and differ within a moment", () => {
  const times = [0, 1, 61, 62, 1_760_000_000_000, 1_760_000_000_001, 62 ** 8 - 1];
  const ids = times.map((atMs) => newId("req_", atMs));
  // By code units, as SQLite compares text.
  expect(ids.toSorted()).toEqual(ids);
  expect(ids.map((id) => id.slice(4, 12))[3]).toBe("00000010");
  for (const id of [...ids, newId("req_")]) expect(id).toMatch(/^req_[0-9A-Za-z]{24}$/u);
  expect(new Set(Array.from({ length: 1_000 }, () => newId("req_", 5))).size).toBe(1_000);
});

test("a group of admissions writes the few pages that the one before wrote", () => {
  using file = temporaryLedger();
  const settings = { ...defaultSettings, path: file.path, concurrencyPerAccount: 10_000 };
  using store = openStore(settings);
  const till = openTill(store, "a", 10n ** 15n);
  const caller = till.authorize();
  let nowMs = 1_760_000_000_000;
  const admitGroup = (): void => {
    const calls = Array.from({ length: 32 }, () => ({
      name: "admit" as const,
      argument: {
        requestId: newId("req_", (nowMs += 1)) as `req_${string}`,
        caller,
        inputBound: 100,
        outputTokensRequested: 10,
        outputTokensFitting: null,
        format: "responses",
        streamed: true,
        label: null,
      },
      nowMs,
    }));
    expect(store.execute(calls).every((answer) => answer.ok)).toBe(true);
  };
  for (let group = 0; group < 40; group += 1) admitGroup();
  using other = new DatabaseSync(file.path);
  other.exec("pragma wal_checkpoint(truncate)");
  admitGroup();
  // Rows, journal and account, and the ends of five indexes; random ids alone touch about twenty more.
  expect(statSync(`${file.path}-wal`).size / (4_096 + 24)).toBeLessThan(24);
});
