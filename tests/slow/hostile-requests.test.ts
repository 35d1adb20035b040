import { describe, test } from "vitest";
import { postgresTests, startPostgres } from "../ledger/postgres-server.ts";
import { expectCallersAnswered, expectOperatorsAnswered } from "../wire/ask-hostile.ts";
import type { HostileRequest } from "../wire/hostile-requests.ts";

// In each place that the documents have: a text, a number or a cursor that only careless readers take.
/** PostgreSQL is asked what it could take otherwise: an id of odd letters is a text like others. */
const onPostgres = ({ in: place, isNoText }: HostileRequest): boolean =>
  isNoText || place === "query" || place === "body";

describe.each(["SQLite", ...(postgresTests ? ["PostgreSQL"] : [])])("on %s", (store) => {
  test("nothing that operators send is a fault of the service", async () => {
    await using databases = store === "SQLite" ? null : await startPostgres();
    const url = await databases?.createDatabase("operators");
    await expectOperatorsAnswered(url, url === undefined ? () => true : onPostgres);
  });

  test("nothing that callers send is a fault of the service", async () => {
    await using databases = store === "SQLite" ? null : await startPostgres();
    const url = await databases?.createDatabase("callers");
    await expectCallersAnswered(url, url === undefined ? () => true : onPostgres);
  });
});
