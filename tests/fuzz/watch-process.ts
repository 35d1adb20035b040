import { Worker } from "node:worker_threads";

/** What a process did while it was watched. */
export interface ProcessWatch extends AsyncDisposable {
  /** The longest time that a small request waited while the main thread computed, in milliseconds. */
  readonly longestStallMs: number;
  /** The most memory that was resident, in MiB. */
  readonly residentMiBMax: number;
}

/** What the thread that asks is given. */
export interface ProbeOrder {
  readonly pid: number;
  readonly url: string;
  /** Shared: the longest stall, in milliseconds, and the most memory, in MiB. */
  readonly figures: Float64Array;
}

/**
 * Asks a service for a sign of life all the time, from a thread of its own. A machine that does something else makes every
 * process wait, so only the main thread's own time on a processor counts, by the kernel's count; it is an upper bound, as
 * several short tasks may stand before the probe.
 */
export function watchProcess(pid: number, url: string): ProcessWatch {
  const figures = new Float64Array(new SharedArrayBuffer(16));
  const workerData: ProbeOrder = { pid, url, figures };
  const prober = new Worker(new URL("probe-child.ts", import.meta.url), { workerData });
  // A process that died is what the run itself reports.
  prober.on("error", () => undefined);
  return {
    get longestStallMs() {
      return figures[0] ?? 0;
    },
    get residentMiBMax() {
      return figures[1] ?? 0;
    },
    async [Symbol.asyncDispose]() {
      await prober.terminate();
    },
  };
}
