import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "../..");

/** What waits by the clock of the machine. Waits for turns of the event loop, and `expect.poll`, do not. */
const waits = [
  /(?<![.\w])set(?:Timeout|Interval)\(/u,
  /import \{[^}]*\bset(?:Timeout|Interval)\b[^}]*\} from "node:timers\/promises"/u,
  /AbortSignal\.timeout\(/u,
  /Atomics\.wait(?:Async)?\(/u,
];

/** Folders that only lanes beside the ordinary suite run: whole programs, most of them of others, in real time. */
const lanes = [
  "engine/tests",
  "tests/agents",
  "tests/engine",
  "tests/engines",
  "tests/fuzz",
  "tests/package",
  "tests/rolling",
  "tests/slow",
  "tests/soak",
  "tests/weights",
] as const;

/** Elsewhere: what is waited for is a process or a program of others, and the file says so at each wait. */
const allowed = [
  "tests/console/hostile.ts",
  "tests/doubles/eventually.ts",
  "tests/ledger/kill-child.ts",
  "tests/ledger/kill-rounds.ts",
  "tests/ledger/pgbouncer.ts",
  "tests/ledger/postgres-server.ts",
  "tests/ledger/presence.test.ts",
  "tests/packaging/services.ts",
  "tests/service/kill-service.ts",
  "tests/service/raw-requests.test.ts",
] as const;

function waitsIn(text: string): boolean {
  return waits.some((pattern) => pattern.test(text));
}

test("tests wait for events and move clocks by hand, but where the machine itself is waited for", () => {
  const files = ["tests", "engine/tests"].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
      .filter((name) => name.endsWith(".ts") && !name.includes("node_modules"))
      .map((name) => `${folder}/${name}`),
  );
  const waiting = files
    .filter((file) => file !== "tests/architecture/real-waits.test.ts")
    .filter((file) => !lanes.some((lane) => file.startsWith(`${lane}/`)))
    .filter((file) => waitsIn(readFileSync(join(root, file), "utf8")));
  expect(waiting.toSorted()).toEqual(allowed);
});

test.each(allowed)("%s says what it waits for in real time", (file) => {
  expect(readFileSync(join(root, file), "utf8")).toMatch(/\breal time\b|\btime is real\b/iu);
});

test.each([
  ["await new Promise((resolve) => setTimeout(resolve, 5));", true],
  ['import { setTimeout as sleep } from "node:timers/promises";', true],
  ["const timer = setInterval(look, 100);", true],
  ["fetch(url, { signal: AbortSignal.timeout(50) })", true],
  ['import { setImmediate as nextTurn } from "node:timers/promises";', false],
  ["socket.setTimeout(1_000); clearTimeout(timer);", false],
])("a wait is found in %s: %s", (text, found) => {
  expect(waitsIn(text)).toBe(found);
});
