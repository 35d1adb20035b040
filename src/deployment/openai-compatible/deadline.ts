import type { Timers } from "../../timers.ts";

/** The clock of a deadline, and its timers. */
export interface DeadlineClock {
  readonly timers: Timers;
  /** Milliseconds of a clock that never jumps. */
  readonly monotonicMs: () => number;
}

/**
 * One limit on time that moves. Its clock stands still while it is held, and a limit that moves on costs no timer: the
 * one that runs waits for the rest when it fires.
 */
export class Deadline {
  readonly #clock: DeadlineClock;
  readonly #onLate: () => void;
  #timer: unknown = null;
  /** When the timer fires, and when `onLate` is due: by `nowMs`. */
  #firesMs = 0;
  #dueMs = Number.POSITIVE_INFINITY;
  #heldMs = 0;
  #heldSinceMs: number | null = null;

  constructor(clock: DeadlineClock, onLate: () => void) {
    this.#clock = clock;
    this.#onLate = onLate;
  }

  /** Milliseconds of a clock that never jumps and stands still while held. */
  get nowMs(): number {
    return (this.#heldSinceMs ?? this.#clock.monotonicMs()) - this.#heldMs;
  }

  /** `onLate` is called at `dueMs` by `nowMs`, and not at the time that was set before. */
  set(dueMs: number): void {
    this.#dueMs = dueMs;
    if (this.#timer === null || dueMs < this.#firesMs) this.#arm();
  }

  /** `onLate` is not called until another time is set. */
  clear(): void {
    this.#dueMs = Number.POSITIVE_INFINITY;
    this.#disarm();
  }

  hold(): void {
    this.#heldSinceMs ??= this.#clock.monotonicMs();
    this.#disarm();
  }

  release(): void {
    if (this.#heldSinceMs === null) return;
    this.#heldMs += this.#clock.monotonicMs() - this.#heldSinceMs;
    this.#heldSinceMs = null;
    this.#arm();
  }

  #arm(): void {
    this.#disarm();
    if (this.#heldSinceMs !== null || this.#dueMs === Number.POSITIVE_INFINITY) return;
    this.#firesMs = this.#dueMs;
    this.#timer = this.#clock.timers.set(() => this.#fire(), Math.max(0, this.#dueMs - this.nowMs));
  }

  #disarm(): void {
    if (this.#timer !== null) this.#clock.timers.clear(this.#timer);
    this.#timer = null;
  }

  #fire(): void {
    this.#timer = null;
    // Timers keep whole milliseconds and may be early by a part of one.
    if (this.#dueMs - this.nowMs > 1) this.#arm();
    else this.#onLate();
  }
}
