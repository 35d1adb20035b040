import { type ParseArgsOptionsConfig, parseArgs } from "node:util";
import {
  type Command,
  CommandError,
  type CommandGroup,
  type CommandLine,
  misuse,
  type Shell,
} from "./command.ts";
import { variables } from "../config/environment.ts";
import { nearestName } from "../config/nearest-name.ts";
import { explainName, spellCommands } from "./spell-commands.ts";

// Loaded when called, so that `--help` does not wait for an engine.
const commands: Readonly<Record<string, () => Promise<Command | CommandGroup>>> = {
  serve: async () => (await import("./serve.ts")).serveCommand,
  account: async () => (await import("./account.ts")).accountCommands,
  key: async () => (await import("./key.ts")).keyCommands,
  usage: async () => (await import("./usage.ts")).usageCommand,
  receipt: async () => (await import("./receipt.ts")).receiptCommand,
  verify: async () => (await import("./verify.ts")).verifyCommand,
  checkpoint: async () => (await import("./checkpoint.ts")).checkpointCommand,
  ledger: async () => (await import("./ledger.ts")).ledgerCommands,
  seal: async () => (await import("./seal.ts")).sealCommands,
  model: async () => (await import("./model.ts")).modelCommands,
  connect: async () => (await import("./connect.ts")).connectCommand,
  doctor: async () => (await import("./doctor.ts")).doctorCommand,
};

const overview = `Tributary: one deployed language model behind Chat Completions, Responses and Messages.

Usage: tributary COMMAND [--json] [--help]

  serve                    run the service
  account create NAME [--credit C]
  account list             accounts with their credit
  account show ID
  account credit ID AMOUNT [--note T]
  account disable ID, account enable ID
  key create ACCOUNT [--name N]
  key list ACCOUNT
  key revoke KEY_ID
  usage [--account ID] [--since T] [--until T] [--by hour|day|key|format] [--format table|csv|jsonl]
  receipt REQUEST_ID       what one request reserved and was charged
  verify [--against HEAD]  add up the whole ledger again
  checkpoint --before T    replace old entries of the journal by what they add up to
  ledger backup PATH       copy a SQLite ledger while the service runs
  ledger move --to URL     move a SQLite ledger to PostgreSQL
  seal rotate              make a new key that seals reasoning; older ones go on opening
  seal list
  model list               models of the embedded engine
  model pull [NAME] [--accept-license]
  connect [CLIENT]         lines to paste for curl, Python, TypeScript, Claude Code, Codex, ...
  doctor [--url URL]       check settings, ledger and deployment

Settings come from the environment and from a .env file in the working folder: docs/configuration.md.
Exit codes: 0 done, 1 failed, 2 misused.
`;

/** Runs one command line and returns its exit code. Never rejects. */
export async function runCommandLine(argv: readonly string[], shell: Shell): Promise<number> {
  const json = argv.includes("--json");
  try {
    return await dispatch(argv, shell);
  } catch (error) {
    const { code, exitCode, message: words } = await explain(error);
    const message = spellCommands(words, shell.programName);
    shell.stderr.write(
      json ? `${JSON.stringify({ error: { code, message } })}\n` : `${message.trimEnd()}\n`,
    );
    return exitCode;
  }
}

async function dispatch(argv: readonly string[], shell: Shell): Promise<number> {
  const [name, ...words] = argv;
  if (name === undefined) throw misuse(overview + explainName(shell.programName));
  if (name === "help" && words.length > 0) return dispatch([...words, "--help"], shell);
  if (name === "--help" || name === "-h" || name === "help") return printHelp(shell, overview);
  if (name === "--version") return print(shell, `${(await import("./version.ts")).version}\n`);
  const load = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (load === undefined)
    throw misuse(
      `There is no command ${JSON.stringify(name)}${guess(name, Object.keys(commands))}. See: ${shell.programName} --help`,
    );
  const found = await load();
  if (!("actions" in found)) return run(found, { name, words }, shell);
  const [action, ...rest] = words;
  if (action === "--help" || action === "-h") return printHelp(shell, found.help);
  const command = Object.hasOwn(found.actions, action ?? "")
    ? found.actions[action ?? ""]
    : undefined;
  if (command === undefined)
    throw misuse(`${noAction(name, action, found)}. See: ${shell.programName} ${name} --help`);
  return run(command, { name: `${name} ${action ?? ""}`, words: rest }, shell);
}

async function run(
  command: Command,
  call: { readonly name: string; readonly words: readonly string[] },
  shell: Shell,
): Promise<number> {
  const advice = `See: ${shell.programName} ${call.name} --help`;
  const { help, line } = parseWords(call.words, command.options, advice);
  if (help) return printHelp(shell, command.help);
  const needed = command.operands.filter((name) => !name.startsWith("["));
  if (line.positionals.length < needed.length)
    throw misuse(`${call.name} needs ${needed.join(" and ")}. ${advice}`);
  const surplus = line.positionals[command.operands.length];
  if (surplus !== undefined)
    throw misuse(
      `${call.name} does not know what to do with ${JSON.stringify(surplus)}. ${advice}`,
    );
  const outcome = await command.run(line, line.json ? quietShell(shell) : shell);
  if (outcome === null) return 0;
  shell.stdout.write(line.json ? `${JSON.stringify(outcome.json)}\n` : outcome.text);
  return outcome.exitCode ?? 0;
}

/** The same shell; its environment is still read only when it is asked for. */
function quietShell(shell: Shell): Shell {
  // What it does not have itself it has from the other.
  return Object.create(shell, { quiet: { value: true } }) as Shell;
}

function parseWords(
  words: readonly string[],
  options: ParseArgsOptionsConfig,
  advice: string,
): { readonly help: boolean; readonly line: CommandLine } {
  try {
    const { positionals, values } = parseArgs({
      args: words.map(hideMinus),
      options: {
        ...options,
        json: { type: "boolean" },
        help: { type: "boolean", short: "h" },
      },
      allowPositionals: true,
    });
    const given = Object.entries(values as Record<string, unknown>);
    const texts = given.filter((pair): pair is [string, string] => typeof pair[1] === "string");
    return {
      help: values["help"] === true,
      line: {
        positionals: positionals.map(showMinus),
        texts: Object.fromEntries(texts.map(([name, text]) => [name, showMinus(text)])),
        flags: new Set(given.filter(([, value]) => value === true).map(([name]) => name)),
        json: values["json"] === true,
      },
    };
  } catch (error) {
    throw misuse(`${describeOptionError(error, Object.keys(options))}. ${advice}`);
  }
}

function describeOptionError(error: unknown, options: readonly string[]): string {
  const [sentence = ""] = error instanceof Error ? error.message.split(". ") : [];
  const words = showMinus(sentence).replace(/\.$/, "");
  const missing =
    /^Option '(?:-\w, )?(--[\w-]+)(?: <value>)?' argument (?:missing|is ambiguous)/.exec(
      words,
    )?.[1];
  if (missing !== undefined) return `${missing} needs a value after it`;
  const unknown = /^Unknown option '--([\w-]+)'/.exec(words)?.[1];
  if (unknown === undefined) return words;
  const setting = `TRIBUTARY_${unknown.toUpperCase().replaceAll("-", "_")}`;
  if (Object.hasOwn(variables, setting))
    return `${words}: it is a setting, set ${setting} in the environment or in .env`;
  const near = nearestName(unknown, [...options, "json", "help"]);
  return near === null ? words : `${words}, perhaps --${near}`;
}

function noAction(name: string, action: string | undefined, { actions }: CommandGroup): string {
  const all = Object.keys(actions);
  const taken = `${name} takes one of: ${all.join(", ")}`;
  if (action === undefined) return taken;
  return `There is no command "${name} ${action}"${guess(action, all)}; ${taken}`;
}

function guess(word: string, known: readonly string[]): string {
  const near = nearestName(word, known);
  return near === null ? "" : `, perhaps ${near}`;
}

// parseArgs takes every word that begins with a minus for an option, also the amount -5.
const hidden = "\u0000";

function hideMinus(word: string): string {
  return /^-[\d.]/.test(word) ? hidden + word : word;
}

function showMinus(word: string): string {
  return word.replaceAll(hidden, "");
}

function printHelp(shell: Shell, help: string): number {
  return print(shell, help + explainName(shell.programName));
}

function print(shell: Shell, text: string): number {
  shell.stdout.write(text);
  return 0;
}

async function explain(
  error: unknown,
): Promise<{ readonly code: string; readonly exitCode: 1 | 2; readonly message: string }> {
  if (error instanceof CommandError) return error;
  const { OperatorError } = await import("../ledger/operator-error.ts");
  if (error instanceof OperatorError)
    return {
      code: error.code,
      exitCode: error.code === "invalid_value" ? 2 : 1,
      message: error.message,
    };
  const { Failure } = await import("../failure.ts");
  if (error instanceof Failure) return { code: error.code, exitCode: 1, message: error.message };
  const { ModelSettingError } = await import("../deployment/embedded/model-setting-error.ts");
  if (error instanceof ModelSettingError)
    return { code: "settings", exitCode: 2, message: error.message };
  const known = error instanceof Error && "syscall" in error;
  const message = error instanceof Error ? (known ? error.message : error.stack) : String(error);
  return { code: "failed", exitCode: 1, message: message ?? String(error) };
}
