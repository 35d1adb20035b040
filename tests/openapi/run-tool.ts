import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { pathWithThisNode } from "../agents/install.ts";

/** What a tool said, both of its outputs, and how it ended. */
export interface ToolResult {
  readonly code: number | null;
  readonly output: string;
}

/** Runs a tool in a folder to its end; it is killed after `lifeMs`. */
export async function runTool(
  folder: string,
  words: readonly string[],
  options: {
    readonly lifeMs: number;
    readonly environment?: Readonly<Record<string, string>>;
    /** Beside those of PATH. */
    readonly programs?: string;
  },
): Promise<ToolResult> {
  const [program = "", ...rest] = words;
  const child = spawn(program, rest, {
    cwd: folder,
    env: {
      ...process.env,
      PATH: pathWithThisNode(options.programs ?? folder),
      NO_COLOR: "1",
      ...options.environment,
    },
    stdio: ["ignore", "pipe", "pipe"],
    timeout: options.lifeMs,
    killSignal: "SIGKILL",
  });
  const [stdout, stderr, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, "close") as Promise<[number | null]>,
  ]);
  return { code, output: stdout + stderr };
}
