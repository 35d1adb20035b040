import { connect } from "node:net";
import { dirname } from "node:path";
import { text } from "node:stream/consumers";
import { inject } from "vitest";
import { openPostgresLedger } from "../../src/ledger/postgres/postgres-ledger.ts";
import { newId } from "../../src/new-id.ts";
import { addressOf, execute, type PostgresDatabases } from "./postgres-server.ts";
import { defaultSettings } from "./support.ts";

/**
 * Databases of the one server that all test files of a run share. Their names are of the caller alone, and so nothing
 * that a test does within its databases is seen by another. A test that stops the server, or changes what holds for all
 * of it (roles, settings, `pg_hba.conf`), starts one of its own by `startPostgres`.
 */
export async function openPostgresDatabases(): Promise<
  PostgresDatabases & {
    /** The address of a new ledger that was made: a copy, as making one takes ten times as long. */
    createLedger(name: string): Promise<string>;
  }
> {
  const socket = await text(connect(inject("onePostgres")));
  if (socket.startsWith("error: ")) throw new Error(`PostgreSQL was not started: ${socket}`);
  const prefix = newId("files_").toLowerCase();
  const nameOf = (name: string): string => `${prefix}_${name}`;
  const admin = addressOf(dirname(socket), "postgres");
  const created: string[] = [];
  const url = (name: string): string => addressOf(dirname(socket), nameOf(name));
  let made: Promise<void> | null = null;
  async function createDatabase(name: string, template?: string): Promise<string> {
    const from = template === undefined ? "template1" : nameOf(template);
    created.push(nameOf(name));
    await execute(admin, `create database ${nameOf(name)} template ${from} strategy file_copy`);
    return url(name);
  }
  async function makeLedger(): Promise<void> {
    const settings = { ...defaultSettings, url: await createDatabase("made") };
    await (await openPostgresLedger(settings, { now: () => 0 }))[Symbol.asyncDispose]();
  }
  return {
    socket,
    url,
    createDatabase,
    async createLedger(name) {
      await (made ??= makeLedger());
      return createDatabase(name, "made");
    },
    async [Symbol.asyncDispose]() {
      for (const name of created) await execute(admin, `drop database ${name} with (force)`);
    },
  };
}
