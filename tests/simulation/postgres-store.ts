import { Client } from "pg";
import { limits } from "../../src/limits.ts";
import type { StoreAnswer, StoreCall, StoreClient } from "../../src/ledger/store-operations.ts";
import { connectPostgresStore } from "../../src/ledger/postgres/store.ts";
import { startPostgres } from "../ledger/postgres-server.ts";
import type { Rules } from "./plan.ts";
import { columns, observedOf, type Observed, type SimulatedStore } from "./simulated-store.ts";

/** A real server of its own for run after run, with the simulation's clock; its tables are emptied in between. */
export async function openPostgresStores(): Promise<
  AsyncDisposable & { fresh(rules: Rules): Promise<SimulatedStore> }
> {
  const server = await startPostgres();
  const url = await server.createDatabase("simulation");
  const observer = new Client({ connectionString: url });
  await observer.connect();
  let processes: StoreClient[] = [];
  let nowMs = 0;

  async function closeProcesses(): Promise<void> {
    const closing = processes;
    processes = [];
    await Promise.all(closing.map((process) => process[Symbol.asyncDispose]()));
  }

  /** The number of a process's lock, by which its session is found. */
  async function numbers(): Promise<ReadonlySet<string>> {
    const { rows } = await observer.query<{ number: string }>(
      "select objid::text as number from pg_locks where locktype = 'advisory' and objsubid = 2 and granted",
    );
    return new Set(rows.map(({ number }) => number));
  }

  async function endSessions(sessions: readonly { readonly number: string }[]): Promise<void> {
    if (sessions.length === 0) return;
    await observer.query(
      `select pg_terminate_backend(pid, 5000) from pg_locks
       where locktype = 'advisory' and objsubid = 2 and granted and objid::text = any($1::text[])`,
      [sessions.map(({ number }) => number)],
    );
  }

  async function connect(rules: Rules, serves: boolean): Promise<StoreClient> {
    const client = await connectPostgresStore(
      {
        url,
        connections: 1,
        prices: rules,
        concurrencyPerAccount: rules.concurrency,
        requestsPerMinute: rules.perMinute,
        leaseMs: rules.leaseMs,
      },
      { now: () => nowMs, ...(serves ? { serves } : {}) },
    );
    processes.push(client);
    return client;
  }

  return {
    async fresh(rules) {
      await closeProcesses();
      const command = await connect(rules, false);
      const sessions = new Map<
        string,
        { readonly number: string; readonly heard: () => boolean }
      >();
      await observer.query(
        `set session_replication_role = replica;
         truncate tributary.account, tributary.api_key, tributary.reservation, tributary.entry,
           tributary.rate_window, tributary.rate_ticket, tributary.process cascade`,
      );
      return {
        clock: "store",
        graceMs: limits.ledgerReturnMs,
        async openProcess(owner, isPresent) {
          const before = await numbers();
          const client = await connect(rules, true);
          const number = [...(await numbers())].find((one) => !before.has(one));
          if (number !== undefined) sessions.set(owner, { number, heard: () => isPresent(owner) });
          return async (calls) => {
            const answers: StoreAnswer[] = [];
            for (const call of calls) {
              ({ nowMs } = call);
              const looks = call.name === "giveBackDead" || call.name === "expire";
              if (looks) await endSessions([...sessions.values()].filter(({ heard }) => !heard()));
              // Who cannot say that it lives looks as a command does.
              answers.push(await answerOf(looks && !isPresent(owner) ? command : client, call));
            }
            return answers;
          };
        },
        observe: (seen) => observe(observer, seen),
      };
    },
    async [Symbol.asyncDispose]() {
      await closeProcesses();
      await observer.end();
      await server[Symbol.asyncDispose]();
    },
  };
}

async function answerOf(client: StoreClient, call: StoreCall): Promise<StoreAnswer> {
  try {
    return { ok: true, value: await client.call(call.name, call.argument) };
  } catch (error) {
    return { ok: false, error };
  }
}

async function observe(observer: Client, seen: ReadonlyMap<string, number>): Promise<Observed> {
  const rowsOf = async (sql: string, values: unknown[] = []): Promise<Record<string, unknown>[]> =>
    (await observer.query<Record<string, unknown>>(sql, values)).rows;
  return observedOf({
    accounts: await rowsOf(`select ${columns.account} from tributary.account`),
    reservations: await rowsOf(`select ${columns.reservation} from tributary.reservation`),
    entries: await rowsOf(
      `select ${columns.entry} from tributary.entry
       where sequence > coalesce(($1::jsonb ->> account_id)::bigint, 0) order by account_id, sequence`,
      [JSON.stringify(Object.fromEntries(seen))],
    ),
    tickets: await rowsOf(`select ${columns.ticket} from tributary.rate_ticket`),
  });
}
