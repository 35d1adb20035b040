import { limits } from "../limits.ts";

/** Counts wrong tokens by address. */
export interface FailedTries {
  /** Whether a wrong token from this address is answered 429. A right one never is. */
  areTooMany(address: string): boolean;
  add(address: string): void;
}

/** Remembers so many addresses at most; where more come, those remembered first are forgotten. */
export function openFailedTries(monotonicMs: () => number): FailedTries {
  const tries = new Map<string, { readonly count: number; readonly sinceMs: number }>();
  const current = (address: string): { readonly count: number; readonly sinceMs: number } => {
    const nowMs = monotonicMs();
    const known = tries.get(address);
    return known === undefined || nowMs - known.sinceMs >= limits.failedTriesWindowMs
      ? { count: 0, sinceMs: nowMs }
      : known;
  };
  return {
    areTooMany: (address) => current(address).count >= limits.failedTriesMax,
    add(address) {
      const { count, sinceMs } = current(address);
      tries.delete(address);
      tries.set(address, { count: count + 1, sinceMs });
      const [oldest] = tries.keys();
      if (tries.size > limits.failedTriesAddressesMax && oldest !== undefined) tries.delete(oldest);
    },
  };
}
