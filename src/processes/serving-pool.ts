import { limits } from "../limits.ts";
import type { Timers } from "../timers.ts";
import type { ServingCalls, StarterCalls } from "./calls.ts";
import { type Channel, type ChannelMessage, openChannel } from "./channel.ts";

/** How a process ended. */
export interface ServingExit {
  readonly code: number | null;
  readonly signal: string | null;
}

/** A process that was just started. */
export interface ServingChild {
  readonly processId: number | null;
  send(message: ChannelMessage): void;
  /** Ends it at once. */
  kill(): void;
}

/** Starts a process; nothing is called before this has returned. */
export type ForkServing = (listener: {
  readonly message: (message: ChannelMessage) => void;
  readonly exited: (exit: ServingExit) => void;
}) => ServingChild;

/** A process of the pool. */
export interface Serving {
  /** From 1 on; who takes the place of one that died has its number. */
  readonly process: number;
  readonly processId: number | null;
  readonly channel: Channel<ServingCalls>;
  readonly kill: () => void;
  readonly exited: Promise<void>;
}

/** What a pool works with. */
export interface ServingPoolParts {
  readonly processes: number;
  readonly fork: ForkServing;
  /** What a process may ask. */
  readonly answers: (tell: Serving["channel"]["tell"]) => StarterCalls;
  /** Resolves when the process serves. */
  readonly start: (serving: Serving) => Promise<void>;
  /** A process that served has ended. */
  readonly ended: (serving: Serving, exit: ServingExit, restartMs: number) => void;
  readonly notStarted: (serving: Serving, reason: unknown, retryMs: number) => void;
  readonly timers: Timers;
  /** Milliseconds of a clock that never jumps. */
  readonly monotonicMs: () => number;
  /** Ends the start. */
  readonly signal?: AbortSignal;
}

/** The processes that serve. Disposing it kills those that are left. */
export interface ServingPool extends AsyncDisposable {
  /** Those that serve now. */
  readonly serving: readonly Serving[];
  /** Rejects when no process serves, and none can be started. */
  readonly failed: Promise<never>;
  /** No process is replaced any more; those that do not serve yet are killed. */
  settle(): void;
}

/**
 * Starts the first process, whose failure is that of the pool, then the others, and another for each that dies: at once,
 * and ever later where it dies at once again.
 */
export async function openServingPool(parts: ServingPoolParts): Promise<ServingPool> {
  const pool = new Pool(parts);
  const abort = (): void => void pool[Symbol.asyncDispose]();
  parts.signal?.addEventListener("abort", abort);
  try {
    await pool.open();
    parts.signal?.throwIfAborted();
  } catch (error) {
    parts.signal?.throwIfAborted();
    throw error;
  } finally {
    parts.signal?.removeEventListener("abort", abort);
  }
  return pool;
}

class Pool implements ServingPool {
  readonly #parts: ServingPoolParts;
  /** All that live; those of them that serve. */
  readonly #all = new Set<Serving>();
  readonly #serving = new Set<Serving>();
  readonly #pauses = new Set<unknown>();
  readonly #failed = Promise.withResolvers<never>();
  /** How often each was not sound, by its number. */
  readonly #failures = new Map<number, number>();
  #failedStarts = 0;
  #settled = false;

  constructor(parts: ServingPoolParts) {
    this.#parts = parts;
    // Whoever looks at it later gets it all the same.
    this.#failed.promise.catch(() => undefined);
  }

  async open(): Promise<void> {
    // What the first one makes, such as the ledger's tables and the first key, the others find.
    await this.#start(this.#launch(1));
    const others = Array.from({ length: this.#parts.processes - 1 }, (_, index) => index + 2);
    await Promise.all(others.map((process) => this.#replace(process)));
  }

  get serving(): readonly Serving[] {
    return [...this.#serving];
  }

  get failed(): Promise<never> {
    return this.#failed.promise;
  }

  settle(): void {
    this.#settled = true;
    for (const timer of this.#pauses) this.#parts.timers.clear(timer);
    this.#pauses.clear();
    for (const one of this.#all) if (!this.#serving.has(one)) one.kill();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.settle();
    const left = [...this.#all];
    for (const one of left) one.kill();
    await Promise.all(left.map(({ exited }) => exited));
  }

  #launch(process: number): Serving {
    const startedAtMs = this.#parts.monotonicMs();
    const exited = Promise.withResolvers<void>();
    const child = this.#parts.fork({
      message: (message) => channel.receive(message),
      exited: (exit) => {
        channel.close(new Error(`serving process ${String(process)} has ended ${wordsOf(exit)}`));
        this.#forget(one, exit, startedAtMs);
        exited.resolve();
      },
    });
    const mine = this.#parts.answers((name, argument) => channel.tell(name, argument));
    const channel = openChannel<ServingCalls>(mine, (message) => child.send(message));
    const one: Serving = {
      process,
      processId: child.processId,
      channel,
      kill: () => child.kill(),
      exited: exited.promise,
    };
    this.#all.add(one);
    return one;
  }

  #forget(one: Serving, exit: ServingExit, startedAtMs: number): void {
    this.#all.delete(one);
    if (!this.#serving.delete(one) || this.#settled) return;
    const restartMs = this.#pauseAfter(one.process, this.#parts.monotonicMs() - startedAtMs);
    this.#parts.ended(one, exit, restartMs);
    this.#replaceLater(one.process, restartMs);
  }

  async #start(one: Serving): Promise<void> {
    try {
      await this.#parts.start(one);
    } catch (error) {
      one.kill();
      await one.exited;
      throw error;
    }
    if (!this.#all.has(one)) throw new Error("the process ended as soon as it had started");
    this.#failedStarts = 0;
    if (this.#settled) one.kill();
    else this.#serving.add(one);
  }

  /** Twice as long each time, from nothing; one that served for long was sound. */
  #pauseAfter(process: number, livedMs: number): number {
    const sound = livedMs >= limits.processSoundMs;
    const count = sound ? 1 : (this.#failures.get(process) ?? 0) + 1;
    this.#failures.set(process, count);
    if (count === 1) return 0;
    return Math.min(
      limits.processRestartFirstMs * 2 ** (count - 2),
      limits.processRestartLongestMs,
    );
  }

  #replaceLater(process: number, delayMs: number): void {
    const { timers } = this.#parts;
    const timer = timers.set(() => {
      this.#pauses.delete(timer);
      void this.#replace(process);
    }, delayMs);
    this.#pauses.add(timer);
  }

  async #replace(process: number): Promise<void> {
    const one = this.#launch(process);
    try {
      await this.#start(one);
    } catch (error) {
      if (this.#settled) return;
      this.#failedStarts += 1;
      if (this.#serving.size === 0 && this.#failedStarts >= limits.processStartsMax) {
        this.#failed.reject(error instanceof Error ? error : new Error(String(error)));
        return;
      }
      const retryMs = this.#pauseAfter(process, 0);
      this.#parts.notStarted(one, error, retryMs);
      this.#replaceLater(process, retryMs);
    }
  }
}

function wordsOf({ code, signal }: ServingExit): string {
  return signal === null ? `with code ${String(code)}` : `by ${signal}`;
}
