import { Command, CommanderError } from "@commander-js/extra-typings";
import { variables } from "../config/environment.ts";
import { CommandError, misuse, type Outcome, type Shell, spellCommands } from "./command.ts";
import { addCommands } from "./commands.ts";
import { version } from "./version.ts";

/** Runs one command line and returns its exit code. Never rejects. */
export async function runCommandLine(
  argv: readonly string[],
  process: Omit<Shell, "json">,
): Promise<number> {
  const shell: Shell = { ...process, json: argv.includes("--json") };
  try {
    const outcome = await readCommandLine(argv, shell);
    if (outcome === null) return 0;
    shell.stdout.write(shell.json ? `${JSON.stringify(outcome.json)}\n` : outcome.text);
    return outcome.exitCode ?? 0;
  } catch (error) {
    const { code, exitCode, message: words } = await explain(error);
    const message = spellCommands(words, shell.programName);
    shell.stderr.write(
      shell.json ? `${JSON.stringify({ error: { code, message } })}\n` : `${message.trimEnd()}\n`,
    );
    return exitCode;
  }
}

/** null: there is nothing left to print. Rejects with what ended the command. */
async function readCommandLine(argv: readonly string[], shell: Shell): Promise<Outcome | null> {
  let outcome: Outcome | null = null;
  let complaint = "";
  const program = new Command(shell.programName).configureOutput({
    writeOut: (text) => shell.stdout.write(spellCommands(text, shell.programName)),
    writeErr: (text) => void (complaint += text),
  });
  program.exitOverride().version(version, "--version");
  addCommands({ program, shell, finish: (result) => (outcome = result) });
  try {
    const words = argv[0] === "help" ? [...argv.slice(1), "--help"] : argv;
    await program.parseAsync(words, { from: "user" });
    return outcome;
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.exitCode === 0) return outcome;
    throw misuse(`${complaint.trimEnd()}${adviseSetting(argv)}`);
  }
}

/** What is given as an option, and is a setting: `--port 9000`. */
function adviseSetting(argv: readonly string[]): string {
  const names = argv.flatMap((word) => {
    const [option = ""] = word.split("=");
    return option.startsWith("--")
      ? `TRIBUTARY_${option.slice(2).toUpperCase().replaceAll("-", "_")}`
      : [];
  });
  const setting = names.find((name) => Object.hasOwn(variables, name));
  return setting === undefined
    ? ""
    : `\nIt is a setting: set ${setting} in the environment or in .env.`;
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
