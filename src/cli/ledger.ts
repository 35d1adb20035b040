import { resolve } from "node:path";
import { parseConfig } from "../config/config.ts";
import type { CopiedRows, LedgerSource } from "../ledger/copied-tables.ts";
import type { VerifyReport } from "../ledger/verify-journal.ts";
import {
  type Command,
  CommandError,
  type CommandGroup,
  misuse,
  operand,
  type Shell,
} from "./command.ts";
import { counted } from "./counted.ts";
import { ensureThere, openLedger } from "./open-ledger.ts";
import { ensureConfig, ledgerOrigin } from "./settings.ts";

const help = `The ledger as a whole: where it is, and copies of it.

  tributary ledger backup PATH      copy a SQLite ledger into a new file, while the service runs, and verify the copy
  tributary ledger move --to URL    copy a SQLite ledger into an empty PostgreSQL, and verify both

  --to URL   postgres://user@host:5432/database, with the password in the variable PGPASSWORD: others see a command line
  --json     backup prints {"path","ok","entries","accounts"}, move {"ok","entries","accounts","rows"}

Both start from the ledger that the settings name. A backup is put in its place while nothing runs, and ledger.sqlite-wal and
ledger.sqlite-shm are removed with the file that it replaces. PostgreSQL is backed up by its own tools, such as pg_dump.

Before a ledger is moved the service has to be stopped, so that no request runs. It is verified, copied in one transaction
with its hashes, verified there, and both have to end in the same heads. The file stays as a backup and is marked, so that no
service and no command opens it any more: set TRIBUTARY_DATABASE_URL to the new ledger before the service is started again.
`;

const backup: Command = {
  help,
  operands: ["PATH"],
  options: {},
  run: async (line, shell) => {
    const from = ensureFile(shell, "Back up PostgreSQL with its own tools, such as pg_dump.");
    const path = resolve(shell.folder, operand(line, 0));
    const { backUp } = await import("../ledger/sqlite/backup.ts");
    const { accounts, entries, ok, problemsTotal } = backUp(from, path);
    return {
      json: { path, ok, entries, accounts },
      text: ok
        ? `${path}: ${sizeOf(entries, accounts)}, verified.\n`
        : `${path} was written, but has ${String(problemsTotal)} problems, as the ledger has. See: ${shell.programName} verify\n`,
      exitCode: ok ? 0 : 1,
    };
  },
};

const move: Command = {
  help,
  operands: [],
  options: { to: { type: "string" } },
  run: async (line, shell) => {
    const to = line.texts["to"];
    if (to === undefined || !/^postgres(?:ql)?:\/\//.test(to))
      throw misuse(
        `ledger move needs --to postgres://user@host:5432/database, and the password in PGPASSWORD. See: ${shell.programName} ledger --help`,
      );
    ensureAddress(to, shell);
    const path = ensureFile(shell, "It is in PostgreSQL already.");
    const { report, rows } = await moveLedger(path, to, shell);
    const { accounts, entries } = report;
    return {
      json: { ok: true, entries, accounts, rows },
      text: `${sizeOf(entries, accounts)} were moved; both ledgers add up and end in the same heads.\nSet TRIBUTARY_DATABASE_URL to the new one before the service starts again. ${path} is only a backup now: nothing opens it any more.\n`,
    };
  },
};

/** `ledger ...` */
export const ledgerCommands: CommandGroup = { help, actions: { backup, move } };

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
  if (shell.quiet !== true)
    shell.stderr.write(`ledger: ${database.path} (${ledgerOrigin(shell)})\n`);
  return database.path;
}

async function moveLedger(
  path: string,
  url: string,
  shell: Shell,
): Promise<{
  readonly report: VerifyReport;
  readonly rows: CopiedRows;
}> {
  const { openSqliteSource } = await import("../ledger/sqlite/source.ts");
  // Locked until the end: both are compared as they are now.
  using source = openSqliteSource(path, {
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
  const { importLedger } = await import("../ledger/postgres/import.ts");
  await using target = await openLedger({
    ...ensureConfig(shell),
    database: { kind: "postgres", url, connections: 1 },
  });
  source.beginMove();
  const rows = await orGivenUp(source, () => importLedger({ url }, source));
  // From here on it is there: a file that stays as it is marked now can be moved again, and serves nobody meanwhile.
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

async function orGivenUp<Value>(source: LedgerSource, step: () => Promise<Value>): Promise<Value> {
  try {
    return await step();
  } catch (error) {
    source.giveUpMove();
    throw error;
  }
}
