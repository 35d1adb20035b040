import type { ParseArgsOptionsConfig } from "node:util";
import type { Environment } from "../config/environment.ts";

/** A stream to write to. */
export interface Output {
  write(text: string): void;
  /** Whether somebody looks at it. */
  readonly terminal: boolean;
}

/** What a command gets from the process that it runs in. */
export interface Shell {
  readonly folder: string;
  readonly environment: Environment;
  /** Whether a variable of the environment comes from the .env file of the folder. */
  isFromFile(name: string): boolean;
  readonly stdout: Output;
  readonly stderr: Output;
  /** Standard error is read by a program: no remarks. */
  readonly quiet?: true;
  /** How this program is called here, such as `npx tributary-gateway`. */
  readonly programName: string;
  /** Calls back at SIGINT and SIGTERM until the returned function is called. */
  onSignal(listener: (signal: "SIGINT" | "SIGTERM") => void): () => void;
  /** Ends the process now. */
  exit(code: number): void;
}

/** The words of a command line, understood. */
export interface CommandLine {
  readonly positionals: readonly string[];
  /** Options with a value. */
  readonly texts: Readonly<Record<string, string | undefined>>;
  /** Options without a value that were given. */
  readonly flags: ReadonlySet<string>;
  readonly json: boolean;
}

/** What a command has to say: one of the two is printed. */
export interface Outcome {
  readonly json: unknown;
  readonly text: string;
  /** 0 unless told otherwise. */
  readonly exitCode?: 0 | 1;
}

/** One command, or one action of a group such as `account create`. */
export interface Command {
  readonly help: string;
  readonly options: ParseArgsOptionsConfig;
  /** What must follow the command, by name; `[NAME]` may be left out. */
  readonly operands: readonly string[];
  /** null: the command has written what there was to write. */
  run(line: CommandLine, shell: Shell): Promise<Outcome | null>;
}

/** Commands that share their first word. */
export interface CommandGroup {
  readonly help: string;
  readonly actions: Readonly<Record<string, Command>>;
}

/** Something that ends a command: 1 it failed, 2 it was misused. */
export class CommandError extends Error {
  override readonly name = "CommandError";
  readonly code: string;
  readonly exitCode: 1 | 2;

  constructor(code: string, exitCode: 1 | 2, message: string) {
    super(message);
    this.code = code;
    this.exitCode = exitCode;
  }
}

/** A command line that makes no sense. */
export function misuse(message: string): CommandError {
  return new CommandError("misused", 2, message);
}

/** The positional at an index that `operands` guarantees. */
export function operand(line: CommandLine, index: number): string {
  const text = line.positionals[index];
  if (text === undefined) throw misuse("A word is missing.");
  return text;
}
