import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

/** What the registry that pip or npm is set up for has to give. */
export type PeerPackage =
  | { readonly kind: "pip"; readonly spec: string }
  | {
      readonly kind: "npm";
      readonly spec: string;
      readonly overrides?: Readonly<Record<string, string>>;
    };

const run = promisify(execFile);
const longestMs = 600_000;

/** The folder that a package is installed in, of its own and kept for the next run; rejects where it cannot be had. */
export async function ensureInstalled(name: string, wanted: PeerPackage): Promise<string> {
  const version = wanted.spec.replaceAll(/[^\w.]+/g, "-");
  const folder = join(homedir(), ".cache", "tributary-bench", `${name}-${version}`);
  // Written last: an installation that was broken off is made anew.
  const whole = join(folder, "installed");
  if (existsSync(whole)) return folder;
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  process.stderr.write(`installing ${wanted.spec} into ${folder}\n`);
  try {
    await (wanted.kind === "pip"
      ? installFromPip(folder, wanted.spec)
      : installFromNpm(folder, wanted));
  } catch (error) {
    throw new Error(`${wanted.spec} could not be installed: ${lastWords(error)}`, { cause: error });
  }
  await writeFile(whole, wanted.spec);
  return folder;
}

async function installFromPip(folder: string, spec: string): Promise<void> {
  await run("python3", ["-m", "venv", folder], { timeout: longestMs });
  const values = ["install", "--quiet", "--disable-pip-version-check", spec];
  await run(join(folder, "bin/pip"), values, { timeout: longestMs });
}

async function installFromNpm(
  folder: string,
  wanted: Extract<PeerPackage, { kind: "npm" }>,
): Promise<void> {
  const manifest = { private: true, overrides: wanted.overrides ?? {} };
  await writeFile(join(folder, "package.json"), JSON.stringify(manifest));
  const values = ["install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
  await run("npm", [...values, wanted.spec], { cwd: folder, timeout: longestMs });
}

/** What the program said last, in one line. */
function lastWords(error: unknown): string {
  const { stderr } = error as { readonly stderr?: string };
  const lines = (stderr ?? "").trim().split("\n");
  return lines.at(-1) || (error instanceof Error ? error.message : String(error));
}
