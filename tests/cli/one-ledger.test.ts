import { chownSync, mkdirSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openPostgresDatabases } from "../ledger/postgres-databases.ts";
import { execute, postgresTests, type PostgresDatabases } from "../ledger/postgres-server.ts";
import { temporaryLedger } from "../ledger/support.ts";
import { openRecordingShell } from "./recording-shell.ts";

// Which ledger a command works on: it says so, and never makes one that is not there.

const readers = [
  ["account", "list"],
  ["account", "show", "acct_a"],
  ["account", "credit", "acct_a", "1"],
  ["account", "disable", "acct_a"],
  ["key", "create", "acct_a"],
  ["key", "list", "acct_a"],
  ["key", "revoke", "key_a"],
  ["usage"],
  ["receipt", "req_a"],
  ["verify"],
  ["checkpoint", "--before", "90d"],
  ["ledger", "backup", "copy.sqlite"],
  ["ledger", "move", "--to", "postgres://user@host/database"],
] as const;

describe("a command in a folder without a ledger", () => {
  it.each(readers.map((words) => ({ name: words.join(" "), words })))(
    "makes none, and says where it looked: $name",
    async ({ words }) => {
      using place = temporaryLedger();
      const run = openRecordingShell(place.folder);
      const path = join(place.folder, "data", "ledger.sqlite");
      const plain = await run(...words);
      expect([plain.exitCode, plain.stdout]).toEqual([1, ""]);
      expect(plain.stderr).toContain(`There is no ledger at ${path} (the default).`);
      const asJson = await run(...words, "--json");
      expect(JSON.parse(asJson.stderr)).toMatchObject({ error: { code: "not_found" } });
      expect(readdirSync(place.folder)).toEqual([]);
    },
  );

  it("says which setting named it", async () => {
    using place = temporaryLedger();
    const run = openRecordingShell(place.folder, { TRIBUTARY_DATA_DIR: "elsewhere" });
    expect((await run("account", "list")).stderr).toContain(
      `${join(place.folder, "elsewhere", "ledger.sqlite")} (TRIBUTARY_DATA_DIR in the environment)`,
    );
  });

  it("makes it for a first account, and then every command says which it works on", async () => {
    using place = temporaryLedger();
    const run = openRecordingShell(place.folder);
    const said = `ledger: ${join(place.folder, "data", "ledger.sqlite")} (the default)\n`;
    expect(await run("account", "create", "ann")).toMatchObject({ exitCode: 0, stderr: said });
    expect(await run("account", "list")).toMatchObject({ exitCode: 0, stderr: said });
    expect(await run("verify")).toMatchObject({ exitCode: 0, stderr: said });
    // One JSON document, and nothing beside it.
    expect(await run("account", "list", "--json")).toMatchObject({ exitCode: 0, stderr: "" });
  });

  it.runIf(process.getuid?.() === 0)(
    "makes it for the user whose folder it is when the superuser runs it",
    async () => {
      using place = temporaryLedger();
      const data = join(place.folder, "data");
      mkdirSync(data);
      chownSync(data, 12_345, 12_346);
      await openRecordingShell(place.folder)("account", "create", "ann");
      for (const name of readdirSync(data)) {
        const { gid, uid } = statSync(join(data, name));
        expect([name, uid, gid]).toEqual([name, 12_345, 12_346]);
      }
    },
  );
});

describe.skipIf(!postgresTests)("a command on a database without a ledger", () => {
  let server: PostgresDatabases;
  beforeAll(async () => {
    server = await openPostgresDatabases();
  });
  afterAll(() => server[Symbol.asyncDispose]());

  it("makes none, but for a first account", async () => {
    using place = temporaryLedger();
    const url = await server.createDatabase("empty");
    const run = openRecordingShell(place.folder, { TRIBUTARY_DATABASE_URL: url });
    const { exitCode, stderr } = await run("account", "list");
    expect([exitCode, stderr]).toEqual([
      1,
      expect.stringContaining("The database holds no ledger"),
    ]);
    const schemas = "select nspname from pg_namespace where nspname = 'tributary'";
    expect(await execute(url, schemas)).toEqual([]);
    expect(await run("account", "create", "ann")).toMatchObject({ exitCode: 0 });
    expect((await run("account", "list")).stderr).toBe(
      "ledger: PostgreSQL (TRIBUTARY_DATABASE_URL in the environment)\n",
    );
  });
});
