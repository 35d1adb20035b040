import { DatabaseSync } from "node:sqlite";
import { Client } from "pg";
import type { Row } from "../../src/ledger/row.ts";
import type { RunStatement } from "../doubles/many-receipts.ts";

/** A connection of its own to a SQLite ledger, for statements that are written as those of PostgreSQL. */
export function openSqliteStatements(path: string): Disposable & { readonly run: RunStatement } {
  const database = new DatabaseSync(path, { readBigInts: true, timeout: 5_000 });
  return {
    run: (sql, ...values) => {
      const text = sql.replaceAll("tributary.", "").replaceAll(/\$(\d+)/gu, "?$1");
      return Promise.resolve(database.prepare(text).all(...values));
    },
    [Symbol.dispose]: () => database.close(),
  };
}

/** A connection of its own to a ledger on PostgreSQL. */
export async function openPostgresStatements(
  url: string,
): Promise<AsyncDisposable & { readonly run: RunStatement }> {
  const client = new Client({ connectionString: url });
  await client.connect();
  return {
    run: async (sql, ...values) => {
      const { rows } = await client.query<Row>(
        sql,
        values.map((value) => (value instanceof Uint8Array ? Buffer.from(value) : value)),
      );
      return rows;
    },
    [Symbol.asyncDispose]: () => client.end(),
  };
}
