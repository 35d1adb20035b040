import type { Shell } from "../../src/cli/command.ts";
import { runCommandLine } from "../../src/cli/run-command.ts";
import type { Environment } from "../../src/config/environment.ts";

/** What a command line printed and how it ended. */
export interface CommandResult {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs command lines in one folder with one environment. */
export function openRecordingShell(
  folder: string,
  environment: Environment = {},
  programName = "tributary",
): (...argv: readonly string[]) => Promise<CommandResult> {
  return async (...argv) => {
    const stdout: string[] = [];
    const stderr: string[] = [];
    const shell: ProcessShell = {
      ...plainShell(folder, environment),
      stdout: { write: (text) => void stdout.push(text), terminal: false },
      stderr: { write: (text) => void stderr.push(text), terminal: false },
      programName,
    };
    const exitCode = await runCommandLine(argv, shell);
    return { exitCode, stdout: stdout.join(""), stderr: stderr.join("") };
  };
}

/** What a process has, before the words of a command are read. */
type ProcessShell = Omit<Shell, "json">;

/** A shell in a folder that keeps nothing of what is written. */
export function plainShell(folder: string, environment: Environment): ProcessShell {
  return {
    folder,
    environment: () => environment,
    isFromFile: () => false,
    stdout: { write: () => {}, terminal: false },
    stderr: { write: () => {}, terminal: false },
    programName: "tributary",
    onSignal: () => () => {},
    exit: () => {
      throw new Error("the command ended the process");
    },
  };
}
