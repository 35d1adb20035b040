import { existsSync } from "node:fs";
import { describe, expect, onTestFinished, test } from "vitest";
import { openPresence, turnFileOf } from "../../src/ledger/sqlite/presence.ts";
import { openWriteTurn, type WriteTurn } from "../../src/ledger/sqlite/write-turn.ts";
import { limits } from "../../src/limits.ts";
import { temporaryLedger } from "./support.ts";

const { ledgerBusyMs, ledgerPatienceMs, ledgerTurnMs } = limits;
const busy = (): Error => Object.assign(new Error("database is locked"), { errcode: 5 });

/** A service, whose every pause lasts a millisecond of its own clock. */
interface Service {
  readonly turn: WriteTurn & Disposable;
  readonly clock: { nowMs: number };
  /** What happens in its next pauses. */
  onPause: () => void;
}

function openScene(names: readonly string[]): { path: string; services: Service[] } {
  const ledger = temporaryLedger();
  const owned = new DisposableStack();
  onTestFinished(() => {
    owned.dispose();
    ledger[Symbol.dispose]();
  });
  const services = names.map((owner) => {
    owned.use(openPresence(ledger.path, owner));
    const clock = { nowMs: 0 };
    const service: Service = {
      clock,
      onPause: () => {},
      turn: owned.use(
        openWriteTurn({
          path: ledger.path,
          busyMs: ledgerBusyMs,
          owner,
          monotonicMs: () => clock.nowMs,
          pause() {
            clock.nowMs += 1;
            service.onPause();
          },
        }),
      ),
    };
    return service;
  });
  return { path: ledger.path, services };
}

/** Lets a service wait for the ledger's lock for so long, with its last pause open; then it gets the lock. */
function waitFor(service: Service, waitMs: number, inLastPause: () => void): void {
  const startedAtMs = service.clock.nowMs;
  const waited = (): number => service.clock.nowMs - startedAtMs;
  service.onPause = () => {
    if (waited() === waitMs) inLastPause();
  };
  service.turn((entered) => {
    if (waited() < waitMs) throw busy();
    entered();
  });
}

const write = (service: Service): number => {
  const startedAtMs = service.clock.nowMs;
  return service.turn((entered) => {
    entered();
    return service.clock.nowMs - startedAtMs;
  });
};

describe("the turn to write", () => {
  test("is of the service that has waited: one that comes later lets it go first", () => {
    const { services } = openScene(["first", "second"]);
    const [first, second] = services as [Service, Service];
    let later = 0;
    waitFor(first, ledgerPatienceMs + 2, () => {
      later = write(second);
    });
    // The first was held up inside its pause, so that the second gave up in the end.
    expect(later).toBe(ledgerTurnMs);
    expect(write(first)).toBe(0);
    second.clock.nowMs += ledgerTurnMs;
    expect(write(second)).toBe(0);
  });

  test("is nobody's before a service has waited for long, and none is needed where a service is alone", () => {
    const { path, services } = openScene(["first", "second"]);
    const [first, second] = services as [Service, Service];
    let later: number | null = null;
    waitFor(first, ledgerPatienceMs, () => {
      later = write(second);
    });
    expect(later).toBe(0);
    expect(existsSync(turnFileOf(path))).toBe(true);

    const alone = openScene(["only"]);
    const [only] = alone.services as [Service];
    waitFor(only, 3 * ledgerPatienceMs, () => {});
    expect(existsSync(turnFileOf(alone.path))).toBe(false);
  });

  test("that a stopped process keeps is not waited for at every commit", () => {
    const { services } = openScene(["stopped", "second"]);
    const [stopped, second] = services as [Service, Service];
    const waits: number[] = [];
    waitFor(stopped, ledgerPatienceMs + 2, () => {
      for (let times = 0; times < 3; times += 1) waits.push(write(second));
      second.clock.nowMs += ledgerTurnMs;
      waits.push(write(second));
    });
    expect(waits).toEqual([ledgerTurnMs, 0, 0, ledgerTurnMs]);
  });

  test("is waited for no longer than a ledger may be locked, and for no other fault", () => {
    const { services } = openScene(["first"]);
    const [first] = services as [Service];
    const locked = busy();
    const refuse = (error: Error) => () => {
      throw error;
    };
    expect(() => first.turn(refuse(locked))).toThrow(locked);
    expect(first.clock.nowMs).toBe(ledgerBusyMs);
    const full = Object.assign(new Error("database or disk is full"), { errcode: 13 });
    expect(() => first.turn(refuse(full))).toThrow(full);
    expect(first.clock.nowMs).toBe(ledgerBusyMs);
  });
});
