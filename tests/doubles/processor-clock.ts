/**
 * Milliseconds of the processor that this process, with all of its threads, has used. Unlike the time of day it stands still while other
 * programs have the processor, so that a bound on it holds on a busy machine too.
 */
export function processorMs(): number {
  const { system, user } = process.cpuUsage();
  return (user + system) / 1_000;
}

/** The same of the calling thread alone. */
export function threadProcessorMs(): number {
  const { system, user } = process.threadCpuUsage();
  return (user + system) / 1_000;
}
