import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type {
  AnswerOf,
  ArgumentOf,
  OperationName,
  StoreClient,
} from "../../src/ledger/store-operations.ts";
import { connectPostgresStore } from "../../src/ledger/postgres/store.ts";
import { Failure } from "../../src/failure.ts";
import { limits } from "../../src/limits.ts";
import { execute, postgresTests, startPostgres, type PostgresServer } from "./postgres-server.ts";
import { defaultSettings, secretHash } from "./support.ts";

let server: PostgresServer;
let databases = 0;

beforeAll(async () => {
  if (postgresTests) server = await startPostgres();
});
afterAll(async () => {
  if (postgresTests) await server[Symbol.asyncDispose]();
});

/** Two services on one database, with a clock of their own and an account of four slots. */
interface Scene extends AsyncDisposable {
  readonly url: string;
  readonly one: StoreClient;
  readonly other: StoreClient;
  nowMs: number;
  admit(by: StoreClient, id: `req_${string}`): Promise<AnswerOf<"admit">>;
  held(): Promise<string>;
  /** Ends the sessions that hold the locks of processes, as the death of one does. */
  endSessions(): Promise<void>;
}

async function openScene(leaseMs = 60_000): Promise<Scene> {
  databases += 1;
  const url = await server.createDatabase(`presence_${String(databases)}`);
  const clock = { nowMs: 1_000_000_000 };
  const connect = (): Promise<StoreClient> =>
    connectPostgresStore(
      { ...defaultSettings, leaseMs, url, connections: 1 },
      { now: () => clock.nowMs, serves: true },
    );
  const one = await connect();
  const other = await connect();
  await one.call("createAccount", { id: "acct_a", name: "a", creditNanos: 1_000_000_000n });
  const key = { id: "key_a", accountId: "acct_a", name: "a", secretHash: secretHash("a") } as const;
  await one.call("createKey", key);
  for (const each of [one, other]) await each.call("giveBackDead", null);
  return Object.assign(clock, {
    url,
    one,
    other,
    admit: (by: StoreClient, requestId: `req_${string}`) =>
      by.call("admit", {
        requestId,
        caller: {
          accountId: "acct_a",
          keyId: "key_a",
          ticket: null,
          rate: { limit: 600, remaining: 600, resetMs: 0 },
          concurrentRequests: 4,
        },
        inputBound: 1_000,
        outputTokensRequested: 100,
        outputTokensFitting: null,
        format: "messages",
        streamed: true,
        label: null,
      }),
    held: async () => String((await one.call("showAccount", "acct_a")).heldNanos),
    endSessions: async () => {
      await execute(
        url,
        `select pg_terminate_backend(pid, 5000) from pg_locks where locktype = 'advisory' and objsubid = 2
           and database = (select oid from pg_database where datname = current_database())`,
      );
    },
    [Symbol.asyncDispose]: async () => {
      await one[Symbol.asyncDispose]();
      await other[Symbol.asyncDispose]();
    },
  });
}

const dead = limits.ledgerReturnMs;

async function codeOfRefusal(pending: Promise<unknown>): Promise<number | undefined> {
  return pending.then(
    () => undefined,
    (error: unknown) => (error instanceof Failure ? error.facts.retryAfterSeconds : -1),
  );
}

function look<Name extends OperationName & "giveBackDead">(
  store: StoreClient,
): Promise<AnswerOf<Name>> {
  const nothing: ArgumentOf<"giveBackDead"> = null;
  return store.call("giveBackDead", nothing) as Promise<AnswerOf<Name>>;
}

describe.skipIf(!postgresTests)("a process on PostgreSQL", () => {
  test("that has ended frees its account once it was missed for a moment", async () => {
    await using scene = await openScene();
    for (const id of ["req_1", "req_2", "req_3", "req_4"] as const)
      await scene.admit(scene.other, id);
    await scene.other[Symbol.asyncDispose]();
    // Missed from now on.
    expect(await look(scene.one)).toEqual({ count: 0, known: true, againInMs: dead });
    scene.nowMs += dead - 1;
    expect(await look(scene.one)).toEqual({ count: 0, known: true, againInMs: 1 });
    scene.nowMs += 1;
    expect(await look(scene.one)).toEqual({ count: 4, known: true, againInMs: null });
    expect(await scene.held()).toBe("0");
    await scene.admit(scene.one, "req_5");
  });

  test("that lives keeps what it holds, however silent it is, until its lease ends", async () => {
    await using scene = await openScene();
    await scene.admit(scene.other, "req_1");
    scene.nowMs += 59_999;
    expect(await look(scene.one)).toEqual({ count: 0, known: true, againInMs: null });
    expect(await scene.one.call("expire", null)).toBe(0);
    scene.nowMs += 1;
    expect(await scene.one.call("expire", null)).toBe(1);
  });

  test("that comes back under its own id keeps what it holds", async () => {
    await using scene = await openScene();
    await scene.admit(scene.other, "req_1");
    await scene.endSessions();
    // It begins its own session again, and misses that of the other.
    expect(await look(scene.one)).toEqual({ count: 0, known: true, againInMs: dead });
    scene.nowMs += dead - 1;
    expect((await look(scene.other)).known).toBe(false);
    expect((await look(scene.other)).known).toBe(true);
    scene.nowMs += dead;
    expect(await look(scene.one)).toEqual({ count: 0, known: true, againInMs: null });
    expect(await scene.other.call("renew", ["req_1"])).toEqual(["req_1"]);
  });

  test("that could not say so in time learns it at its next word, and is charged nothing", async () => {
    await using scene = await openScene();
    await scene.admit(scene.other, "req_1");
    await scene.endSessions();
    await look(scene.one);
    scene.nowMs += dead;
    expect(await look(scene.one)).toEqual({ count: 1, known: true, againInMs: null });
    expect((await look(scene.other)).known).toBe(false);
    expect(await scene.other.call("renew", ["req_1"])).toEqual([]);
    const settled = await scene.other.call("settle", {
      requestId: "req_1",
      accountId: "acct_a",
      outcome: "completed",
      usage: { inputTokens: 5, cachedInputTokens: 0, outputTokens: 5, reasoningTokens: 0 },
      firstOutputMs: 1,
      totalMs: 2,
    });
    expect(settled).toEqual({ chargedNanos: 0n, applied: false });
  });

  test("is not taken for dead by a restart of the server, which ends every session", async () => {
    await using scene = await openScene();
    await scene.admit(scene.other, "req_1");
    await server.stop("in-order");
    await server.start();
    await look(scene.one);
    scene.nowMs += dead;
    expect(await look(scene.one)).toEqual({ count: 0, known: true, againInMs: null });
    // It says so again, under the server as it is now.
    await look(scene.other);
    scene.nowMs += dead;
    expect(await look(scene.one)).toEqual({ count: 0, known: true, againInMs: null });
    expect(await scene.held()).not.toBe("0");
  });

  test("has leases that end at most two leases from now, unless it lives and corrects them", async () => {
    await using scene = await openScene();
    scene.nowMs += 31_536_000_000;
    await scene.admit(scene.other, "req_1");
    scene.nowMs -= 31_536_000_000;
    expect(await scene.one.call("expire", null)).toBe(0);
    await execute(scene.url, "update tributary.reservation set owner = null");
    expect(await scene.one.call("expire", null)).toBe(1);
    await scene.admit(scene.other, "req_2");
    scene.nowMs -= 59_999;
    expect(await scene.one.call("expire", null)).toBe(0);
  });

  test("tells with a 429 when a slot can be free", async () => {
    await using scene = await openScene();
    for (const id of ["req_1", "req_2", "req_3", "req_4"] as const)
      await scene.admit(scene.other, id);
    expect(await codeOfRefusal(scene.admit(scene.one, "req_5"))).toBe(2);
    scene.nowMs += 45_500;
    expect(await codeOfRefusal(scene.admit(scene.one, "req_5"))).toBe(15);
  });
});
