import { readFile, rm, stat, utimes, writeFile } from "node:fs/promises";
import { setTimeout as wait } from "node:timers/promises";

const lockPollMs = 250;
const lockRenewMs = 5_000;
const lockStaleMs = 30_000;
const locksHeldHere = new Set<string>();

/** One process fetches a model at a time; the lock of one that died or hangs is taken over. */
export async function lockFile(path: string, signal: AbortSignal): Promise<AsyncDisposable> {
  while (!(await makeLock(path))) {
    if (await isStale(path)) await rm(path, { force: true });
    else await wait(lockPollMs, undefined, { signal });
  }
  locksHeldHere.add(path);
  const renewal = setInterval(() => {
    const now = new Date();
    utimes(path, now, now).catch(() => undefined);
  }, lockRenewMs).unref();
  return {
    async [Symbol.asyncDispose]() {
      clearInterval(renewal);
      locksHeldHere.delete(path);
      await rm(path, { force: true });
    },
  };
}

async function makeLock(path: string): Promise<boolean> {
  try {
    await writeFile(path, String(process.pid), { flag: "wx" });
    return true;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EEXIST") return false;
    throw error;
  }
}

/** In a container a new process often has the number of the old one, so that ours is looked up in our own list. */
async function isStale(path: string): Promise<boolean> {
  try {
    const { mtimeMs } = await stat(path);
    if (Date.now() - mtimeMs > lockStaleMs) return true;
    const owner = Number(await readFile(path, "utf8"));
    if (owner === process.pid) return !locksHeldHere.has(path);
    return owner > 0 && !isAlive(owner);
  } catch {
    return false;
  }
}

function isAlive(processId: number): boolean {
  try {
    process.kill(processId, 0);
    return true;
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}
