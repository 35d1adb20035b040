import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { type PostgresServer, startPostgres } from "../ledger/postgres-server.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** The socket on which the run's process says where its PostgreSQL is. */
    readonly onePostgres: string;
  }
}

/**
 * One PostgreSQL for a whole run, started when the first test file asks for it and ended with the run: making a server
 * takes a second of CPU, a database in one takes a hundredth. Test files get at it by `openPostgresDatabases`.
 */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const folder = mkdtempSync(join(tmpdir(), "one-postgres-"));
  let started: Promise<PostgresServer> | null = null;
  const door = createServer((socket) => {
    socket.on("error", () => undefined);
    // Without what only a copy of the server or a power cut would need: databases are made and dropped all the time.
    const more = () => ({ wal_level: "minimal", max_wal_senders: "0", full_page_writes: "off" });
    started ??= startPostgres({ autovacuum: false, more });
    void started.then(
      (server) => socket.end(server.socket),
      (error: unknown) => socket.end(`error: ${String(error)}`),
    );
  });
  const path = join(folder, "door");
  door.listen(path);
  await once(door, "listening");
  project.provide("onePostgres", path);
  return async () => {
    door.close();
    // Those that asked for a server that did not start have said so.
    const server = await started?.catch(() => null);
    await server?.[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true });
  };
}
