import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, renameSync, rmdirSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { syncBuiltinESMExports } from "node:module";
import { fileURLToPath } from "node:url";
import workerThreads, { type Worker } from "node:worker_threads";
import { describe, expect, test } from "vitest";
import { openLeaseKeeper } from "../../src/ledger/lease-keeper.ts";
import type { AdmitOrder, Ledger } from "../../src/ledger/ledger.ts";
import { openSqliteLedger, type SqliteLedger } from "../../src/ledger/sqlite/sqlite-ledger.ts";
import type { StoreGroup } from "../../src/ledger/store-operations.ts";
import type { StoreSettings } from "../../src/ledger/sqlite/store.ts";
import { checkpointMisdatedEntries } from "./misdated-entries.ts";
import { auditProblems, codeOf, defaultSettings, temporaryLedger } from "./support.ts";
import { orderOf, settlementOf } from "./orders.ts";

// The ledger as the service has it: a thread of its own, groups of commits, other processes on the same file.

function open(path: string, settings: Partial<StoreSettings> = {}): Promise<SqliteLedger> {
  return openSqliteLedger({ ...defaultSettings, ...settings, path }, { now: Date.now });
}

async function newKey(ledger: SqliteLedger, creditNanos = 10n ** 12n): Promise<string> {
  const account = await ledger.createAccount("test", creditNanos);
  return (await ledger.createKey(account.id, "test")).secret;
}

async function refusal(promise: Promise<unknown>): Promise<string> {
  return promise.then(() => "done", codeOf);
}

/** Holds the file's write lock, as a long command of another process would. */
function lock(path: string): Disposable & { release(): void } {
  const database = new DatabaseSync(path);
  database.exec("begin immediate");
  const release = (): void => {
    if (database.isOpen) database.close();
  };
  return { release, [Symbol.dispose]: release };
}

async function admitOne(ledger: Ledger, key: string): Promise<AdmitOrder> {
  const admitted = orderOf(await ledger.authorize(key, true));
  await ledger.admit(admitted);
  return admitted;
}

describe("the ledger in its thread", () => {
  test("tells how long its commits took and how many calls shared each, and how long a request waited", async () => {
    using file = temporaryLedger();
    const groups: StoreGroup[] = [];
    const steps: string[] = [];
    await using ledger = await openSqliteLedger(
      { ...defaultSettings, path: file.path },
      {
        now: Date.now,
        onGroup: (group) => void groups.push(group),
        telemetry: {
          ledgerRetry: () => undefined,
          ledgerAnswered: (step, ms) => void steps.push(`${step} ${ms >= 0 ? "ended" : "began"}`),
        },
      },
    );
    const key = await newKey(ledger);
    groups.length = 0;
    const caller = await ledger.authorize(key, true);
    expect(groups, "authorizing waits for no disk").toEqual([]);
    const orders = Array.from({ length: 3 }, () => orderOf(caller));
    const admitting = Promise.all(orders.map((order) => ledger.admit(order)));
    expect(ledger.waiting()).toBe(3);
    await admitting;
    expect(ledger.waiting()).toBe(0);
    expect(groups.map(({ calls }) => calls)).toEqual([3]);
    expect(groups[0]?.ms).toBeGreaterThan(0);
    const [first = orderOf(caller)] = orders;
    await ledger.settle(settlementOf(first));
    const refused = { ...orderOf(caller), inputBound: 10 ** 12 };
    await expect(ledger.admit(refused)).rejects.toMatchObject({ code: "insufficient_credit" });
    const asked = ["authorize", "admit", "admit", "admit", "settle", "admit"];
    expect(steps).toEqual(asked.map((step) => `${step} ended`));
  });

  test("32 callers at once on two ledgers of one file: every account is exact", async () => {
    using file = temporaryLedger();
    await using service = await open(file.path);
    await using command = await open(file.path);
    const keys = await Promise.all(Array.from({ length: 8 }, () => newKey(service)));
    await Promise.all(
      Array.from({ length: 32 }, async (_, at) => {
        const ledger = at % 3 === 0 ? command : service;
        for (let round = 0; round < 6; round += 1) {
          const admitted = await admitOne(ledger, keys[at % 8] ?? "");
          expect(await ledger.settle(settlementOf(admitted))).toEqual({
            chargedNanos: 580_000n,
            applied: true,
          });
        }
      }),
    );
    const accounts = await command.listAccounts();
    expect(accounts.map(({ balanceNanos, heldNanos }) => [balanceNanos, heldNanos])).toEqual(
      Array.from({ length: 8 }, () => [10n ** 12n - 24n * 580_000n, 0n]),
    );
    expect(auditProblems(file.path)).toEqual([]);
  });

  test("of 24 admissions at once through two ledgers four are granted, and the tickets of the rest return", async () => {
    using file = temporaryLedger();
    await using one = await open(file.path);
    await using other = await open(file.path);
    const key = await newKey(one);
    const callers = await Promise.all(Array.from({ length: 24 }, () => one.authorize(key, true)));
    const answers = await Promise.all(
      callers.map((caller, at) => refusal((at % 2 === 0 ? one : other).admit(orderOf(caller)))),
    );
    expect(answers.filter((answer) => answer === "done")).toHaveLength(4);
    expect(answers.filter((answer) => answer === "too_many_concurrent")).toHaveLength(20);
    expect((await other.authorize(key, false)).rate.remaining).toBe(596);
    expect(auditProblems(file.path)).toEqual([]);
  });

  test("the rate is counted across ledgers of one file", async () => {
    using file = temporaryLedger();
    await using one = await open(file.path, { requestsPerMinute: 10 });
    await using other = await open(file.path, { requestsPerMinute: 10 });
    const key = await newKey(one);
    const answers = await Promise.all(
      Array.from({ length: 30 }, (_, at) =>
        refusal((at % 2 === 0 ? one : other).authorize(key, true)),
      ),
    );
    expect(answers.filter((answer) => answer === "done")).toHaveLength(10);
    expect(answers.filter((answer) => answer === "rate_limited")).toHaveLength(20);
  });

  test("ledgers of one file wait for each other's tickets", async () => {
    using file = temporaryLedger();
    await using one = await open(file.path);
    await using other = await open(file.path);
    const key = await newKey(one);
    for (let round = 0; round < 60; round += 1) {
      const answers = await Promise.all(
        [one, other, one, other].map((ledger, at) => refusal(ledger.authorize(key, at > 1))),
      );
      expect(answers).toEqual(["done", "done", "done", "done"]);
    }
  });

  test("what a command in another process changes holds from the next request on", async () => {
    using file = temporaryLedger();
    await using service = await open(file.path);
    await using command = await open(file.path);
    const account = await command.createAccount("test", 1n);
    const { record, secret } = await command.createKey(account.id, "test");
    const caller = await service.authorize(secret, true);
    expect(await refusal(service.admit(orderOf(caller)))).toBe("insufficient_credit");
    await command.creditAccount(account.id, 10n ** 12n, null);
    expect(await refusal(service.admit(orderOf(caller)))).toBe("done");
    await command.setAccountStatus(account.id, "disabled");
    expect(await refusal(service.authorize(secret, true))).toBe("account_disabled");
    await command.setAccountStatus(account.id, "active");
    await command.revokeKey(record.id);
    expect(await refusal(service.authorize(secret, true))).toBe("authentication");
  });

  test("a malformed key is refused without the store", async () => {
    using file = temporaryLedger();
    const ledger = await open(file.path);
    await ledger[Symbol.asyncDispose]();
    // The store is closed: only what does not reach it can still be answered so.
    expect(await refusal(ledger.authorize("trib_a_b_c", true))).toBe("authentication");
    expect(await refusal(ledger.authorize(`trib_a_b_${"c".repeat(43)}`, true))).toBe("overloaded");
  });

  test("keeps a receipt of every request", async () => {
    using file = temporaryLedger();
    await using ledger = await open(file.path);
    const admitted = await admitOne(ledger, await newKey(ledger));
    const usage = {
      inputTokens: 500,
      cachedInputTokens: 100,
      outputTokens: 20,
      reasoningTokens: 5,
    };
    await ledger.settle({ ...settlementOf(admitted), usage });
    using reader = new DatabaseSync(file.path, { readOnly: true });
    expect(
      reader
        .prepare(
          `select format, streamed, input_bound, allowance, reserved_nanos, charged_nanos, outcome, input_tokens,
             cached_input_tokens, output_tokens, reasoning_tokens, first_output_ms, total_ms, key_id
           from reservation`,
        )
        .all()
        .map((row) => Object.values(row)),
    ).toEqual([
      [
        "messages",
        1,
        1_000,
        100,
        1_400_000,
        580_000,
        "completed",
        500,
        100,
        20,
        5,
        3,
        9,
        admitted.caller.keyId,
      ],
    ]);
    expect(
      reader
        .prepare(
          "select kind, balance_delta_nanos, held_delta_nanos, note from entry order by sequence",
        )
        .all()
        .map((row) => Object.values(row)),
    ).toEqual([
      ["credit", 10 ** 12, 0, "starting credit"],
      ["reserve", 0, 1_400_000, null],
      ["settle", -580_000, -1_400_000, null],
    ]);
  });

  test("refuses a settlement that no price can be put on", async () => {
    await using ledger = await open(":memory:");
    const admitted = await admitOne(ledger, await newKey(ledger));
    const usage = { inputTokens: 1, cachedInputTokens: 0, outputTokens: 0.5, reasoningTokens: 0 };
    expect(await refusal(ledger.settle({ ...settlementOf(admitted), usage }))).toBe("internal");
    expect(await refusal(ledger.settle({ ...settlementOf(admitted), totalMs: -1 }))).toBe(
      "internal",
    );
    expect((await ledger.settle(settlementOf(admitted))).applied).toBe(true);
  });

  test("expires everything that is due, however many", async () => {
    let nowMs = 1_000;
    await using ledger = await openSqliteLedger(
      { ...defaultSettings, path: ":memory:", concurrencyPerAccount: 1_000 },
      { now: () => nowMs },
    );
    const key = await newKey(ledger);
    await Promise.all(Array.from({ length: 600 }, () => admitOne(ledger, key)));
    nowMs += 60_000;
    expect(await ledger.expire()).toBe(600);
    expect(await ledger.expire()).toBe(0);
  });
});

describe("when the store cannot", () => {
  test("requests wait for another process, within bounds, and are then refused as overload", async () => {
    using file = temporaryLedger();
    await using ledger = await open(file.path, { busyMs: 60 });
    const key = await newKey(ledger);
    const caller = await ledger.authorize(key, true);
    {
      using held = lock(file.path);
      const failure = await ledger.admit(orderOf(caller)).catch((error: unknown) => error);
      expect(failure).toMatchObject({ code: "overloaded", facts: { retryAfterSeconds: 2 } });
      expect(String(failure)).not.toContain("locked");
      await expect(ledger.createAccount("test", 1n)).rejects.toThrow(
        "Another process keeps the ledger locked",
      );
      held.release();
    }
    expect(await refusal(ledger.admit(orderOf(caller)))).toBe("done");
  });

  test("keys are checked while another process keeps the accounts locked", async () => {
    using file = temporaryLedger();
    await using ledger = await open(file.path, { busyMs: 60 });
    const key = await newKey(ledger);
    using held = lock(file.path);
    expect(await refusal(ledger.authorize(key, true))).toBe("done");
    held.release();
  });

  test("calls that wait for the same lock do not wait one after another", async () => {
    using file = temporaryLedger();
    await using ledger = await open(file.path, { busyMs: 400 });
    const key = await newKey(ledger);
    using held = lock(`${file.path}-rate`);
    const startedAtMs = performance.now();
    const answers = await Promise.all(
      Array.from({ length: 25 }, () => refusal(ledger.authorize(key, true))),
    );
    expect(new Set(answers)).toEqual(new Set(["overloaded"]));
    // One after another they would take 10 s at least, on any machine.
    expect(performance.now() - startedAtMs).toBeLessThan(9_000);
    held.release();
    expect(await refusal(ledger.authorize(key, true))).toBe("done");
  });

  test("a settlement is tried until it is committed", async () => {
    using file = temporaryLedger();
    const retries: string[] = [];
    await using ledger = await openSqliteLedger(
      { ...defaultSettings, path: file.path, busyMs: 20 },
      {
        now: Date.now,
        telemetry: { ledgerRetry: ({ operation }) => void retries.push(operation) },
      },
    );
    const admitted = await admitOne(ledger, await newKey(ledger));
    const held = lock(file.path);
    const settling = ledger.settle(settlementOf(admitted));
    await expect.poll(() => retries.length).toBeGreaterThan(1);
    held.release();
    expect(await settling).toEqual({ chargedNanos: 580_000n, applied: true });
    expect(new Set(retries)).toEqual(new Set(["settle"]));
  });

  test("closing tries waiting settlements a last time", async () => {
    using file = temporaryLedger();
    let retries = 0;
    const ledger = await openSqliteLedger(
      { ...defaultSettings, path: file.path, busyMs: 20 },
      { now: Date.now, telemetry: { ledgerRetry: () => void (retries += 1) } },
    );
    const first = await admitOne(ledger, await newKey(ledger));
    const held = lock(file.path);
    const settling = refusal(ledger.settle(settlementOf(first)));
    await expect.poll(() => retries).toBeGreaterThan(0);
    await ledger[Symbol.asyncDispose]();
    expect(await settling).toBe("overloaded");
    held.release();
    const again = await open(file.path);
    const waiting = again.settle(settlementOf(first));
    await again[Symbol.asyncDispose]();
    expect((await waiting).applied).toBe(true);
    expect(auditProblems(file.path)).toEqual([]);
  });

  test("a path that cannot be used is told when the ledger is opened", async () => {
    await expect(open("/dev/null/ledger.sqlite")).rejects.toMatchObject({
      code: "ledger_unusable",
    });
  });

  test("a thread that dies is replaced, and settlements survive it", async () => {
    using file = temporaryLedger();
    using threads = watchThreads();
    await using ledger = await open(file.path);
    const key = await newKey(ledger);
    const admitted = await admitOne(ledger, key);
    const settling = ledger.settle(settlementOf(admitted));
    const [thread] = threads.started;
    await thread?.terminate();
    expect((await settling).chargedNanos).toBe(580_000n);
    expect(await refusal(ledger.authorize(key, true))).toBe("done");
    expect(threads.started).toHaveLength(2);
    expect(auditProblems(file.path)).toEqual([]);
  });
});

test("a checkpoint goes by the order of entries where their times cannot be true", async () => {
  using file = temporaryLedger();
  let now = 0;
  const parts = { now: () => now };
  await using ledger = await openSqliteLedger({ ...defaultSettings, path: file.path }, parts);
  await checkpointMisdatedEntries(ledger, (nowMs) => (now = nowMs));
});

/** A renewal that is sent in the same moment as a settlement, again and again; how many leases it says were lost. */
async function renewWhileSettling(ledger: Ledger, key: string, rounds: number): Promise<number> {
  let lost = 0;
  let next = Promise.withResolvers<() => void>();
  await using keeper = openLeaseKeeper(ledger, {
    leaseMs: 60_000,
    timers: {
      // The other timer is for the end of the earliest lease.
      set: (callback, delayMs) => void (delayMs <= 20_000 && next.resolve(callback)),
      clear: () => {},
    },
    telemetry: {
      leasesLost: ({ count }) => void (lost += count),
      reservationsExpired: () => {},
      lifecycle: () => {},
      ledgerRetry: () => {},
    },
  });
  for (let round = 0; round < rounds; round += 1) {
    const order = await admitOne(ledger, key);
    keeper.hold(order.requestId, () => void (lost += 1));
    const tick = await next.promise;
    next = Promise.withResolvers();
    // As a generation does it, with the steps that its promises take.
    keeper.settling(order.requestId);
    const settling = ledger
      .settle(settlementOf(order))
      .then(({ chargedNanos }) => chargedNanos)
      .catch(() => 0n)
      .finally(() => keeper.drop(order.requestId));
    tick();
    expect(await settling).toBe(580_000n);
  }
  await next.promise;
  return lost;
}

test("a lease that is renewed in the moment of its settlement is not reported as lost", async () => {
  using file = temporaryLedger();
  await using ledger = await open(file.path);
  expect(await renewWhileSettling(ledger, await newKey(ledger), 20)).toBe(0);
});

describe("a thread that dies while the file is locked", () => {
  test("is replaced by one, which all wait for, and which ends with the ledger", async () => {
    using file = temporaryLedger();
    using threads = watchThreads();
    let monotonicMs = 0;
    const ledger = await openSqliteLedger(
      { ...defaultSettings, path: file.path },
      { now: Date.now, monotonicMs: () => monotonicMs },
    );
    const key = await newKey(ledger);
    const held = lock(file.path);
    monotonicMs += 1_000;
    await threads.started[0]?.terminate();
    const answers: Promise<string>[] = [];
    for (let call = 0; call < 8; call += 1) {
      answers.push(refusal(ledger.authorize(key, true)));
      await new Promise((resolve) => setImmediate(resolve));
      monotonicMs += 10_000;
    }
    expect(threads.started).toHaveLength(2);
    held.release();
    expect(new Set(await Promise.all(answers))).toEqual(new Set(["done"]));
    await ledger[Symbol.asyncDispose]();
    // One that has ended has no number any more.
    expect(threads.started.map(({ threadId }) => threadId)).toEqual([-1, -1]);
    expect(auditProblems(file.path)).toEqual([]);
  });

  test("ends with a ledger that is closed before it has opened, after the settlement that waits for it", async () => {
    using file = temporaryLedger();
    using threads = watchThreads();
    const parts = { now: Date.now, monotonicMs: () => 10_000 * threads.started.length };
    const ledger = await openSqliteLedger({ ...defaultSettings, path: file.path }, parts);
    const admitted = await admitOne(ledger, await newKey(ledger));
    const held = lock(file.path);
    await threads.started[0]?.terminate();
    const settling = ledger.settle(settlementOf(admitted));
    await expect.poll(() => threads.started.length).toBe(2);
    const closing = ledger[Symbol.asyncDispose]();
    held.release();
    await closing;
    expect((await settling).applied).toBe(true);
    expect(threads.started.map(({ threadId }) => threadId)).toEqual([-1, -1]);
  });

  test("ends with a ledger that is closed while it opens, also where no settlement waits", async () => {
    using file = temporaryLedger();
    using threads = watchThreads();
    const parts = { now: Date.now, monotonicMs: () => 10_000 * threads.started.length };
    const ledger = await openSqliteLedger({ ...defaultSettings, path: file.path }, parts);
    const key = await newKey(ledger);
    const held = lock(file.path);
    await threads.started[0]?.terminate();
    const asked = refusal(ledger.authorize(key, true));
    await expect.poll(() => threads.started.length).toBe(2);
    const closing = ledger[Symbol.asyncDispose]();
    held.release();
    await closing;
    expect(threads.started.map(({ threadId }) => threadId)).toEqual([-1, -1]);
    expect(await asked).toBe("done");
  });

  test("is replaced ever more seldom while its file cannot be opened, and settlements wait for it", async () => {
    using file = temporaryLedger();
    using threads = watchThreads();
    let monotonicMs = 0;
    const retries: unknown[] = [];
    let again = (): void => {};
    const ledger = await openSqliteLedger(
      { ...defaultSettings, path: file.path },
      {
        now: Date.now,
        monotonicMs: () => monotonicMs,
        telemetry: { ledgerRetry: ({ cause }) => void retries.push(cause) },
        timers: { set: (work) => void (again = work), clear: () => {} },
      },
    );
    const key = await newKey(ledger);
    const admitted = await admitOne(ledger, key);
    await threads.started[0]?.terminate();
    const away = `${file.path}.away`;
    renameSync(file.path, away);
    mkdirSync(file.path);
    const settling = ledger.settle(settlementOf(admitted));
    const starts: number[] = [];
    for (; monotonicMs < 20_000; monotonicMs += 250) {
      const before = threads.started.length;
      expect(await refusal(ledger.authorize(key, true))).toBe("overloaded");
      if (threads.started.length > before) starts.push(monotonicMs);
    }
    expect(starts).toEqual([250, 750, 1_750, 3_750, 7_750, 12_750, 17_750]);
    expect(retries).toMatchObject([{ kind: "unavailable", reason: "thread-ended" }]);
    rmdirSync(file.path);
    renameSync(away, file.path);
    monotonicMs += 10_000;
    again();
    expect((await settling).applied).toBe(true);
    await ledger[Symbol.asyncDispose]();
  });
});

/** Every worker thread that is started from now on. */
function watchThreads(): Disposable & { readonly started: readonly Worker[] } {
  const started: Worker[] = [];
  const Original = workerThreads.Worker;
  workerThreads.Worker = class extends Original {
    constructor(...parameters: ConstructorParameters<typeof Original>) {
      super(...parameters);
      started.push(this);
    }
  };
  syncBuiltinESMExports();
  return {
    started,
    [Symbol.dispose]: () => {
      workerThreads.Worker = Original;
      syncBuiltinESMExports();
    },
  };
}

describe("the first start", () => {
  test("of four processes at once on a new file one makes the account", async () => {
    using file = temporaryLedger();
    const child = fileURLToPath(new URL("first-start-child.ts", import.meta.url));
    const outputs = await Promise.all(
      Array.from({ length: 4 }, async () => {
        const started = spawn(process.execPath, [child, file.path], {
          stdio: ["ignore", "pipe", "inherit"],
        });
        let output = "";
        started.stdout.setEncoding("utf8").on("data", (text: string) => (output += text));
        const [code] = await once(started, "close");
        return `${String(code)} ${output.trim()}`;
      }),
    );
    const made = outputs.filter((output) => output.startsWith("0 trib_"));
    expect([outputs.length, made.length]).toEqual([4, 1]);
    expect(outputs.filter((output) => output === "0 none")).toHaveLength(3);
    await using ledger = await open(file.path);
    expect(await refusal(ledger.authorize(made[0]?.slice(2) ?? "", true))).toBe("done");
    const [account, ...others] = await ledger.listAccounts();
    expect([account?.balanceNanos, others]).toEqual([10_000_000_000n, []]);
  });

  test("seal keys are the same for every process and every time", async () => {
    using file = temporaryLedger();
    await using one = await open(file.path);
    await using other = await open(file.path);
    const [first, second] = await Promise.all([one.sealKeys(), other.sealKeys()]);
    const untimed = (keys: typeof first): unknown => keys.map(({ id, secret }) => ({ id, secret }));
    expect(untimed(first)).toEqual(untimed(second));
    expect(first.map(({ secret }) => secret.length)).toEqual([32]);
    expect(first[0]?.id).toMatch(/^[0-9A-Za-z]+$/);
  });
});
