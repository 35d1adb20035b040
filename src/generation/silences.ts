/** The longest time between two pieces of an answer. */
export interface Silences {
  /** Milliseconds; null: there were no two pieces yet. */
  readonly facts: { readonly longestSilenceMs: number | null };
  /** A piece has come. */
  end(atMs: number): void;
}

/** Opens them for an answer: one subtraction a read of the deployment, whatever is in it. */
export function openSilences(): Silences {
  let lastMs: number | null = null;
  let longestMs: number | null = null;
  return {
    get facts() {
      return { longestSilenceMs: longestMs };
    },
    end(atMs) {
      if (lastMs !== null) longestMs = Math.max(longestMs ?? 0, atMs - lastMs);
      lastMs = atMs;
    },
  };
}
