import { describe, test } from "vitest";
import { postgresTests, startPostgres } from "../ledger/postgres-server.ts";
import { expectCallersAnswered, expectOperatorsAnswered } from "../wire/ask-hostile.ts";

// In each place that the documents have: a text, a number or a cursor that only careless readers take.
describe.each(["SQLite", ...(postgresTests ? ["PostgreSQL"] : [])])("on %s", (store) => {
  test("nothing that operators send is a fault of the service", async () => {
    await using databases = store === "SQLite" ? null : await startPostgres();
    const url = await databases?.createDatabase("operators");
    await expectOperatorsAnswered(url, () => true);
  });

  test("nothing that callers send is a fault of the service", async () => {
    await using databases = store === "SQLite" ? null : await startPostgres();
    const url = await databases?.createDatabase("callers");
    await expectCallersAnswered(url, () => true);
  });
});
