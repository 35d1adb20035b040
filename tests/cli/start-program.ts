import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { compileCache } from "../setup/compile-cache.ts";
import { openAnswerCheck } from "../wire/check-answer.ts";
import { inspectWith } from "../wire/watch-answers.ts";
import { programFile, sourceFile } from "./program-file.ts";

inspectWith(openAnswerCheck);

// Shorter than a test may take: a test that is stopped from outside would leave its process behind.
const usualLifeMs = 110_000;

/** The program as a process of its own. */
export interface Program extends AsyncDisposable {
  readonly processId: number;
  stdout(): string;
  stderr(): string;
  signal(name: NodeJS.Signals): void;
  /** Resolves with what the pattern finds in standard output; rejects when the process ends before. */
  waitFor(pattern: RegExp): Promise<RegExpExecArray>;
  readonly exited: Promise<number | null>;
}

/** The key that a first start has written to the file that its log names. */
export async function firstKeyOf(program: Program): Promise<string> {
  const [, file = '""'] = await program.waitFor(/"file":("[^"]+")/);
  return readFileSync(JSON.parse(file) as string, "utf8").trim();
}

/** A command, its folder and its only variables. */
export interface ProgramOrder {
  readonly words: readonly string[];
  readonly folder: string;
  readonly environment: Readonly<Record<string, string>>;
  /** After this it is killed. */
  readonly lifeMs: number;
  /** The program's first file; absent: that of this version, in the ordinary suite out of its bundle. */
  readonly main?: string;
}

/**
 * Starts a command in a folder with only these variables; it is killed at the end of the test. `from`: the files of `src/` and not
 * their bundle, for a test that looks at what is loaded.
 */
export function startProgram(
  words: readonly string[],
  folder: string,
  environment: Readonly<Record<string, string>>,
  from?: "sources",
): Program {
  const main = from === "sources" ? { main: sourceFile } : {};
  return startLivingProgram({ words, folder, environment, lifeMs: usualLifeMs, ...main });
}

/** The same for as long as a slower lane needs it. */
export function startLivingProgram(order: ProgramOrder): Program {
  const { environment, folder, lifeMs, words } = order;
  const child = spawn(process.execPath, [order.main ?? programFile(), ...words], {
    cwd: folder,
    env: { PATH: process.env["PATH"], ...compileCache, ...environment },
    stdio: ["ignore", "pipe", "pipe"],
    timeout: lifeMs,
    killSignal: "SIGKILL",
  });
  const written = { stdout: "", stderr: "" };
  let ended = false;
  let changed = Promise.withResolvers<void>();
  function notify(): void {
    changed.resolve();
    changed = Promise.withResolvers();
  }
  child.stdout.on("data", (chunk) => {
    written.stdout += String(chunk);
    notify();
  });
  child.stderr.on("data", (chunk) => (written.stderr += String(chunk)));
  const exited = new Promise<number | null>((resolve) => {
    child.once("close", (code) => {
      ended = true;
      notify();
      resolve(code);
    });
  });
  return {
    processId: child.pid ?? 0,
    stdout: () => written.stdout,
    stderr: () => written.stderr,
    signal: (name) => void child.kill(name),
    async waitFor(pattern) {
      for (;;) {
        const found = pattern.exec(written.stdout);
        if (found !== null) return found;
        if (ended)
          throw new Error(
            `it ended before ${String(pattern)}:\n${written.stdout}${written.stderr}`,
          );
        await changed.promise;
      }
    },
    exited,
    async [Symbol.asyncDispose]() {
      if (child.exitCode === null && child.signalCode === null) child.kill("SIGKILL");
      await exited;
    },
  };
}
