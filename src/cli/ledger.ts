import { resolve } from "node:path";
import { parseConfig } from "../config/config.ts";
import type { MovedRows, MoveSource } from "../ledger/moved-tables.ts";
import type { VerifyReport } from "../ledger/verify-journal.ts";
import { CommandError, misuse, type Outcome, type Shell } from "./command.ts";
import { counted } from "./counted.ts";
import { ensureThere, openLedger } from "./open-ledger.ts";
import { ensureConfig, ledgerOrigin } from "./settings.ts";

/** `ledger backup` */
export async function backUpLedger(shell: Shell, to: string): Promise<Outcome> {
  const from = ensureFile(shell, "Back up PostgreSQL with its own tools, such as pg_dump.");
  const path = resolve(shell.folder, to);
  const { backUp } = await import("../ledger/sqlite/backup.ts");
  const { accounts, entries, ok, problemsTotal } = backUp(from, path);
  return {
    json: { path, ok, entries, accounts },
    text: ok
      ? `${path}: ${sizeOf(entries, accounts)}, verified.\n`
      : `${path} was written, but has ${String(problemsTotal)} problems, as the ledger has. See: ${shell.programName} verify\n`,
    exitCode: ok ? 0 : 1,
  };
}

/** `ledger move` */
export async function moveLedger(shell: Shell, { to }: { readonly to: string }): Promise<Outcome> {
  if (!/^postgres(?:ql)?:\/\//.test(to))
    throw misuse(
      `ledger move needs --to postgres://user@host:5432/database, and the password in PGPASSWORD. See: ${shell.programName} ledger move --help`,
    );
  ensureAddress(to, shell);
  const path = ensureFile(shell, "It is in PostgreSQL already.");
  const { report, rows } = await moveToPostgres(path, to, shell);
  const { accounts, entries } = report;
  return {
    json: { ok: true, entries, accounts, rows },
    text: `${sizeOf(entries, accounts)} were moved; both ledgers add up and end in the same heads.\nSet TRIBUTARY_DATABASE_URL to the new one before the service starts again. ${path} is only a backup now: nothing opens it any more.\n`,
  };
}

function sizeOf(entries: number, accounts: number): string {
  return `${counted(entries, "entry", "entries")} of ${counted(accounts, "account", "accounts")}`;
}

/** Where a piece of a password would be taken for the host, it would be asked for and shown. */
function ensureAddress(url: string, shell: Shell): void {
  const parsed = parseConfig({ TRIBUTARY_DATABASE_URL: url }, shell.folder);
  if (!parsed.ok) throw misuse(`--to: ${parsed.problems.map(({ remedy }) => remedy).join("; ")}.`);
}

/** The file of the ledger that the settings name. */
function ensureFile(shell: Shell, otherwise: string): string {
  const config = ensureConfig(shell);
  const { database } = config;
  if (database.kind === "postgres")
    throw new CommandError("not_possible", 1, `The ledger is no SQLite file. ${otherwise}`);
  ensureThere(config, shell);
  if (!shell.json) shell.stderr.write(`ledger: ${database.path} (${ledgerOrigin(shell)})\n`);
  return database.path;
}

async function moveToPostgres(
  path: string,
  url: string,
  shell: Shell,
): Promise<{
  readonly report: VerifyReport;
  readonly rows: MovedRows;
}> {
  const { openMoveSource } = await import("../ledger/sqlite/move.ts");
  // Locked until the end: both are compared as they are now.
  using source = openMoveSource(path, {
    nowMs: Date.now(),
    leaseMs: ensureConfig(shell).leaseSeconds * 1_000,
  });
  if (source.processes > 0)
    throw new CommandError(
      "not_possible",
      1,
      `${counted(source.processes, "service has", "services have")} this ledger open (${path}), so nothing was moved. Stop every service on it, and run this again.`,
    );
  if (source.open > 0)
    throw new CommandError(
      "not_possible",
      1,
      `${counted(source.open, "request runs", "requests run")} on this ledger, so nothing was moved. Stop the service, which lets them end; what a killed one held returns within a lease (TRIBUTARY_LEASE_SECONDS).`,
    );
  const before = source.verify();
  if (!before.ok)
    throw new CommandError(
      "not_possible",
      1,
      `The ledger has ${counted(before.problemsTotal, "problem", "problems")}, so nothing was moved. See: ${shell.programName} verify`,
    );
  const { moveRows } = await import("../ledger/postgres/move.ts");
  await using target = await openLedger({
    ...ensureConfig(shell),
    database: { kind: "postgres", url, connections: 1 },
  });
  source.beginMove();
  const rows = await orGivenUp(source, () => moveRows({ url }, source));
  // From here on it is there: a file that keeps its mark can be moved again, and no service opens it meanwhile.
  const report = await target.verify([], true);
  if (!report.ok || report.heads.join() !== before.heads.join()) {
    source.giveUpMove();
    throw new CommandError(
      "failed",
      1,
      `The ledger was copied, but differs there. Keep using ${path}, drop the schema tributary of the other one, and report this.`,
    );
  }
  source.finishMove();
  return { report, rows };
}

async function orGivenUp<Value>(source: MoveSource, step: () => Promise<Value>): Promise<Value> {
  try {
    return await step();
  } catch (error) {
    source.giveUpMove();
    throw error;
  }
}
