import { type CommandUnknownOpts, Option } from "@commander-js/extra-typings";
import { addAccountCommands, addKeyCommands } from "./account-commands.ts";
import type { Definitions } from "./command.ts";
import { addLedgerCommands } from "./ledger-commands.ts";
import { addUrl, callHere } from "./make-call.ts";
import { addOperatorCommands } from "./operator-commands.ts";
import { addPriceCommands } from "./price-commands.ts";
import { addWebhookCommands } from "./webhook-commands.ts";
import { usualSettings } from "./usual-settings.ts";
import { addUpkeepCommands } from "./upkeep-commands.ts";

// Loaded when called, so that `--help` does not wait for a ledger.
const load = {
  serve: () => import("./serve.ts"),
  receipt: () => import("./receipt.ts"),
  verify: () => import("./verify.ts"),
  checkpoint: () => import("./checkpoint.ts"),
  seal: () => import("./seal.ts"),
  model: () => import("./model.ts"),
  connect: () => import("./connect.ts"),
  doctor: () => import("./doctor.ts"),
};

/** Every command: its words, options and help. */
export function addCommands(definitions: Definitions): void {
  const { program } = definitions;
  program
    .description(
      "Tributary: one deployed language model behind Chat Completions, Responses and Messages.",
    )
    .configureHelp({
      helpWidth: 100,
      subcommandTerm,
      subcommandDescription: (one) => one.summary(),
    })
    .addHelpText("after", notes);
  addServe(definitions);
  addAccountCommands(definitions);
  addKeyCommands(definitions);
  addPriceCommands(definitions);
  addWebhookCommands(definitions);
  addOperatorCommands(definitions);
  addReports(definitions);
  addLedgerCommands(definitions);
  addSeal(definitions);
  addModel(definitions);
  addConnect(definitions);
  addDoctor(definitions);
  addUpkeepCommands(definitions);
  completeHelp(program, definitions);
}

const notes = `
Every command has --help and --json.
Settings come from the environment and from a .env file in the working folder: docs/configuration.md.
Exit codes: 0 done, 1 failed, 2 misused.`;

/** `account create|list` of a group, else the command with its words. */
function subcommandTerm(command: CommandUnknownOpts): string {
  const actions = command.commands.map((action) => action.name()).join("|");
  const words = command.registeredArguments.map((word) =>
    word.required ? word.name() : `[${word.name()}]`,
  );
  return [command.name(), ...(actions === "" ? words : [actions])].join(" ");
}

/** What every command and group has besides its own. */
function completeHelp(
  command: CommandUnknownOpts,
  definitions: Definitions,
  path: readonly string[] = [],
): void {
  const name = [...path, command.name()];
  command.helpCommand(false).showHelpAfterError(`See: ${name.join(" ")} --help`);
  command.option("--json", "print one JSON document, and errors as one");
  addUrl(command, definitions, name.slice(1));
  for (const inner of command.commands) completeHelp(inner, definitions, name);
}

function addServe({ finish, program, shell }: Definitions): void {
  program
    .command("serve")
    .summary("run the service")
    .description(
      "Runs the service until SIGTERM or Ctrl-C. At the first signal new requests are refused and running ones get TRIBUTARY_DRAIN_SECONDS to finish; a second Ctrl-C leaves at once. With TRIBUTARY_DRAIN_DELAY_SECONDS all is served that long before, while /readyz fails; another signal ends that. On a terminal the log is human-readable; otherwise, and with --json, it is JSON lines.",
    )
    .addHelpText(
      "after",
      `\nThe usual settings, from the environment or a .env file here; all of them: docs/configuration.md\n${usualSettings()}`,
    )
    .action(async () => finish(await (await load.serve()).serve(shell)));
}

function addReports(definitions: Definitions): void {
  const { finish, program, shell } = definitions;
  program
    .command("usage")
    .summary("tokens and credit, added up")
    .description("Tokens and credit of the requests that have ended, added up for each account.")
    .option("--account <ID>", "of one account")
    .option("--key <ID>", "of one key")
    .option(
      "--since <T>",
      "requests that ended from T on: 2026-01-31, 2026-01-31T12:00:00Z, or a span that ends now, 24h or 7d; times are UTC",
    )
    .option("--until <T>", "requests that ended before T")
    .option(
      "--by <GROUP>",
      "what a row is, of each account: hour, day, month, key, format or label; or two of these and account with a comma between, as month,label",
      "day",
    )
    .option("--timezone <NAME>", "of days and months, such as Europe/Berlin", "UTC")
    .addOption(
      new Option(
        "--format <FORMAT>",
        "jsonl is one JSON object a row; --json prints the rows as one array",
      )
        .choices(["table", "csv", "jsonl"] as const)
        .default("table" as const),
    )
    .action(callHere(definitions));
  program
    .command("receipt")
    .summary("what one request reserved and was charged")
    .description(
      "What one request reserved and was charged, its tokens, how it ended and how long it took. The last line is the head of the account's journal at this request: `tributary verify --against HEAD` proves later that nothing up to it was changed. --json prints the receipt as GET /receipts/{request id} answers it.",
    )
    .argument(
      "<REQUEST_ID>",
      "is in the x-request-id header of every answer, in error bodies and in the log",
    )
    .action(async (id) => finish(await (await load.receipt()).showReceipt(shell, id)));
  program
    .command("verify")
    .summary("add up the whole ledger again")
    .description(
      'Adds up the whole ledger again, from its first entry, and compares: balances, what is held, every receipt, the chain of hashes. Works while the service runs, on one snapshot. Exit code 1 when anything is wrong; the first problem of an account names its first bad entry. --json prints {"ok","entries","problems":[]}.',
    )
    .option(
      "--against <HEAD>",
      "a head as a receipt shows it (acct_...:17:9f86d0...), several with commas between them, or @FILE with a head a line: proves that nothing up to them was changed or taken away",
    )
    .option(
      "--save-heads <FILE>",
      "write the heads of all accounts, to be kept where who can write the ledger cannot change them",
    )
    .action(async (options) => finish(await (await load.verify()).verifyLedger(shell, options)));
  program
    .command("checkpoint")
    .summary("replace old entries of the journal by what they add up to")
    .description(
      'Replaces old entries of the journal by what they add up to. Receipts and usage stay; the chain confirms the sum, and `tributary verify` starts from it. Verifies the ledger first, and changes nothing when that finds a problem. Heads that were kept of removed entries cannot be verified against any more: keep newer ones first (`tributary verify --save-heads FILE`). --json prints {"accounts","removed","misdated"}.',
    )
    .requiredOption(
      "--before <T>",
      "entries written before T: 2026-01-31, 2026-01-31T12:00:00Z, or 90d for what is older than 90 days",
    )
    .option("--account <ID>", "of one account")
    .action(async (options) =>
      finish(await (await load.checkpoint()).addCheckpoints(shell, options)),
    );
}

function addSeal({ finish, program, shell }: Definitions): void {
  const seal = program
    .command("seal")
    .summary("keys that seal reasoning")
    .description(
      "The keys that seal reasoning, so that clients can send it back and cannot change or read it. The ledger keeps them.",
    );
  seal
    .command("rotate")
    .summary("make a new key; older ones go on opening")
    .description(
      'Makes a new key; services that run seal with it after a minute, without a restart. What older keys have sealed goes on opening: no session of a client ends. Rotate when a copy of the ledger may have come into other hands: who has a key can make reasoning that the service takes for its own. --json prints {"id"}.',
    )
    .action(async () => finish(await (await load.seal()).rotateSealKey(shell)));
  seal
    .command("list")
    .summary("the keys there are")
    .description(
      'Lists the keys, oldest first, without their secrets. --json prints [{"id","age_seconds"}].',
    )
    .action(async () => finish(await (await load.seal()).listSealKeys(shell)));
}

function addModel({ finish, program, shell }: Definitions): void {
  const model = program
    .command("model")
    .summary("models of the embedded engine")
    .description(
      'Models of the embedded engine and their weights on this machine. --json prints a list of {"name","title","default","downloaded","path","bytes","context","license","terms","note"}.',
    );
  model
    .command("list")
    .summary("the catalog, and what is on this machine")
    .description("Lists the catalog, what was fetched from addresses, and what is on this machine.")
    .action(async () => finish(await (await load.model()).listModels(shell)));
  model
    .command("pull")
    .summary("download weights")
    .description(
      "Downloads weights; goes on where it was interrupted. What is here is read again from its first byte to its last, and replaced when it is damaged.",
    )
    .argument(
      "[NAME]",
      "a name of the list, hf:OWNER/REPOSITORY/FILE.gguf or an https:// address, either with #sha256=HASH at its end where you know the hash; without it what TRIBUTARY_MODEL names",
    )
    .option("--accept-license", "you read the terms of this model's license and accept them", false)
    .action(async (name, options) =>
      finish(await (await load.model()).pullModel(shell, name ?? null, options)),
    );
}

function addConnect({ finish, program, shell }: Definitions): void {
  program
    .command("connect")
    .summary("lines to paste for curl, Python, TypeScript, Claude Code, Codex, ...")
    .description(
      'Lines for one client of the service, ready to paste. --json prints {"client","url","deployment","recipes":[{"title","language","text"}]}; deployment is null, or says which one an agent needs and what is known of this one.',
    )
    .argument(
      "[CLIENT]",
      "curl, python, typescript, langchain, openai-agents, claude, codex or opencode; without it the clients that lines are known for",
    )
    .option("--url <URL>", "address of the service; else from TRIBUTARY_HOST and TRIBUTARY_PORT")
    .option("--key <KEY>", "a key of it; else TRIBUTARY_API_KEY, else YOUR_KEY is to be replaced")
    .action(async (client, options) =>
      finish(await (await load.connect()).connect(shell, client ?? null, options)),
    );
}

function addDoctor({ finish, program, shell }: Definitions): void {
  program
    .command("doctor")
    .summary("check settings, ledger and deployment")
    .description(
      'Checks the settings, the ledger, and the deployment with a tiny generation in each of the three formats; of the embedded engine it tells what it runs on, and its tokens per second. The engine is tried through a service of its own, which leaves the ledger alone; no weights are downloaded. --json prints {"ok","checks":[{"name","ok","message","fix"}]}; exit 1 when a check fails.',
    )
    .option(
      "--url <URL>",
      "ask a service that runs: is it there and ready, and, with a key, does it answer in each format; the key's account pays for six tiny answers",
    )
    .option(
      "--key <KEY>",
      "a key of that service; better in TRIBUTARY_API_KEY, as others see a command line",
    )
    .option(
      "--timeout <SECONDS>",
      "how long to wait for the deployment and for each answer (default 600 for the embedded engine, else 30, or 1 where nothing listens)",
    )
    .action(async (options) => finish(await (await load.doctor()).doctor(shell, options)));
}
