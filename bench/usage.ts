import { parseArgs } from "node:util";
import type { StoreLedger } from "../src/ledger/store-ledger.ts";
import type { UsageQuery } from "../src/ledger/usage/usage-query.ts";
import { writtenAccount, writtenKey } from "../tests/doubles/many-receipts.ts";
import { measureBeside, openLedger } from "./usage-beside.ts";

// node bench/usage.ts sqlite:PATH | postgres://... [--beside]: how long a year of usage takes, after all of it is kept; or how
// long chunks of 32 paced streams take while one such question is asked after another

/** Adds up what is not kept yet; how many steps it took, and how long the longest was. */
async function keepAll(ledger: StoreLedger): Promise<{ steps: number; longestMs: number }> {
  let [steps, longestMs] = [0, 0];
  for (let after: string | null = ""; after !== null;) {
    const found = await ledger.findUnsummed(after);
    for (let waiting = found.accountIds; waiting.length > 0;) {
      const startedMs = performance.now();
      const { done } = await ledger.keepUsage(waiting);
      longestMs = Math.max(longestMs, performance.now() - startedMs);
      steps += 1;
      waiting = waiting.filter((id) => !done.includes(id));
    }
    after = found.last;
  }
  return { steps, longestMs };
}

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { beside: { type: "boolean" } },
});
const [address] = positionals;
if (address === undefined) throw new Error("name a ledger: sqlite:PATH or postgres://...");
await using ledger = await openLedger(address);
const startedMs = performance.now();
const { longestMs, steps } = await keepAll(ledger);
process.stdout.write(
  `kept in ${String(steps)} steps, ${((performance.now() - startedMs) / 1_000).toFixed(1)} s, the longest ${longestMs.toFixed(1)} ms\n`,
);
const untilMs = Date.now();
const year = {
  accountId: null,
  keyId: null,
  format: null,
  sinceMs: untilMs - 365 * 86_400_000,
  untilMs,
  timezone: "UTC",
} as const;
const halves = ["month", "day", "hour", "account", "key", "format", "label"] as const;
const times = new Set<string>(["month", "day", "hour"]);
const pairs = halves.flatMap((one, at) =>
  halves
    .slice(at + 1)
    .filter((other) => !times.has(one) || !times.has(other))
    .map((other) => [one, other]),
);
const queries: readonly (readonly [string, UsageQuery])[] = [
  ...[...halves.map((one) => [one]), ...pairs].map(
    (by) => [by.join(" and "), { ...year, by }] as const,
  ),
  ...["Europe/Berlin", "America/New_York", "Asia/Kathmandu"].flatMap((timezone) =>
    [["month"], ["day"], ["month", "account"], ["day", "account"], ["day", "label"]].map(
      (by) =>
        [
          `${by.join(" and ")}, ${timezone}`,
          { ...year, by: by as UsageQuery["by"], timezone },
        ] as const,
    ),
  ),
  ["hour of the largest account", { ...year, by: ["hour"], accountId: writtenAccount(0) }],
  ["day of the largest account", { ...year, by: ["day"], accountId: writtenAccount(0) }],
  [
    "label of one of its keys",
    { ...year, by: ["label"], keyId: writtenKey(0).id, accountId: writtenAccount(0) },
  ],
];
if (values.beside === true) await measureBeside(address, queries);
else
  for (const [name, query] of queries) {
    const milliseconds: number[] = [];
    const cpu: number[] = [];
    let [bytes, isAll] = [0, false];
    for (let round = 0; round < 3; round += 1) {
      const begunMs = performance.now();
      const before = process.cpuUsage();
      const { nextMs, text } = await ledger.printUsage({ ...query, form: "application/json" });
      const { system, user } = process.cpuUsage(before);
      [bytes, isAll] = [text.byteLength, nextMs === null];
      milliseconds.push(performance.now() - begunMs);
      cpu.push((user + system) / 1_000);
    }
    const shown = (all: readonly number[]): string => all.map((ms) => ms.toFixed(0)).join(", ");
    process.stdout.write(
      `${name}: ${shown(milliseconds)} ms, CPU here ${shown(cpu)} ms, ${(bytes / 1_000).toFixed(0)} kB${isAll ? "" : ", a first page"}\n`,
    );
  }
