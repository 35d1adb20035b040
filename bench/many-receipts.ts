import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { DatabaseSync } from "node:sqlite";
import { Client } from "pg";
import { openPostgresLedger } from "../src/ledger/postgres/postgres-ledger.ts";
import { openSqliteLedger } from "../src/ledger/sqlite/sqlite-ledger.ts";
import type { Row } from "../src/ledger/row.ts";
import { type ManyReceipts, writeManyReceipts } from "../tests/doubles/many-receipts.ts";

// node bench/many-receipts.ts sqlite:PATH | postgres://... [--receipts 2000000] [--accounts 40] [--days 365]

const rules = {
  prices: { inputNanosPerMillion: 1_000_000_000n, outputNanosPerMillion: 4_000_000_000n },
  concurrencyPerAccount: 4,
  requestsPerMinute: 600,
  leaseMs: 60_000,
};

/** Makes the ledger where it is not there, and writes receipts into it in one transaction. */
export async function writeLedger(address: string, many: ManyReceipts): Promise<void> {
  if (address.startsWith("sqlite:")) await writeSqlite(address.slice("sqlite:".length), many);
  else await writePostgres(address, many);
}

async function writeSqlite(path: string, many: ManyReceipts): Promise<void> {
  const parts = { now: Date.now, telemetry: { ledgerRetry: () => {} } };
  const settings = { path, synchronous: "normal", ...rules } as const;
  await (await openSqliteLedger(settings, parts))[Symbol.asyncDispose]();
  using database = new DatabaseSync(path, { readBigInts: true });
  database.exec("pragma cache_size = -262144; pragma synchronous = normal; begin immediate");
  await writeManyReceipts((sql, ...values) => {
    const text = sql.replaceAll("tributary.", "").replaceAll(/\$(\d+)/gu, "?$1");
    const statement = database.prepare(text);
    return Promise.resolve(statement.all(...values) as readonly Row[]);
  }, many);
  database.exec("commit; pragma wal_checkpoint(truncate)");
}

async function writePostgres(url: string, many: ManyReceipts): Promise<void> {
  await (await openPostgresLedger({ url, connections: 1, ...rules }, {}))[Symbol.asyncDispose]();
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    await client.query("begin; set local work_mem = '256MB'");
    await writeManyReceipts(async (sql, ...values) => {
      const { rows } = await client.query<Row>(
        sql,
        values.map((value) => (value instanceof Uint8Array ? Buffer.from(value) : value)),
      );
      return rows;
    }, many);
    await client.query("commit");
    await client.query("analyze tributary.reservation");
  } finally {
    await client.end();
  }
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const { positionals, values } = parseArgs({
    allowPositionals: true,
    options: {
      receipts: { type: "string", default: "2000000" },
      accounts: { type: "string", default: "40" },
      days: { type: "string", default: "365" },
    },
  });
  const [address] = positionals;
  if (address === undefined) throw new Error("name a ledger: sqlite:PATH or postgres://...");
  const untilMs = Date.now();
  const startedMs = performance.now();
  const many = {
    receipts: Number(values.receipts),
    accounts: Number(values.accounts),
    sinceMs: untilMs - Number(values.days) * 86_400_000,
    untilMs,
  };
  await writeLedger(address, many);
  process.stdout.write(
    `${values.receipts} receipts in ${((performance.now() - startedMs) / 1_000).toFixed(1)} s\n`,
  );
}
