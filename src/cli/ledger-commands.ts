import type { Definitions } from "./command.ts";

// Loaded when called, so that `--help` does not wait for a ledger.
const load = {
  ledger: () => import("./ledger.ts"),
  archive: () => import("./archive.ts"),
};

/** The commands of the ledger as a whole. */
export function addLedgerCommands({ finish, program, shell }: Definitions): void {
  const ledger = program
    .command("ledger")
    .summary("copies of a ledger, and archives")
    .description(
      "The ledger as a whole, which the settings name, copies of it, and archives of old receipts. PostgreSQL is backed up by its own tools, such as pg_dump.",
    );
  ledger
    .command("backup")
    .summary("copy a SQLite ledger while the service runs")
    .description(
      'Copies a SQLite ledger into a new file, while the service runs, and verifies the copy. A backup is put in its place while nothing runs, and ledger.sqlite-wal and ledger.sqlite-shm are removed with the file that it replaces. --json prints {"path","ok","entries","accounts"}.',
    )
    .argument("<PATH>")
    .action(async (path) => finish(await (await load.ledger()).backUpLedger(shell, path)));
  ledger
    .command("archive")
    .summary("move old receipts into a file")
    .description(
      'Moves receipts of requests that ended before T into a file of JSON lines, while the service runs. Verifies the ledger first, rolls up the entries of that time as `tributary checkpoint` does, and keeps what the receipts come to, so that usage, budgets and `tributary verify` go on. An archived receipt can be neither looked up nor refunded any more. --json prints {"accounts","receipts","entries","file"}.',
    )
    .requiredOption("--before <T>", "90 days ago or more: 2026-01-31, 2026-01-31T12:00:00Z, or 90d")
    .option("--account <ID>", "of one account")
    .option("--to <FOLDER>", "where the file is made; without it TRIBUTARY_ARCHIVE_DIR")
    .action(async (options) => finish(await (await load.archive()).archiveLedger(shell, options)));
  ledger
    .command("check-archive")
    .summary("are archived receipts as they were?")
    .description(
      'Holds files of archived receipts against the hashes that the ledger keeps of them. Exit code 1 when one was changed or is not whole. --json prints {"ok","receipts","problems":[]}.',
    )
    .argument("<FILE...>")
    .action(async (files) => finish(await (await load.archive()).checkArchive(shell, files)));
  ledger
    .command("move")
    .summary("move a SQLite ledger to PostgreSQL")
    .description(
      'Copies a SQLite ledger into an empty PostgreSQL, and verifies both. Before that the service has to be stopped, so that no request runs. The ledger is verified, copied in one transaction with its hashes, verified there, and both have to end in the same heads. The file stays as a backup and is marked, so that no service and no command opens it any more: set TRIBUTARY_DATABASE_URL to the new ledger before the service is started again. --json prints {"ok","entries","accounts","rows"}.',
    )
    .requiredOption(
      "--to <URL>",
      "postgres://user@host:5432/database, with the password in the variable PGPASSWORD: others see a command line",
    )
    .action(async (options) => finish(await (await load.ledger()).moveLedger(shell, options)));
}
