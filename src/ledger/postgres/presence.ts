import { randomBytes, randomInt } from "node:crypto";
import { Client } from "pg";
import { limits } from "../../limits.ts";
import type { GivenBack } from "../ledger.ts";
import type { Clock, DatabaseSettings } from "./database.ts";
import { storeFault } from "./fault.ts";
import { presenceLockClass } from "./presence.sql.ts";

// A process that serves keeps a session of its own, which holds a lock with the process's number: it ends with the
// process, however that ends. Where a session ends for another reason, its process begins another one within
// limits.ledgerReturnMs. A restart of the server ends all sessions, and no process is taken for dead after it.

/** The sign that this process lives, and its look for processes that do not. */
export interface PostgresPresence extends AsyncDisposable {
  /** The id that reservations carry. */
  readonly owner: string;
  /** Says that this process lives. Rejects with a StoreFault. */
  look(): Promise<Looked>;
}

/** What a look has found. */
export interface Looked extends Pick<GivenBack, "known" | "againInMs"> {
  /** Some other process is dead. */
  readonly dead: boolean;
}

/** Begins the session. Rejects with a StoreFault. */
export async function openPresence(
  settings: DatabaseSettings,
  clock: Clock,
): Promise<PostgresPresence> {
  const owner = randomBytes(8).toString("hex");
  const number = randomInt(2 ** 31);
  let session: Client | null = await begin(settings, number);

  async function lookOnce(): Promise<Looked> {
    try {
      session ??= await begin(settings, number);
      const { rows } = await session.query<Looked>(
        `select known, dead, again_ms as "againInMs" from tributary.look_round($1, $2, $3, $4)`,
        [owner, number, limits.ledgerReturnMs, clock()],
      );
      return rows[0] ?? { known: false, dead: false, againInMs: null };
    } catch (error) {
      const ending = session;
      session = null;
      await ending?.end().catch(ignore);
      throw storeFault(error);
    }
  }

  // The database knows this process before its first reservation.
  await lookOnce();
  return {
    owner,
    // Where the session has ended meanwhile, another one begins at once: other processes miss this one already.
    look: () => (session === null ? lookOnce() : lookOnce().catch(lookOnce)),
    async [Symbol.asyncDispose]() {
      // Other processes notice the end of the session as that of a crash; nothing settled is given back.
      await session?.end();
    },
  };
}

async function begin(settings: DatabaseSettings, number: number): Promise<Client> {
  const client = new Client({
    connectionString: settings.url,
    connectionTimeoutMillis: settings.busyMs ?? limits.ledgerBusyMs,
    query_timeout: settings.busyMs ?? limits.ledgerBusyMs,
    keepAlive: true,
    application_name: "tributary",
  });
  // Where the session breaks, the next `look` fails and begins another one.
  client.on("error", ignore);
  try {
    await client.connect();
    // The lock may still belong to an earlier session of this process, which the server has not ended yet: then that
    // session shows that the process lives, and the next `look` takes the lock.
    await client.query("select pg_try_advisory_lock($1, $2)", [presenceLockClass, number]);
    return client;
  } catch (error) {
    await client.end().catch(ignore);
    throw storeFault(error);
  }
}

function ignore(): void {}
