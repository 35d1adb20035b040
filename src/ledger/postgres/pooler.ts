import { Client } from "pg";
import { limits } from "../../limits.ts";
import { storeFault } from "./fault.ts";

/** How the server is reached. */
interface ServerSettings {
  readonly url: string;
  readonly busyMs?: number;
}

/** What is between this process and the server: nothing, or a pooler that gives each client a session, or only transactions. */
export type Pooling = "none" | "session" | "transaction";

// In transaction mode each statement may go to another session of the server. In so many rounds one does, unless this
// process has the server for itself, and then its two connections meet in one session.
const tries = 5;

/**
 * Asks two connections which session of the server they have. A pooler announces another process id to its clients than
 * that of the server's session. Rejects with a StoreFault.
 */
export async function findPooling(settings: ServerSettings): Promise<Pooling> {
  const first = clientOf(settings);
  const other = clientOf(settings);
  try {
    await first.connect();
    const announced = (first as unknown as { readonly processID: number | null }).processID;
    if ((await sessionOf(first)) === announced) return "none";
    await other.connect();
    for (let round = 0; round < tries; round += 1) {
      const before = await sessionOf(first);
      await other.query("begin");
      const others = await sessionOf(other);
      const after = await sessionOf(first);
      await other.query("rollback");
      if (before !== after || others === before) return "transaction";
    }
    return "session";
  } catch (error) {
    throw storeFault(error);
  } finally {
    await Promise.all([first.end(), other.end()].map((ending) => ending.catch(() => {})));
  }
}

function clientOf(settings: ServerSettings): Client {
  const waitMs = settings.busyMs ?? limits.ledgerBusyMs;
  const client = new Client({
    connectionString: settings.url,
    connectionTimeoutMillis: waitMs,
    query_timeout: waitMs,
    application_name: "tributary",
  });
  client.on("error", () => {});
  return client;
}

async function sessionOf(client: Client): Promise<number> {
  const { rows } = await client.query<{ pid: number }>("select pg_backend_pid() as pid");
  return rows[0]?.pid ?? -1;
}
