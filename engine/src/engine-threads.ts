import { availableParallelism, cpus } from "node:os";

/** How much the processors did since some time in the past. */
export interface ProcessorTime {
  /** For all processes, on all cores. */
  readonly busyMs: number;
  /** For this process. */
  readonly ownMs: number;
}

/** What a choice of threads is made from. */
export interface ThreadParts {
  readonly cores: number;
  readonly now: () => number;
  readonly measure: () => ProcessorTime;
}

/** Looked at again after this long; systems count in steps of 10 ms a core. */
const lookMs = 250;
/** A core of which others take less than this is free. */
const freeShare = 0.3;

/**
 * Chooses how many threads evaluate a batch: one for each core that others leave free, at least one.
 *
 * llama.cpp's threads wait for each other some hundred times a batch, and busily: one of them on a core that
 * another process needs makes a batch many times slower, while a core that is left free is half of a machine of two.
 */
export function openThreadChoice({ cores, now, measure }: ThreadParts): () => number {
  let lastMs = now();
  let last = measure();
  let threads = leaveOne(cores);
  return () => {
    const passedMs = now() - lastMs;
    if (passedMs < lookMs) return threads;
    const next = measure();
    const othersMs = next.busyMs - last.busyMs - (next.ownMs - last.ownMs);
    const taken = Math.ceil(Math.max(0, othersMs / passedMs - freeShare));
    threads = Math.max(1, cores - taken);
    lastMs += passedMs;
    last = next;
    return threads;
  };
}

/** With how many threads an engine works. */
export interface ThreadPlan {
  readonly most: number;
  /** For what must be repeatable: another number of threads may round differently. */
  readonly alone: number;
  /** For a batch of the rest, as the machine is just now. */
  readonly shared: (batchTokens: number) => number;
}

/** `fixed`: a number for everything. With a GPU the processor has too little to do for more. */
export function planThreads(fixed: number | null, hasGpu: boolean): ThreadPlan {
  const cores = availableParallelism();
  const alone = fixed ?? leaveOne(cores);
  // A process that may use less than the system counts, as in many containers, cannot tell who else needs its share.
  const canTell = fixed === null && !hasGpu && cpus().length === cores;
  if (!canTell) return { most: alone, alone, shared: () => alone };
  const parts = { cores, now: () => performance.now(), measure: measureProcessors };
  const choose = openThreadChoice(parts);
  return {
    most: cores,
    alone,
    // A single token is over before the last of many threads has helped.
    shared: (batchTokens) => (batchTokens === 1 ? Math.min(alone, choose()) : choose()),
  };
}

function leaveOne(cores: number): number {
  return Math.max(1, cores - 1);
}

function measureProcessors(): ProcessorTime {
  let busyMs = 0;
  for (const { times } of cpus()) busyMs += times.user + times.nice + times.sys + times.irq;
  const { system, user } = process.cpuUsage();
  return { busyMs, ownMs: (system + user) / 1_000 };
}
