import { hash } from "node:crypto";
import { join } from "node:path";
import { Client } from "pg";
import { limits } from "../../src/limits.ts";
import type {
  ArgumentOf,
  OperationName,
  StoreAnswer,
  StoreCall,
  StoreClient,
} from "../../src/ledger/store-operations.ts";
import { connectPostgresStore } from "../../src/ledger/postgres/store.ts";
import { openProxy } from "../ledger/postgres-proxy.ts";
import {
  addressOf,
  execute,
  type PostgresDatabases,
  startPostgres,
} from "../ledger/postgres-server.ts";
import type { Rules } from "./plan.ts";
import {
  columns,
  eventsSql,
  archivedColumn,
  observedOf,
  type Observed,
  type SimulatedStore,
} from "./simulated-store.ts";

/** Where a run of the simulation finds a server that others share, and what its database there is called. */
export interface SharedServer {
  /** The folder of the server's socket. */
  readonly folder: string;
  readonly database: string;
}

/** A server, with a database of that name. */
async function serve(shared: SharedServer | null): Promise<PostgresDatabases> {
  if (shared === null) return startPostgres();
  const { folder } = shared;
  const admin = addressOf(folder, "postgres");
  return {
    socket: join(folder, ".s.PGSQL.5432"),
    url: (database) => addressOf(folder, database),
    async createDatabase(name) {
      await execute(admin, `create database ${name}`);
      return addressOf(folder, name);
    },
    [Symbol.asyncDispose]: () =>
      execute(admin, `drop database ${shared.database} with (force)`).then(() => {}),
  };
}

/** A real server for run after run, with the simulation's clock; its tables are emptied in between. */
export async function openPostgresStores(shared: SharedServer | null = null): Promise<
  AsyncDisposable & {
    fresh(rules: Rules): Promise<SimulatedStore>;
    readonly sharesStatements: true;
    told(): string;
  }
> {
  const name = shared?.database ?? "simulation";
  const server = await serve(shared);
  const url = await server.createDatabase(name);
  const line = await openProxy(server);
  const sharing = { statements: 0, lost: 0 };
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
      `select objid::text as number from pg_locks where ${ownLocks}`,
    );
    return new Set(rows.map(({ number }) => number));
  }

  async function endSessions(sessions: readonly { readonly number: string }[]): Promise<void> {
    if (sessions.length === 0) return;
    await observer.query(
      `select pg_terminate_backend(pid, 5000) from pg_locks
       where ${ownLocks} and objid::text = any($1::text[])`,
      [sessions.map(({ number }) => number)],
    );
  }

  async function connect(rules: Rules, serves: boolean): Promise<StoreClient> {
    const client = await connectPostgresStore(
      {
        url: line.url(name),
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

  /** Quicker than to truncate them, with the few rows that a run leaves. */
  async function empty(): Promise<void> {
    const { rows } = await observer.query<{ name: string }>(
      "select tablename as name from pg_tables where schemaname = 'tributary' and tablename <> 'migration'",
    );
    const deletes = rows.map(({ name }) => `delete from tributary.${name}`);
    await observer.query(["set session_replication_role = replica", ...deletes].join(";"));
  }

  return {
    sharesStatements: true,
    async fresh(rules) {
      await closeProcesses();
      const command = await connect(rules, false);
      const sessions = new Map<
        string,
        { readonly number: string; readonly heard: () => boolean }
      >();
      await empty();
      return {
        clock: "store",
        inOrder,
        forgets: "windows",
        graceMs: limits.ledgerReturnMs,
        async openProcess(owner, isPresent) {
          const before = await numbers();
          const client = await connect(rules, true);
          const number = [...(await numbers())].find((one) => !before.has(one));
          if (number !== undefined) sessions.set(owner, { number, heard: () => isPresent(owner) });
          return async (calls) => {
            const answers: StoreAnswer[] = [];
            for (const statement of statementsOf(calls)) {
              const [{ name }] = statement;
              ({ nowMs } = statement[0]);
              const looks = name === "giveBackDead" || name === "expire";
              if (looks) await endSessions([...sessions.values()].filter(({ heard }) => !heard()));
              if (statement.length > 1) sharing.statements += 1;
              // Only an admission is asked for again by the store itself.
              if (name === "admit" && isUnlucky(statement)) {
                sharing.lost += statement.length > 1 ? 1 : 0;
                line.loseNextAnswer();
              }
              // Who cannot say that it lives looks as a command does.
              const asked = looks && !isPresent(owner) ? command : client;
              answers.push(...(await Promise.all(statement.map((call) => answerOf(asked, call)))));
            }
            return answers;
          };
        },
        observe: (seen) => observe(observer, seen),
      };
    },
    told: () =>
      `${String(sharing.statements)} statements of several requests, ${String(sharing.lost)} answers to them lost`,
    async [Symbol.asyncDispose]() {
      await closeProcesses();
      await observer.end();
      await line[Symbol.asyncDispose]();
      await server[Symbol.asyncDispose]();
    },
  };
}

const ownLocks =
  "locktype = 'advisory' and objsubid = 2 and granted and database = (select oid from pg_database where datname = current_database())";

/** What a statement of several requests locks by, and what it holds once; null: a call that shares no statement. */
function placeOf({ argument, name }: StoreCall): readonly [string, string, string] | null {
  if (name === "authorize") {
    const { accountId, keyId, ticketId } = argument as ArgumentOf<"authorize">;
    return [accountId, keyId, String(ticketId)];
  }
  if (name === "admit") {
    const { caller, requestId } = argument as ArgumentOf<"admit">;
    return [caller.accountId, caller.keyId, requestId];
  }
  if (name !== "settle") return null;
  const { accountId, requestId } = argument as ArgumentOf<"settle">;
  return [accountId, requestId, requestId];
}

const batched: readonly OperationName[] = ["authorize", "admit", "settle"];

/** Calls that are on their way at one moment may be done in any order: by operation, and then as their rows are locked. */
function inOrder(calls: readonly StoreCall[]): readonly StoreCall[] {
  const rank = ({ name }: StoreCall): number => (batched.indexOf(name) + 4) % 4;
  return calls.toSorted((one, other) => {
    const [account = "", lockedAs = ""] = placeOf(one) ?? [];
    const [otherAccount = "", otherLockedAs = ""] = placeOf(other) ?? [];
    return rank(one) - rank(other) || by(account, otherAccount) || by(lockedAs, otherLockedAs);
  });
}

function by(one: string, other: string): number {
  return one === other ? 0 : one < other ? -1 : 1;
}

/** Calls that go together; one that is done twice begins another statement. */
function statementsOf(calls: readonly StoreCall[]): readonly [StoreCall, ...StoreCall[]][] {
  const statements: [StoreCall, ...StoreCall[]][] = [];
  let holds = new Set<string>();
  for (const call of calls) {
    const once = placeOf(call)?.[2] ?? null;
    const last = statements.at(-1);
    if (last?.[0].name === call.name && once !== null && !holds.has(once)) last.push(call);
    else {
      statements.push([call]);
      holds = new Set();
    }
    if (once !== null) holds.add(once);
  }
  return statements;
}

/** Of some statements the line is cut when their answer is there, the same ones every time. */
function isUnlucky(statement: readonly StoreCall[]): boolean {
  const names = statement.map((call) => `${String(call.nowMs)} ${placeOf(call)?.[2] ?? ""}`);
  return (hash("sha256", names.join("\n"), "buffer")[0] ?? 0) < 48;
}

async function answerOf(client: StoreClient, call: StoreCall): Promise<StoreAnswer> {
  try {
    return { ok: true, value: await client.call(call.name, call.argument) };
  } catch (error) {
    return { ok: false, error };
  }
}

/** All tables in one round trip. */
async function observe(observer: Client, seen: ReadonlyMap<string, number>): Promise<Observed> {
  const read = JSON.stringify(Object.fromEntries(seen));
  const results =
    (await observer.query(`select ${columns.account}, ${archivedColumn("tributary.")} from tributary.account as account;
    select ${columns.reservation} from tributary.reservation;
    select ${columns.entry} from tributary.entry
      where sequence > coalesce(('${read}'::jsonb ->> account_id)::bigint, 0) order by account_id, sequence;
    select ${columns.ticket} from tributary.rate_ticket;
    select ${columns.key} from tributary.api_key;
    ${eventsSql("tributary.")}`)) as unknown as readonly { readonly rows: Row[] }[];
  const [accounts, reservations, entries, tickets, keys, events] = results.map(({ rows }) => rows);
  if (!accounts || !reservations || !entries || !tickets || !keys || !events)
    throw new Error("simulation: the server answered fewer statements than it was asked for");
  return observedOf({ accounts, reservations, entries, tickets, keys, events });
}

type Row = Record<string, unknown>;
