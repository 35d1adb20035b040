import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { OperatorError } from "../../src/ledger/operator-error.ts";
import { type Database, openDatabase, type Query } from "../../src/ledger/postgres/database.ts";
import { numberOf, textOf } from "../../src/ledger/row.ts";
import { openPostgresDatabases } from "./postgres-databases.ts";
import { openProxy } from "./postgres-proxy.ts";
import { execute, postgresTests } from "./postgres-server.ts";

// Each request of the operators' API looks at its token first: over a connection that is kept for looks.

type Databases = Awaited<ReturnType<typeof openPostgresDatabases>>;

function nameOf(url: string): string {
  return /@\/([^?]+)/.exec(url)?.[1] ?? "";
}

async function connectionOf(query: Query): Promise<number> {
  const [row = {}] = await query({ name: "", text: "select pg_backend_pid() as id" });
  return numberOf(row, "id");
}

async function settingsOf(query: Query): Promise<readonly string[]> {
  const names = ["transaction_isolation", "transaction_read_only", "statement_timeout", "jit"];
  const columns = names.map((name) => `current_setting('${name}') as ${name}`);
  const [row = {}] = await query({ name: "", text: `select ${columns.join(", ")}` });
  return names.map((name) => textOf(row, name));
}

describe.skipIf(!postgresTests)("looks at a ledger on PostgreSQL", () => {
  let server: Databases;
  let url: string;
  beforeAll(async () => {
    server = await openPostgresDatabases();
    url = await server.createDatabase("looks");
  });
  afterAll(() => server[Symbol.asyncDispose]());

  async function used(database: Database): Promise<number> {
    return database.look(connectionOf);
  }

  test("share a connection, which no request has, one after another", async () => {
    await using database = openDatabase({ url });
    const first = await used(database);
    expect(await used(database)).toBe(first);
    const refused = database.look(() => Promise.reject(new OperatorError("not_found", "None.")));
    await expect(refused).rejects.toThrow("None.");
    const wrong = database.look((query) => query({ name: "", text: "select 1 from nothing" }));
    await expect(wrong).rejects.toMatchObject({ code: "42P01" });
    expect(await used(database)).toBe(first);
    expect(await database.transaction(connectionOf)).not.toBe(first);
  });

  test("are one snapshot each that cannot write, and have no limit on their time", async () => {
    await execute(url, `alter database ${nameOf(url)} set statement_timeout = '7s'`);
    await using database = openDatabase({ url });
    for (let round = 0; round < 2; round += 1)
      expect(await database.look(settingsOf)).toEqual(["repeatable read", "on", "0", "off"]);
  });

  test("are read again where the server of the kept connection is gone", async () => {
    await using proxy = await openProxy(server);
    await using database = openDatabase({ url: proxy.url(nameOf(url)) });
    const first = await used(database);
    proxy.loseNextAnswer();
    expect(await used(database)).not.toBe(first);
  });

  test("end with what was closed", async () => {
    const database = openDatabase({ url });
    await used(database);
    await database[Symbol.asyncDispose]();
    await expect(used(database)).rejects.toMatchObject({ reason: "closed" });
  });
});
