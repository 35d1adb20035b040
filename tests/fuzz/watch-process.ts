import { readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { request } from "undici";

/** What a process did while it was watched. */
export interface ProcessWatch extends AsyncDisposable {
  /** The longest time that a small request waited while the main thread computed, in milliseconds. */
  readonly longestStallMs: number;
  /** The most memory that was resident, in MiB. */
  readonly residentMiBMax: number;
}

const probeEveryMs = 20;
const pageBytes = 4_096;

/**
 * Asks a service for a sign of life all the time. A machine that does something else makes every process wait, so only
 * the main thread's own time on a processor counts, by the kernel's count; it is an upper bound, as several short tasks
 * may stand before the probe.
 */
export function watchProcess(pid: number, url: string): ProcessWatch {
  let longestStallMs = 0;
  let residentMiBMax = 0;
  const over = new AbortController();

  async function probe(): Promise<void> {
    while (!over.signal.aborted) {
      const before = await mainThreadMs(pid);
      const answer = await request(`${url}/healthz`);
      await answer.body.dump();
      longestStallMs = Math.max(longestStallMs, (await mainThreadMs(pid)) - before);
      residentMiBMax = Math.max(residentMiBMax, await residentMiB(pid));
      await sleep(probeEveryMs);
    }
  }

  const probing = probe();
  // Awaited by dispose; a process that died is what the run itself reports.
  probing.catch(() => undefined);
  return {
    get longestStallMs() {
      return longestStallMs;
    },
    get residentMiBMax() {
      return residentMiBMax;
    },
    async [Symbol.asyncDispose]() {
      over.abort();
      await probing.catch(() => undefined);
    },
  };
}

async function mainThreadMs(pid: number): Promise<number> {
  const text = await readFile(`/proc/${String(pid)}/task/${String(pid)}/schedstat`, "utf8");
  return Number(text.split(" ")[0]) / 1e6;
}

async function residentMiB(pid: number): Promise<number> {
  const text = await readFile(`/proc/${String(pid)}/statm`, "utf8");
  return (Number(text.split(" ")[1]) * pageBytes) / 2 ** 20;
}
