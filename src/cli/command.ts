import type { Command } from "@commander-js/extra-typings";
import type { Environment } from "../config/environment.ts";

/** A stream to write to. */
export interface Output {
  write(text: string): void;
  /** Whether it is a terminal, which a person reads. */
  readonly terminal: boolean;
}

/** What a command gets from the process that it runs in. */
export interface Shell {
  readonly folder: string;
  /** Reads the environment and the .env file of the folder: throws where that cannot be read. */
  environment(): Environment;
  /** Whether a variable of the environment comes from the .env file of the folder. */
  isFromFile(name: string): boolean;
  readonly stdout: Output;
  readonly stderr: Output;
  /** Whether the command has `--json`: a program reads its output, so that standard error gets no remarks. */
  readonly json: boolean;
  /** How this program is called here, such as `npx tributary-gateway`. */
  readonly programName: string;
  /** Calls back at SIGINT and SIGTERM until the returned function is called. */
  onSignal(listener: (signal: "SIGINT" | "SIGTERM") => void): () => void;
  /** Ends the process now. */
  exit(code: number): void;
}

/** What a command has to say: one of the two is printed. */
export interface Outcome {
  readonly json: unknown;
  readonly text: string;
  /** Absent: 0. */
  readonly exitCode?: 0 | 1;
}

/** Where the definitions of commands go, and who hears of the end of the one that was called. */
export interface Definitions {
  readonly program: Command;
  readonly shell: Shell;
  readonly finish: (outcome: Outcome | null) => void;
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

/** Messages write a command as `tributary verify`, in backticks; here it gets the name by which it is called. */
export function spellCommands(text: string, programName: string): string {
  return text.replaceAll("`tributary ", `\`${programName} `);
}
