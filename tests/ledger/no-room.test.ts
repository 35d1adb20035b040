import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync } from "node:fs";
import type { DatabaseSync } from "node:sqlite";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import type { AdmitOrder, Caller, Ledger } from "../../src/ledger/ledger.ts";
import type { StoreCall } from "../../src/ledger/store-operations.ts";
import { openDatabase } from "../../src/ledger/sqlite/database.ts";
import { openSqliteLedger } from "../../src/ledger/sqlite/sqlite-ledger.ts";
import { answerErrorFromData, answerErrorToData } from "../../src/ledger/sqlite/thread-messages.ts";
import { openStoreOn } from "../../src/ledger/sqlite/store.ts";
import { limits } from "../../src/limits.ts";
import { openStoreLedger, type StoreLedger } from "../../src/ledger/store-ledger.ts";
import { auditProblems, defaultSettings, temporaryLedger } from "./support.ts";
import { orderOf, settlementOf } from "./orders.ts";

// A file that cannot grow or be written to any more while requests run, and one that never could be.

interface Stuck extends AsyncDisposable {
  readonly ledger: StoreLedger;
  readonly database: DatabaseSync;
  readonly retries: readonly string[];
  readonly clock: { monotonicMs: number };
  /** Lets what waits for another try have it. */
  tryAgain(): void;
}

/** The ledger over the real store, without its thread, so that a test holds the store's own connection. */
function openWithConnection(path: string): Stuck {
  const settings = { ...defaultSettings, path, concurrencyPerAccount: 10_000 };
  const database = openDatabase(settings);
  const store = openStoreOn(database, settings);
  const retries: string[] = [];
  const clock = { monotonicMs: 0 };
  const waiting = new Set<() => void>();
  const ledger = openStoreLedger(
    {
      async call(name, argument) {
        await Promise.resolve();
        const call = { name, argument, nowMs: 1_000 } as unknown as StoreCall;
        const [answer] = store.execute([call]);
        if (answer?.ok === true) return answer.value as never;
        // As the thread tells it.
        throw answerErrorFromData(answerErrorToData(answer?.error));
      },
      [Symbol.asyncDispose]() {
        store[Symbol.dispose]();
        return Promise.resolve();
      },
    },
    {
      monotonicMs: () => clock.monotonicMs,
      telemetry: { ledgerRetry: ({ cause }) => void retries.push(String(cause)) },
      timers: {
        set: (work) => {
          waiting.add(work);
          return work;
        },
        clear: (timer) => void waiting.delete(timer as () => void),
      },
    },
  );
  return {
    ledger,
    database,
    retries,
    clock,
    tryAgain() {
      for (const work of [...waiting]) work();
    },
    [Symbol.asyncDispose]: () => ledger[Symbol.asyncDispose](),
  };
}

/** Admits until it is refused; what was admitted, and the refusal. */
async function admitUntilRefused(
  ledger: Ledger,
  caller: Caller,
): Promise<{ readonly admitted: readonly AdmitOrder[]; readonly refusal: unknown }> {
  const admitted: AdmitOrder[] = [];
  while (admitted.length < 5_000) {
    const order = orderOf(caller);
    try {
      await ledger.admit(order);
      admitted.push(order);
    } catch (refusal) {
      return { admitted, refusal };
    }
  }
  throw new Error("nothing was refused");
}

/** Every promise that could settle without a timer has. */
async function rest(): Promise<void> {
  for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

const ways = [
  {
    name: "a full disk",
    begin: "pragma main.max_page_count = 1",
    end: "pragma main.max_page_count = 100000",
    reason: /database or disk is full/,
    fault: "disk-full",
    // The write of a check needs no new page, so that only what requests met with can tell.
    checkedAlone: /^done$/,
  },
  {
    name: "a file that became read-only",
    begin: "pragma query_only = 1",
    end: "pragma query_only = 0",
    reason: /readonly database/,
    fault: "read-only",
    checkedAlone: /cannot reach its ledger/,
  },
];

describe.each(ways)("$name", ({ begin, checkedAlone, end, fault, reason }) => {
  test("admissions are refused as overload, settlements are kept and committed once there is room", async () => {
    using file = temporaryLedger();
    await using stuck = openWithConnection(file.path);
    const { clock, database, ledger, retries } = stuck;
    const account = await ledger.createAccount("test", 10n ** 12n);
    const { secret } = await ledger.createKey(account.id, "test");
    const caller = await ledger.authorize(secret, true);
    const running = Array.from({ length: 40 }, () => orderOf(caller));
    for (const order of running) await ledger.admit(order);

    database.exec(begin);
    const { admitted, refusal } = await admitUntilRefused(ledger, caller);
    expect(refusal).toMatchObject({ code: "overloaded", facts: { retryAfterSeconds: 2 } });
    running.push(...admitted);
    let settled = 0;
    const settling = running.map(async (order) => {
      const answer = await ledger.settle(settlementOf(order));
      settled += 1;
      return answer;
    });
    await rest();
    const unready: unknown = await ledger.check().catch((error: unknown) => error);
    expect(unready).toMatchObject({ code: "overloaded", cause: { reason: fault } });
    const kept = running.length - settled;
    // Some may still have fitted into the last page.
    expect(kept).toBeGreaterThan(0);
    expect(retries).toHaveLength(kept);
    for (const cause of retries) expect(cause).toMatch(reason);
    expect(auditProblems(file.path)).toEqual([]);
    stuck.tryAgain();
    await rest();
    expect(running.length - settled).toBeGreaterThan(0);
    expect((await ledger.verify([])).ok).toBe(true);
    clock.monotonicMs += limits.ledgerFaultHeldMs;
    const alone = await ledger.check().then(() => "done", String);
    expect(alone).toMatch(checkedAlone);

    database.exec(end);
    stuck.tryAgain();
    const answers = await Promise.all(settling);
    expect(
      new Set(answers.map(({ applied, chargedNanos }) => `${String(applied)} ${chargedNanos}`)),
    ).toEqual(new Set(["true 580000"]));
    expect(await ledger.showAccount(account.id)).toMatchObject({
      balanceNanos: 10n ** 12n - 580_000n * BigInt(running.length),
      heldNanos: 0n,
    });
    expect(await ledger.admit(orderOf(caller))).toMatchObject({ allowance: 100 });
    await ledger.check();
    expect(await ledger.verify([])).toMatchObject({ ok: true });
    expect(auditProblems(file.path)).toEqual([]);
  });
});

// Root may write to anything: then the process goes without that right. Another user's process could not read a clone in
// a folder that only root may enter.
const asOwner =
  process.getuid?.() === 0 ? ["setpriv", "--bounding-set", "-dac_override,-dac_read_search"] : [];

describe("a start on what may not be written to", () => {
  test.each([
    { name: "file", folderMode: 0o777, fileMode: 0o444 },
    { name: "folder", folderMode: 0o555, fileMode: 0o666 },
  ])("a read-only $name is told, with what to do", async ({ folderMode, fileMode }) => {
    using file = temporaryLedger();
    await openSqliteLedger({ ...defaultSettings, path: file.path }, { now: Date.now }).then(
      (ledger) => ledger[Symbol.asyncDispose](),
    );
    chmodSync(file.path, fileMode);
    chmodSync(`${file.path}-rate`, 0o666);
    chmodSync(file.folder, folderMode);
    const child = fileURLToPath(new URL("first-start-child.ts", import.meta.url));
    const [program, ...words] = [...asOwner, process.execPath, child, file.path];
    const started = spawn(program, words, { stdio: ["ignore", "pipe", "pipe"] });
    let errors = "";
    let output = "";
    started.stdout.setEncoding("utf8").on("data", (text: string) => (output += text));
    started.stderr.setEncoding("utf8").on("data", (text: string) => (errors += text));
    const [code] = await once(started, "close");
    chmodSync(file.folder, 0o700);
    expect([code, output]).toEqual([1, ""]);
    expect(errors).toContain(`The ledger ${file.path} cannot be opened: `);
    expect(errors).toMatch(/is writable and has room|Let this user write the file, its folder/);
    expect(auditProblems(file.path)).toEqual([]);
  });
});
