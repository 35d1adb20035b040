import { execFile } from "node:child_process";
import { mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);
const root = join(import.meta.dirname, "../..");
/** It made schema 5 of SQLite and 7 of PostgreSQL, which every migration since names as the oldest that it suits. */
const oldest = "23d94880577ccf662b19ceafa7ccbe3b5ca7007a";

/** Whether the history of this repository is there, with the oldest version in it. */
export const isOldestThere: boolean = await run("git", ["cat-file", "-e", `${oldest}^{commit}`], {
  cwd: root,
}).then(
  () => true,
  () => false,
);

/** The first file of the oldest version, taken from the history of this repository. */
export async function unpackOldest(folder: string): Promise<string> {
  const archive = join(folder, "oldest.tar");
  await run("git", ["archive", "--output", archive, oldest, "src", "package.json"], { cwd: root });
  await run("tar", ["-xf", archive, "-C", folder]);
  await symlink(join(root, "node_modules"), join(folder, "node_modules"));
  return join(folder, "src/cli/main.ts");
}

/** Runs one command of the oldest version. */
export async function runOldest(
  environment: Readonly<Record<string, string>>,
  ...words: readonly string[]
): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "tributary-oldest-"));
  try {
    const main = await unpackOldest(folder);
    // oxlint-disable-next-line node/no-process-env -- a command finds its programs as a shell would
    const env = { PATH: process.env["PATH"], ...environment };
    await run(process.execPath, [main, ...words], { cwd: folder, env });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
