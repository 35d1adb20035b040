import type { Process } from "./world.ts";

/** Which processes say that they live, and for how long others have been missed, as the contract tells it. */
export class Presence {
  private readonly processes = new Map<string, Process>();
  private readonly missedSince = new Map<string, number>();
  private readonly graceMs: number | null;

  constructor(graceMs: number | null) {
    this.graceMs = graceMs;
  }

  add(process: Process): void {
    this.processes.set(process.name, process);
  }

  isHeard(owner: string): boolean {
    const process = this.processes.get(owner);
    return process !== undefined && process.alive && process.unheardUntilMs === null;
  }

  /** A process looks for dead ones, and says that it lives when it can. Whether it was heard until now. */
  look(by: Process, nowMs: number): boolean {
    if (by.unheardUntilMs === null) return true;
    if (nowMs >= by.unheardUntilMs) by.unheardUntilMs = null;
    return false;
  }

  /** Who is missed is noticed by the next look of another. */
  notice(wallMs: number): void {
    for (const name of this.processes.keys()) {
      if (this.isHeard(name)) this.missedSince.delete(name);
      else if ((this.missedSince.get(name) ?? Infinity) > wallMs)
        this.missedSince.set(name, wallMs);
    }
  }

  isDead(owner: string, wallMs: number): boolean {
    const since = this.missedSince.get(owner);
    return this.graceMs !== null && since !== undefined && wallMs - since >= this.graceMs;
  }
}
