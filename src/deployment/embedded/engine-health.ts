/** What an engine did since it started; tests compare these before and after. */
export interface EngineCounts {
  /** Slices of prompts evaluated. */
  readonly slices: number;
  /** Evaluations that gave a token. */
  readonly steps: number;
  /** What went to the model at once: slices and steps of one generation, or of several. */
  readonly batches: number;
  /** Generations that hold a slot. */
  readonly running: number;
  /** Generations that wait for one. */
  readonly queued: number;
}

/** What `watchHealth` is given. */
export interface HealthParts {
  readonly now: () => number;
  /** Called when `/health` has not been well for `hangMs`. */
  readonly hung: () => void;
  readonly hangMs: number;
}

/** Asks an engine again and again whether it is well. `url`: undefined while there is none that should be. */
export function watchHealth(url: () => string | undefined, parts: HealthParts) {
  const { hangMs, hung, now } = parts;
  let wellAtMs = now();
  const closed = new AbortController();

  async function ask(signal: AbortSignal): Promise<EngineCounts> {
    const response = await fetch(`${url() ?? ""}/health`, {
      signal: AbortSignal.any([signal, closed.signal]),
    });
    const counts = (await response.json()) as EngineCounts;
    if (!response.ok) throw new Error(`/health answered ${String(response.status)}`);
    wellAtMs = now();
    return counts;
  }

  function look(): void {
    if (url() === undefined) wellAtMs = now();
    else if (now() - wellAtMs > hangMs) hung();
    // A failure needs no handling here: `wellAtMs` grows old.
    else ask(AbortSignal.timeout(hangMs)).catch(() => undefined);
  }

  const timer = setInterval(look, Math.max(10, hangMs / 4)).unref();
  return {
    ask,
    markWell() {
      wellAtMs = now();
    },
    close() {
      clearInterval(timer);
      closed.abort();
    },
  };
}
