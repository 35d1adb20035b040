import { type MovedRows, type MovedTable, movedTables, type MoveSource } from "../moved-tables.ts";
import { OperatorError } from "../operator-error.ts";
import { toHex } from "../journal.ts";
import type { Row } from "../row.ts";
import { StoreFault } from "../store-fault.ts";
import { openDatabase, type DatabaseSettings, type Query } from "./database.ts";

const lock = {
  name: "move-lock",
  // Commands and replicas that would write wait, so that an empty ledger stays empty until the copy is committed.
  text: "lock table tributary.account, tributary.seal_key in share row exclusive mode",
};
const anything = {
  name: "move-empty",
  text: "select 1 as one from tributary.account union all select 1 from tributary.seal_key limit 1",
};

/** Moves the rows of a whole ledger into an empty one whose schema is there, in one transaction. */
export async function moveRows(settings: DatabaseSettings, source: MoveSource): Promise<MovedRows> {
  await using database = openDatabase({ ...settings, connections: 1 });
  try {
    return await database.transaction(async (query) => {
      await query(lock);
      if ((await query(anything)).length > 0)
        throw new OperatorError(
          "not_possible",
          "The ledger to move to is not empty: it has accounts or keys of its own. Name an empty database, and start no service on it before.",
        );
      const moved: Record<string, number> = {};
      for (const table of movedTables) moved[table.name] = await copy(query, table, source);
      return moved;
    });
  } catch (error) {
    if (!(error instanceof StoreFault)) throw error;
    throw new OperatorError(
      "not_possible",
      `Nothing was moved: ${error.message}. Both ledgers are as they were.`,
      { cause: error },
    );
  }
}

async function copy(query: Query, table: MovedTable, source: MoveSource): Promise<number> {
  const columns = table.columns.join(", ");
  const insert = {
    name: `move-${table.name}`,
    // Rows are inserted in the order of the array: the last key that seals has to stay the last.
    text: `insert into tributary.${table.name} (${columns})
      select ${columns} from json_populate_recordset(null::tributary.${table.name}, $1::json)`,
  };
  let moved = 0;
  for (const rows of source.read(table)) {
    await query(insert, JSON.stringify(rows.map((row) => rowToJson(row))));
    moved += rows.length;
  }
  return moved;
}

function rowToJson(row: Row): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    Object.entries(row).map(([name, value]) => [
      name,
      // The only column that is a boolean in PostgreSQL and a number in SQLite.
      name === "streamed" ? value === 1n : textOfValue(value),
    ]),
  );
}

/** As PostgreSQL reads it; credit is never rounded. */
function textOfValue(value: unknown): string | null {
  if (value === null || typeof value === "string") return value;
  if (typeof value === "bigint") return value.toString();
  if (value instanceof Uint8Array) return `\\x${toHex(value)}`;
  throw new Error("ledger: a value of a type that no ledger has");
}
