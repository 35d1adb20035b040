import { DatabaseSync } from "node:sqlite";
import { textOf } from "../../row.ts";

const grownTables = ["reservation", "entry"] as const;

/**
 * Does the statements of a step; what adds a column to a table that grows with requests reads none of its rows. SQLite
 * itself would check every row of it for each column. The table's text becomes what SQLite makes of an empty copy, which its
 * documentation allows for columns at the end (https://www.sqlite.org/lang_altertable.html#otheralter); older rows then
 * have the default, which has to suit the column's own check.
 */
export function execUnread(database: DatabaseSync, step: string): void {
  const added = new RegExp(`^alter table (${grownTables.join("|")}) add column[^;]*;`, "gm");
  for (const table of grownTables) {
    const columns = [...step.matchAll(added)].filter(([, name]) => name === table);
    if (columns.length > 0) addColumns(database, table, columns.map(([text]) => text).join("\n"));
  }
  database.exec(step.replaceAll(added, ""));
}

function addColumns(database: DatabaseSync, table: string, alter: string): void {
  const find = "select sql from main.sqlite_schema where type = 'table' and name = ?";
  const before = textOf(database.prepare(find).get(table) ?? {}, "sql");
  using copy = new DatabaseSync(":memory:");
  copy.exec(`${before};\n${alter}`);
  const after = textOf(copy.prepare(find).get(table) ?? {}, "sql");
  database.enableDefensive(false);
  database.exec("pragma writable_schema = on");
  database
    .prepare("update main.sqlite_schema set sql = ? where type = 'table' and name = ?")
    .run(after, table);
  const version = database.prepare("pragma main.schema_version").get();
  database.exec(`pragma main.schema_version = ${String(Number(version?.["schema_version"]) + 1)}`);
  database.exec("pragma writable_schema = off");
  database.enableDefensive(true);
}
