import { Client } from "pg";
import { expect } from "vitest";
import { openPostgresLedger } from "../../src/ledger/postgres/postgres-ledger.ts";
import { connectPostgresStore } from "../../src/ledger/postgres/store.ts";
import { orderOf, settlementOf } from "./orders.ts";
import { defaultSettings } from "./support.ts";

// A ledger on PostgreSQL in which one transaction holds a lock, and how others wait for it.

/** A day. */
export const dayMs = 86_400_000;
/** When all of a scene is. */
export const beginMs = Date.parse("2026-03-02T10:00:00Z");
// No operation gives up before it is looked at, however busy the machine is.
const settings = { ...defaultSettings, concurrencyPerAccount: 1_000, busyMs: 110_000 };

/** A ledger with something of each kind, and what works on it. */
export async function openScene(url: string) {
  await using opened = new AsyncDisposableStack();
  let nowMs = beginMs;
  const parts = { now: () => nowMs };
  const ledger = opened.use(await openPostgresLedger({ ...settings, url }, parts));
  const store = opened.use(await connectPostgresStore({ ...settings, url }, parts));
  const clients = await Promise.all([connect(url), connect(url), connect(url)]);
  for (const client of clients) opened.defer(() => client.end());
  const [holder, watcher, raw] = clients;
  const owned = opened.move();
  return {
    ledger,
    store,
    holder,
    watcher,
    raw,
    /** Runs it at a time of its own. */
    at: async <Value>(ms: number, step: () => Promise<Value>): Promise<Value> => {
      nowMs = ms;
      try {
        return await step();
      } finally {
        nowMs = beginMs;
      }
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** An open ledger, and connections beside it. */
export type Scene = Awaited<ReturnType<typeof openScene>>;

async function connect(url: string): Promise<Client> {
  const client = new Client({ connectionString: url });
  await client.connect();
  return client;
}

const hook = {
  url: "https://example.com/",
  description: "",
  types: null,
  status: "active",
} as const;

/** Rows that operations are about. */
export async function fillScene({ at, ledger, store }: Scene) {
  const { id: accountId } = await ledger.createAccount("shop", 10n ** 12n);
  const { record: key, secret } = await ledger.createKey(accountId, "web", {
    budget: { amountNanos: 10n ** 9n, period: "day" },
    expiresAtMs: beginMs + dayMs / 2,
  });
  const keyId = key.id;
  const caller = await ledger.authorize(secret, true);
  const settled = orderOf(caller, { requestId: "req_settled" });
  await ledger.admit(settled);
  await ledger.settle(settlementOf(settled));
  const open = orderOf(caller, { requestId: "req_open" });
  await ledger.admit(open);
  await ledger.createPriceList({
    name: "dear",
    prices: [{ inputNanosPerMillion: 9n, outputNanosPerMillion: 9n, effectiveFromMs: null }],
  });
  const { record: operator } = await ledger.createOperator({
    name: "ops",
    role: "owner",
    expiresAtMs: null,
  });
  const { record: webhook } = await ledger.createWebhook(hook);
  await store.call("noteDeployment", { seenBy: "one", up: true });
  await store.call("noteVerifyFailed", { problems: 1, first: "" });
  await store.call("takeDesk", { holder: "one", seed: "b" });
  await store.call("noteVerifyFailed", { problems: 2, first: "" });
  const { id: grantedId } = await at(beginMs - dayMs, () =>
    ledger.createAccount("club", 0n, {
      grant: { amountNanos: 5n, every: "day", timezone: "UTC", carryOver: false },
    }),
  );
  return { accountId, caller, grantedId, keyId, open, operator, secret, settled, webhook };
}

/** What is in it. */
export type Filled = Awaited<ReturnType<typeof fillScene>>;

/** The lock that waits for the holder's, and the tables that its transaction has written to; null: none waits. */
async function waiting({ holder, watcher }: Scene) {
  const { rows } = await watcher.query<{ readonly query: string; readonly written: string[] }>(
    `select a.query, array(select distinct c.relname::text from pg_locks l join pg_class c on c.oid = l.relation
        where l.pid = a.pid and l.granted and l.mode = 'RowExclusiveLock' and c.relkind = 'r' order by 1) as written
      from pg_stat_activity a where $1 = any(pg_blocking_pids(a.pid))`,
    [await idOf(holder)],
  );
  return rows[0] ?? null;
}

const ids = new WeakMap<Client, number>();

/** Of the connection, asked for before it holds anything. */
async function idOf(client: Client): Promise<number> {
  const known = ids.get(client);
  if (known !== undefined) return known;
  const { rows } = await client.query<{ readonly id: number }>("select pg_backend_pid() as id");
  const id = rows[0]?.id ?? 0;
  ids.set(client, id);
  return id;
}

/**
 * Holds a lock while a step is begun; answers how the step waits for it, or null where it ended without it, and what a probe
 * finds meanwhile.
 */
export async function holding(
  scene: Scene,
  lock: string | readonly [lock: string, probe: string],
  step: () => Promise<unknown>,
) {
  const { holder, watcher } = scene;
  await idOf(holder);
  const [held, probe] = typeof lock === "string" ? [lock, "select 1"] : lock;
  await holder.query(`begin; ${held}`);
  let ended = false;
  const ending = Promise.allSettled([step()]).then(([outcome]) => {
    ended = true;
    return outcome;
  });
  try {
    let seen: Awaited<ReturnType<typeof waiting>> = null;
    await expect
      .poll(async () => {
        seen ??= await waiting(scene);
        return seen !== null || ended;
      })
      .toBe(true);
    return { seen, ending, found: (await watcher.query(probe)).rows as unknown[] };
  } finally {
    await holder.query("rollback");
  }
}
