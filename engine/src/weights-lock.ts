import { setTimeout as wait } from "node:timers/promises";
import lockfile from "proper-lockfile";

const pollMs = 250;
/** The holder renews the lock in half of this. One that died or hangs loses it then. */
const staleMs = 10_000;

/**
 * One process fetches a model at a time. The hash and a rename keep the weights right without it; the lock only saves a
 * second download, so that a lock that is lost meanwhile is no reason to stop.
 */
export async function lockWeights(path: string, signal: AbortSignal): Promise<AsyncDisposable> {
  for (;;) {
    try {
      const release = await lockfile.lock(path, {
        realpath: false,
        stale: staleMs,
        onCompromised: () => undefined,
      });
      return { [Symbol.asyncDispose]: () => release().catch(() => undefined) };
    } catch (error) {
      if (!(error instanceof Error && "code" in error && error.code === "ELOCKED")) throw error;
      await wait(pollMs, undefined, { signal });
    }
  }
}
