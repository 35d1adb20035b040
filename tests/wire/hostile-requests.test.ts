import { describe, test } from "vitest";
import { openPostgresDatabases } from "../ledger/postgres-databases.ts";
import { postgresTests } from "../ledger/postgres-server.ts";
import { expectCallersAnswered, expectOperatorsAnswered } from "./ask-hostile.ts";

// tests/slow/hostile-requests.test.ts sends the numbers, cursors and escapes too.
describe.each(["SQLite", ...(postgresTests ? ["PostgreSQL"] : [])])("on %s", (store) => {
  test("operators are told where a text is none", async () => {
    await using databases = store === "SQLite" ? null : await openPostgresDatabases();
    const url = await databases?.createDatabase("operators");
    await expectOperatorsAnswered(url, ({ isNoText }) => isNoText);
  });

  test("callers are told where a text is none", async () => {
    await using databases = store === "SQLite" ? null : await openPostgresDatabases();
    const url = await databases?.createDatabase("callers");
    await expectCallersAnswered(url, ({ in: place, isNoText }) => isNoText && place !== "body");
  });
});
