import { chmodSync, closeSync, openSync } from "node:fs";
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { limits } from "../../limits.ts";
import { faultKind } from "./fault.ts";
import { hasOthers, turnFileOf } from "./presence.ts";

/**
 * Runs a transaction until no lock is in its way, for a bounded time. The transaction calls `entered` as soon as it has
 * its lock, and undoes itself before it throws.
 */
export type WriteTurn = <Value>(transaction: (entered: () => void) => Value) => Value;

/** Where the ledger is, and what its turns work with. */
export interface WriteTurnParts {
  readonly path: string;
  /** How long a transaction waits for other processes. */
  readonly busyMs: number;
  /** The process that this store works for; undefined: a command, which takes no turns and lets none go first. */
  readonly owner: string | undefined;
  /** Milliseconds of a clock that never jumps. */
  readonly monotonicMs?: () => number;
  /** Stops the thread for `limits.ledgerLockLookMs`. */
  readonly pause?: () => void;
}

/** For a store that shares its database with no other process. */
export const noTurn: WriteTurn = (transaction) => transaction(() => {});

/**
 * SQLite's own waiting sleeps up to 100 ms at a time, and a process that has just committed takes the lock again
 * meanwhile. Here a store that waits looks every `limits.ledgerLockLookMs`. One that has waited for
 * `limits.ledgerPatienceMs` takes a second lock, the turn, until it has the ledger's; whoever comes to the ledger lets
 * the owner of the turn go first. Not before that: two that take turns at every commit wait for each other's waking. The
 * kernel drops a turn with its process; `limits.ledgerTurnMs` bounds what one costs whose process was stopped.
 */
export function openWriteTurn(parts: WriteTurnParts): WriteTurn & Disposable {
  const { busyMs, monotonicMs = () => performance.now(), path, pause = stopThread } = parts;
  let file: TurnFile | null = null;
  let others = false;
  let lookAtMs = -Infinity;
  let ignoredUntilMs = -Infinity;

  /** null: no other service has the ledger open, or turns are not to be had. */
  function turnFile(nowMs: number): TurnFile | null {
    if (parts.owner === undefined || nowMs < ignoredUntilMs) return null;
    try {
      if (nowMs >= lookAtMs) {
        others = hasOthers(path, parts.owner);
        lookAtMs = nowMs + limits.ledgerFileLookMs;
      }
      return others ? (file ??= openTurnFile(path)) : null;
    } catch {
      // A folder in which this user may make no file: the ledger says so itself, and is used without turns until then.
      ignoredUntilMs = Infinity;
      return null;
    }
  }

  function letOthersGoFirst(startedAtMs: number): void {
    while (turnFile(monotonicMs())?.isTaken() === true) {
      if (monotonicMs() - startedAtMs >= limits.ledgerTurnMs)
        ignoredUntilMs = monotonicMs() + limits.ledgerTurnMs;
      else pause();
    }
  }

  function wait(error: unknown, startedAtMs: number): void {
    const nowMs = monotonicMs();
    if (faultKind(error) !== "busy" || nowMs - startedAtMs >= busyMs) throw error;
    if (nowMs - startedAtMs >= limits.ledgerPatienceMs) turnFile(nowMs)?.take();
    pause();
  }

  const letGo = (): void => file?.letGo();

  function run<Value>(transaction: (entered: () => void) => Value): Value {
    const startedAtMs = monotonicMs();
    letOthersGoFirst(startedAtMs);
    for (;;) {
      try {
        return transaction(letGo);
      } catch (error) {
        wait(error, startedAtMs);
      }
    }
  }

  const turn: WriteTurn = (transaction) => {
    try {
      return run(transaction);
    } finally {
      letGo();
    }
  };
  return Object.assign(turn, { [Symbol.dispose]: () => file?.[Symbol.dispose]() });
}

interface TurnFile extends Disposable {
  isTaken(): boolean;
  /** Where it is not another's. */
  take(): void;
  letGo(): void;
}

function openTurnFile(ledger: string): TurnFile {
  const path = turnFileOf(ledger);
  // For its owner alone, as the ledger is.
  closeSync(openSync(path, "a", 0o600));
  chmodSync(path, 0o600);
  const database = new DatabaseSync(path, { timeout: 0 });
  let look: StatementSync | null = null;
  const begin = database.prepare("begin exclusive");
  const commit = database.prepare("commit");
  return {
    isTaken() {
      if (database.isTransaction) return false;
      // Also preparing it reads the file.
      return isHeld(() => (look ??= database.prepare("select count(*) from sqlite_schema")).get());
    },
    take() {
      if (!database.isTransaction) isHeld(() => begin.run());
    },
    letGo() {
      if (database.isTransaction) commit.run();
    },
    [Symbol.dispose]: () => database.close(),
  };
}

function isHeld(step: () => unknown): boolean {
  try {
    step();
    return false;
  } catch (error) {
    // Whatever else is wrong with this file must not keep a request from the ledger.
    return faultKind(error) === "busy";
  }
}

const paused = new Int32Array(new SharedArrayBuffer(4));

function stopThread(): void {
  Atomics.wait(paused, 0, 0, limits.ledgerLockLookMs);
}
