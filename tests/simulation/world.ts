import type { Timers } from "../../src/timers.ts";
import { openDraws, type Draws } from "./random.ts";

/** Something that can die and stand still: what it was about to do goes with it, or waits. */
export interface Process {
  readonly name: string;
  alive: boolean;
  frozenUntilMs: number;
  /** Whether it stood still or had a signal to end: then its leases may be lost. */
  disturbed: boolean;
  /** Whether it stood still or had a signal to end, and is not only taken for dead. */
  stopped: boolean;
  /** Until then it cannot say that it lives; null: it says so. */
  unheardUntilMs: number | null;
  /** How long its machine was suspended: its clock that never jumps did not see it. */
  suspendedMs: number;
  /** Until then it is. */
  suspendedUntilMs: number;
}

interface Step {
  atMs: number;
  /** Among what is due at the same moment the seed picks. */
  readonly tie: number;
  readonly owner: Process | null;
  readonly label: string;
  readonly run: () => void | Promise<void>;
  cancelled: boolean;
}

/** Time that passes only from step to step, and the steps that are still to come. */
export class World {
  readonly draws: Draws;
  /** Milliseconds of a clock that never jumps. */
  nowMs = 0;
  /** What the clock on the wall has jumped by. */
  jumpedMs = 0;
  steps = 0;
  readonly trace: string[] | null;
  private readonly queue: Step[] = [];
  private scheduled = 0;

  private readonly startsAtMs: number;

  constructor(seed: number, traced: boolean, startsAtMs: number) {
    this.startsAtMs = startsAtMs;
    this.draws = openDraws(seed);
    this.trace = traced ? [] : null;
  }

  /** Milliseconds since 1970, as the machine believes. */
  wallMs(): number {
    return this.startsAtMs + this.nowMs + this.jumpedMs;
  }

  note(text: () => string): void {
    this.trace?.push(`${(this.nowMs / 1000).toFixed(3).padStart(9)} s  ${text()}`);
  }

  after(
    delayMs: number,
    label: string,
    owner: Process | null,
    run: () => void | Promise<void>,
  ): Step {
    this.scheduled += 1;
    const step: Step = {
      atMs: this.nowMs + Math.max(delayMs, 0),
      tie: this.draws.unit(`${label} ${String(this.scheduled)}`),
      owner,
      label,
      run,
      cancelled: false,
    };
    this.push(step);
    return step;
  }

  timersOf(owner: Process): Timers {
    return {
      set: (callback, delayMs) => this.after(Math.ceil(delayMs), "timer", owner, callback),
      clear(timer) {
        if (timer !== null && timer !== undefined) (timer as Step).cancelled = true;
      },
    };
  }

  /** Time passes and its timers do not see it: they come due later by as much. */
  suspend(owner: Process, forMs: number): void {
    const endMs = this.nowMs + forMs;
    const longerMs = Math.max(endMs - Math.max(owner.frozenUntilMs, this.nowMs), 0);
    owner.suspendedMs += longerMs;
    owner.frozenUntilMs = Math.max(owner.frozenUntilMs, endMs);
    owner.suspendedUntilMs = owner.frozenUntilMs;
    const steps = this.queue.splice(0);
    for (const step of steps) {
      if (step.owner === owner && step.label === "timer") step.atMs += longerMs;
      this.push(step);
    }
  }

  /** Takes the next step; false when there is none. Promises have come to rest when it resolves. */
  async step(): Promise<boolean> {
    for (;;) {
      const step = this.pop();
      if (step === undefined) return false;
      if (step.cancelled || step.owner?.alive === false) continue;
      this.nowMs = Math.max(this.nowMs, step.atMs);
      if (step.owner !== null && step.owner.frozenUntilMs > this.nowMs) {
        step.atMs = step.owner.frozenUntilMs;
        this.push(step);
        continue;
      }
      this.steps += 1;
      await step.run();
      await settledPromises();
      return true;
    }
  }

  private push(step: Step): void {
    const { queue } = this;
    let index = queue.length;
    queue.push(step);
    while (index > 0) {
      const parent = (index - 1) >> 1;
      const above = queue[parent];
      if (above === undefined || !sooner(step, above)) break;
      queue[index] = above;
      index = parent;
    }
    queue[index] = step;
  }

  private pop(): Step | undefined {
    const { queue } = this;
    const first = queue[0];
    const last = queue.pop();
    if (first === undefined || last === undefined || queue.length === 0) return first;
    let index = 0;
    for (;;) {
      let child = 2 * index + 1;
      const right = queue[child + 1];
      let below = queue[child];
      if (below === undefined) break;
      if (right !== undefined && sooner(right, below)) {
        child += 1;
        below = right;
      }
      if (!sooner(below, last)) break;
      queue[index] = below;
      index = child;
    }
    queue[index] = last;
    return first;
  }
}

function sooner(one: Step, other: Step): boolean {
  return one.atMs < other.atMs || (one.atMs === other.atMs && one.tie < other.tie);
}

/** Resolves when nothing is left to do but waiting: all continuations have run. */
function settledPromises(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
