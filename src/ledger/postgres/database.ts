import { Client, type ClientConfig, Pool, types, type PoolClient } from "pg";
import { Failure } from "../../failure.ts";
import { limits } from "../../limits.ts";
import { OperatorError } from "../operator-error.ts";
import type { Row } from "../row.ts";
import { StoreFault } from "../store-fault.ts";
import { isAnswer, isConflict, storeFault } from "./fault.ts";
import type { Pooling } from "./pooler.ts";

/** How the server is reached. */
export interface DatabaseSettings {
  /** postgres://user:password@host:port/database?... */
  readonly url: string;
  /** Connections of this process; absent: limits.ledgerConnections. */
  readonly connections?: number;
  /** How long the server may work on one statement, and a call may wait for a connection; absent: limits.ledgerBusyMs. */
  readonly busyMs?: number;
  /** The pooler between; absent: none. In transaction mode named statements and settings of a session do not work. */
  readonly pooling?: Pooling;
}

/** Milliseconds since 1970 for a simulation; null: the server's own clock. */
export type Clock = () => number | null;

/** A statement with a name, so that a connection parses it once. */
export interface Statement {
  readonly name: string;
  readonly text: string;
  /** Whether this process waits for it without a limit; the server's own limit has been lifted before. */
  readonly untimed?: true;
}

/** Runs one statement. */
export type Query = (
  statement: Statement,
  ...values: readonly unknown[]
) => Promise<readonly Row[]>;

/** The server, behind a few connections. Promises reject with a Failure, an OperatorError or a StoreFault. */
export interface Database extends AsyncDisposable {
  /** One statement, one round trip, a transaction of its own; repeated after a conflict with another transaction. */
  readonly query: Query;
  /** Reads one snapshot, without a limit on its time, over connections that requests have no part in: for operators. */
  look<Value>(step: (query: Query) => Promise<Value>): Promise<Value>;
  /** Several statements in one transaction, repeated from its begin after a conflict with another one. */
  transaction<Value>(
    step: (query: Query) => Promise<Value>,
    isolation?: "read committed" | "repeatable read",
  ): Promise<Value>;
  /** Reads much, over a connection of its own, and everything as it was at one moment. */
  snapshot<Value>(step: (read: Read) => Promise<Value>): Promise<Value>;
}

/** Runs a select; its rows come in pieces. */
export type Read = (sql: string) => AsyncGenerator<readonly Row[], undefined>;

/** Whether the connection ended before the answer came: the call may have been committed. */
export function isLostAnswer(error: unknown): boolean {
  return error instanceof StoreFault && error.kind === "unavailable" && !isAnswer(error.cause);
}

/** Connections are made when they are first wanted. */
export function openDatabase(settings: DatabaseSettings): Database {
  const busyMs = settings.busyMs ?? limits.ledgerBusyMs;
  const { pooling = "none" } = settings;
  const pool = new Pool({
    ...clientOf(settings),
    max: settings.connections ?? limits.ledgerConnections,
    // A pooler refuses them as parameters of a session.
    ...(pooling === "none" ? sessionLimits(busyMs) : {}),
    query_timeout: busyMs + limits.ledgerSilenceMs,
  });
  const readers = new Pool({
    ...clientOf(settings),
    max: limits.ledgerReaders,
    query_timeout: busyMs + limits.ledgerSilenceMs,
  });
  // Of an idle connection that ends: the next call makes another one.
  for (const one of [pool, readers]) one.on("error", ignore);
  if (pooling === "session")
    pool.on("connect", (client) => {
      for (const [name, ms] of Object.entries(sessionLimits(busyMs)))
        client.query(`set ${name} = ${String(ms)}`).catch(ignore);
    });
  const requests = { pool, pooling };
  return {
    query: (statement, ...values) =>
      retryOnConflict(() => once(requests, (query) => query(statement, ...values))),
    look: (step) => retryOnConflict(() => look({ pool: readers, pooling }, step)),
    transaction: (step, isolation = "read committed") =>
      retryOnConflict(() =>
        once(requests, (query) =>
          inTransaction(query, `begin isolation level ${isolation}`, async () => {
            await query(durable);
            return step(query);
          }),
        ),
      ),
    snapshot: (step) =>
      retryOnConflict(() => withReader(settings, (client) => takeSnapshot(client, step))),
    async [Symbol.asyncDispose]() {
      // What still reads ends by itself, and nothing waits for it.
      const readersEnd = readers.end().catch(ignore);
      await Promise.all([pool.end(), readers.totalCount > readers.idleCount ? null : readersEnd]);
    },
  };
}

/** A few connections, and the pooler that they go by. */
interface Connections {
  readonly pool: Pool;
  readonly pooling: Pooling;
}

async function once<Value>(
  { pool, pooling }: Connections,
  work: (query: Query) => Promise<Value>,
): Promise<Value> {
  if (pool.ending)
    throw new StoreFault("unavailable", "the ledger has been closed", { reason: "closed" });
  if (pool.waitingCount >= limits.ledgerWaitingMax)
    throw new StoreFault("busy", "too many operations wait for the ledger", {
      reason: "overloaded",
    });
  const client = await pool.connect();
  let broken = true;
  // Where the connection breaks during a query, the query rejects; without a listener the event would end the process.
  client.on("error", ignore);
  try {
    const value = await work(queryOf(client, pooling));
    broken = false;
    return value;
  } catch (error) {
    broken = !isAnswer(error) && !isRefusal(error);
    throw error;
  } finally {
    client.off("error", ignore);
    client.release(broken);
  }
}

async function look<Value>(
  readers: Connections,
  step: (query: Query) => Promise<Value>,
): Promise<Value> {
  for (let isFirst = true; ; isFirst = false) {
    let isBegun = false;
    try {
      return await once(readers, async (query) => {
        isBegun = true;
        return inTransaction(query, `${beginReading}; ${gently}`, () =>
          step((statement, ...values) => query({ ...statement, untimed: true }, ...values)),
        );
      });
    } catch (error) {
      // The server of a connection that was kept may be gone since; what only reads may be read again over another one.
      if (!isFirst || !isBegun || isAnswer(error) || isRefusal(error)) throw error;
    }
  }
}

function ignore(): void {}

function isRefusal(error: unknown): boolean {
  return error instanceof Failure || error instanceof OperatorError;
}

// The longest that a timer can have.
const longestTimerMs = 2 ** 31 - 1;

function sessionLimits(busyMs: number): Readonly<Record<string, number>> {
  return { statement_timeout: busyMs, idle_in_transaction_session_timeout: busyMs };
}

function queryOf(client: PoolClient, pooling: Pooling): Query {
  return async ({ name, text, untimed }, ...values) => {
    const wait = untimed === true ? { query_timeout: longestTimerMs } : {};
    // A named statement belongs to a session.
    const named = pooling === "transaction" ? {} : { name };
    const result = await client.query<Row>({ ...named, text, values: [...values], ...wait });
    return result.rows;
  };
}

const commit = { name: "", text: "commit" };
const rollback = { name: "", text: "rollback" };
const durable = {
  name: "durable",
  text: "select set_config('synchronous_commit', 'on', true) where current_setting('synchronous_commit') = 'off'",
};

async function inTransaction<Value>(
  query: Query,
  begin: string,
  step: () => Promise<Value>,
): Promise<Value> {
  await query({ name: "", text: begin });
  try {
    const value = await step();
    await query(commit);
    return value;
  } catch (error) {
    // The server rolls back by itself where the connection has ended.
    if (isAnswer(error) || isRefusal(error)) await query(rollback);
    throw error;
  }
}

// A report has one core of the server, and streams the others; its statements have more columns than are worth compiling,
// and an account's rows of some days lie close together.
const gently =
  "set local max_parallel_workers_per_gather = 0; set local jit = off; set local random_page_cost = 1.1";

// What is read may be large, and no request waits for its locks. Names without a schema are ours.
const beginReading =
  "begin isolation level repeatable read, read only; set local statement_timeout = 0; set local search_path = tributary";

function clientOf({ busyMs = limits.ledgerBusyMs, url }: DatabaseSettings): ClientConfig {
  return {
    connectionString: url,
    connectionTimeoutMillis: busyMs,
    keepAlive: true,
    application_name: "tributary",
    types: { getTypeParser: typeParser as typeof types.getTypeParser },
  };
}

/** A connection of its own. */
async function withReader<Value>(
  settings: DatabaseSettings,
  use: (client: Client) => Promise<Value>,
): Promise<Value> {
  const client = new Client(clientOf(settings));
  client.on("error", ignore);
  try {
    await client.connect();
    // Cursors are read to their end: plans are for all rows, and not for the first ones.
    await client.query(`${beginReading}; set local cursor_tuple_fraction = 1`);
    return await use(client);
  } finally {
    await client.end();
  }
}

async function takeSnapshot<Value>(
  client: Client,
  step: (read: Read) => Promise<Value>,
): Promise<Value> {
  let cursors = 0;
  async function* read(sql: string): AsyncGenerator<readonly Row[], undefined> {
    cursors += 1;
    const name = `rows_${String(cursors)}`;
    await client.query(`declare ${name} no scroll cursor for ${sql}`);
    const text = `fetch ${String(limits.verifyRowsAPiece)} from ${name}`;
    const fetchPiece = (): Promise<readonly Row[]> => {
      const fetched = client.query<Row>(text).then(({ rows }) => rows);
      // Where the reader has stopped, nothing awaits this piece, and its failure is no unhandled rejection.
      fetched.catch(ignore);
      return fetched;
    };
    let next = fetchPiece();
    for (;;) {
      const rows = await next;
      // The server gathers the next piece while this one is worked on.
      if (rows.length === limits.verifyRowsAPiece) next = fetchPiece();
      if (rows.length > 0) yield rows;
      if (rows.length < limits.verifyRowsAPiece) return;
    }
  }
  return step(read);
}

async function retryOnConflict<Value>(work: () => Promise<Value>): Promise<Value> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await work();
    } catch (error) {
      if (isRefusal(error) || error instanceof StoreFault) throw error;
      if (!isConflict(error) || tries >= limits.ledgerConflictTries) throw storeFault(error);
      await new Promise((resolve) => setTimeout(resolve, 2 ** tries * (0.5 + Math.random())));
    }
  }
}

// int4, int8 and numeric as bigint: credit is never rounded. No statement here answers a fraction.
const wholeNumbers = new Set([20, 23, 1700]);
// Bytes are a plain Uint8Array, as they are from SQLite: a Buffer would compare as unequal.
const bytea = 17;

function typeParser(type: number, format?: "text" | "binary"): (text: string) => unknown {
  if (wholeNumbers.has(type)) return BigInt;
  if (type === bytea) return (text) => new Uint8Array(Buffer.from(text.slice("\\x".length), "hex"));
  return types.getTypeParser(type, format) as (text: string) => unknown;
}
