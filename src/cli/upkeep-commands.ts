import type { Definitions } from "./command.ts";

const load = { health: () => import("./health.ts"), restore: () => import("./restore.ts") };

/** The commands that a supervisor calls, or a person after an accident: words, options and help. */
export function addUpkeepCommands({ finish, program, shell }: Definitions): void {
  program
    .command("health")
    .summary("ask the service here whether it is up")
    .description(
      'Asks the service that listens here by these settings whether it is up (/healthz): for health checks of containers. --json prints {"ok","status"}; exit 1 where it is not, or does not answer.',
    )
    .option("--ready", "whether it takes requests and its ledger can be written (/readyz)")
    .action(async (options) => finish(await (await load.health()).askHealth(shell, options)));
  program.commands
    .find((command) => command.name() === "ledger")
    ?.command("restore")
    .summary("put a backup in the place of a SQLite ledger")
    .description(
      'Puts a backup where the settings have the ledger, while no service runs on it. It is copied, brought up to this version, and verified before anything is replaced; a ledger that is there is kept beside it, and what happened in it after the backup is counted by account. --json prints {"ok","path","entries","accounts","problems","problems_total","replaced","after":[{"account","entries"}]}; exit 1 where the backup does not add up, or does not continue the heads.',
    )
    .argument("<PATH>")
    .option(
      "--against <HEADS>",
      "heads that were kept before the backup, or @FILE of `verify --save-heads`: they have to be in it, unchanged",
    )
    .action(async (path, options) =>
      finish(await (await load.restore()).restoreLedger(shell, path, options)),
    );
}
