import { randomBytes, randomInt } from "node:crypto";
import { Client } from "pg";
import { limits } from "../../limits.ts";
import type { GivenBack } from "../ledger.ts";
import type { Clock, DatabaseSettings } from "./database.ts";
import { storeFault } from "./fault.ts";
import { presenceLockClass } from "./presence.sql.ts";

// A process that serves keeps a session of its own, which holds a lock with the process's number: it ends with the
// process, however that ends. A session that ends for another reason is begun again within limits.ledgerReturnMs, and
// a restart of the server ends all of them, which tells nothing about processes.

/** Whether this process and others live. */
export interface PostgresPresence extends AsyncDisposable {
  /** The id that reservations carry. */
  readonly owner: string;
  /** Says that this process lives; `dead`: some other does not. Rejects with a StoreFault. */
  look(): Promise<Pick<GivenBack, "known"> & { readonly dead: boolean }>;
}

/** Begins the session. Rejects with a StoreFault. */
export async function openPresence(
  settings: DatabaseSettings,
  clock: Clock,
): Promise<PostgresPresence> {
  const owner = randomBytes(8).toString("hex");
  const number = randomInt(2 ** 31);
  let session: Client | null = await begin(settings, number);

  async function lookOnce(): ReturnType<PostgresPresence["look"]> {
    try {
      session ??= await begin(settings, number);
      const { rows } = await session.query<{ known: boolean; dead: boolean }>(
        "select known, dead from tributary.look($1, $2, $3, $4)",
        [owner, number, limits.ledgerReturnMs, clock()],
      );
      return rows[0] ?? { known: false, dead: false };
    } catch (error) {
      const ending = session;
      session = null;
      await ending?.end().catch(ignore);
      throw storeFault(error);
    }
  }

  // Known from before its first reservation on.
  await lookOnce();
  return {
    owner,
    // A session that has ended meanwhile is begun again at once: others miss it already.
    look: () => (session === null ? lookOnce() : lookOnce().catch(lookOnce)),
    async [Symbol.asyncDispose]() {
      // Others notice it as they would a crash; what was settled before is not theirs to give back.
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
  // One that breaks tells the next look.
  client.on("error", ignore);
  try {
    await client.connect();
    // Held by an earlier session of this process that the server has not missed yet: then the next look is heard by that.
    await client.query("select pg_try_advisory_lock($1, $2)", [presenceLockClass, number]);
    return client;
  } catch (error) {
    await client.end().catch(ignore);
    throw storeFault(error);
  }
}

function ignore(): void {}
