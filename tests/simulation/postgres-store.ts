import { Client } from "pg";
import type { StoreAnswer, StoreCall } from "../../src/ledger/operations.ts";
import { connectPostgresStore } from "../../src/ledger/postgres/store.ts";
import type { StoreClient } from "../../src/ledger/store-ledger.ts";
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

  async function connect(rules: Rules): Promise<StoreClient> {
    const client = await connectPostgresStore(
      {
        url,
        connections: 1,
        prices: rules,
        concurrencyPerAccount: rules.concurrency,
        requestsPerMinute: rules.perMinute,
        leaseMs: rules.leaseMs,
      },
      { now: () => nowMs },
    );
    processes.push(client);
    return client;
  }

  return {
    async fresh(rules) {
      await closeProcesses();
      await connect(rules);
      await observer.query(
        `set session_replication_role = replica;
         truncate tributary.account, tributary.api_key, tributary.reservation, tributary.entry,
           tributary.rate_window, tributary.rate_ticket cascade`,
      );
      return {
        clock: "store",
        graceMs: null,
        async openProcess() {
          const client = await connect(rules);
          return async (calls) => {
            const answers: StoreAnswer[] = [];
            for (const call of calls) {
              ({ nowMs } = call);
              answers.push(await answerOf(client, call));
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
