import { chmodSync, mkdtempSync, readdirSync, rmSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { compileCache } from "./compile-cache.ts";

/** Where Linux keeps files in memory. */
const memory = "/dev/shm";
/** Of free space, in bytes: a run needs some 300 MiB, and a container often has no more than 64. */
const memoryBytesMin = 2 * 1_024 ** 3;

const prefix = "tributary-tests-";

/**
 * A folder for all temporary files of a run, which ends with it: in memory where there is room. Tests make and drop databases
 * all the time, a copy of 300 files each; a file system on a disk takes a tenth of the suite's time for it.
 */
export function setup(): () => void {
  const before = tmpdir();
  const parent = hasRoom() ? memory : before;
  removeLeft(parent);
  const folder = mkdtempSync(join(parent, `${prefix}${String(process.pid)}-`));
  // PostgreSQL refuses to run as the superuser; its user has a folder of its own in here.
  chmodSync(folder, 0o711);
  // oxlint-disable-next-line node/no-process-env -- the processes of the test files get it from here
  process.env["TMPDIR"] = folder;
  // Vitest's own code is kept compiled below TMPDIR otherwise, and compiled anew in each run.
  // oxlint-disable-next-line node/no-process-env -- as above
  Object.assign(process.env, compileCache);
  return () => {
    // oxlint-disable-next-line node/no-process-env -- as it was
    process.env["TMPDIR"] = before;
    rmSync(folder, { recursive: true, force: true });
  };
}

/** What a run left that was killed. */
function removeLeft(parent: string): void {
  for (const name of readdirSync(parent)) {
    const [, pid] = new RegExp(`^${prefix}(\\d+)-`).exec(name) ?? [];
    if (pid === undefined || isRunning(Number(pid))) continue;
    try {
      rmSync(join(parent, name), { recursive: true, force: true });
    } catch {
      // It is another user's.
    }
  }
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

function hasRoom(): boolean {
  try {
    const { bavail, bsize } = statfsSync(memory);
    return bavail * bsize >= memoryBytesMin;
  } catch {
    return false;
  }
}
