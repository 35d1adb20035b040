import { spawn } from "node:child_process";
import { hash } from "node:crypto";
import { once } from "node:events";
import { existsSync, mkdirSync, rmSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { cacheFolder } from "../../../src/config/cache-folder.cjs";
import { installInto } from "../../agents/install.ts";

/** A program to run, with its words; the first is the program. */
export type Command = readonly [string, ...string[]];

/** Where engines lie once they are installed: what was built for a quarter of an hour outlives a clone. */
export function enginesFolder(): string {
  const machine = { environment: process.env, platform: process.platform, home: homedir() };
  return join(cacheFolder(machine), "engines");
}

/**
 * Fills a folder once for each version and each way of building it, and gives its path. What `how` says is part of the
 * name, so that another flag is another folder. Moved into its place when all went well: nothing in it may know its path.
 */
export async function installOnce(
  name: string,
  how: readonly string[],
  fill: (folder: string) => Promise<void>,
): Promise<string> {
  return installInto(folderOf(name, how), fill);
}

/** As `installOnce`, for what knows its path, as a Python environment does: marked when it is whole, else made anew. */
export async function installInPlace(
  name: string,
  how: readonly string[],
  fill: (folder: string) => Promise<void>,
): Promise<string> {
  const folder = folderOf(name, how);
  const mark = join(folder, "whole");
  if (existsSync(mark)) return folder;
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  await fill(folder);
  mkdirSync(mark);
  return folder;
}

/** Runs a command to its end; what it says goes to standard error, since standard output holds the results. */
export async function runCommand(
  [program, ...words]: Command,
  folder: string,
  environment: Readonly<Record<string, string>> = {},
): Promise<void> {
  const child = spawn(program, words, {
    cwd: folder,
    env: { ...process.env, ...environment },
    stdio: ["ignore", 2, 2],
  });
  const ended = once(child, "exit") as Promise<[number | null]>;
  const [code] = await ended;
  if (code !== 0) throw new Error(`${[program, ...words].join(" ")} ended with ${String(code)}`);
}

function folderOf(name: string, how: readonly string[]): string {
  return join(enginesFolder(), `${name}-${hash("sha256", JSON.stringify(how)).slice(0, 8)}`);
}
