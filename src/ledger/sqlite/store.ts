import type { DatabaseSync } from "node:sqlite";
import { Failure } from "../../failure.ts";
import { lookNames } from "../administration/definitions.ts";
import { openAccounts } from "./accounts.ts";
import { openAdministration } from "./administration.ts";
import { giveTicketBack, openAdmit, type AdmitRules } from "./admit.ts";
import { openKeyGate } from "./authorize.ts";
import { openBudgets } from "./budgets.ts";
import { openBooks } from "./reports.ts";
import { limits } from "../../limits.ts";
import { openGuardedDatabase, type DatabaseSettings } from "./database.ts";
import { memoryPath } from "./ledger-files.ts";
import { faultKind } from "./fault.ts";
import type { FileGuard } from "./file-guard.ts";
import type {
  OperationName,
  StoreAnswer,
  StoreCall,
  StoreOperations,
} from "../store-operations.ts";
import type { AccountId } from "../scalars.ts";
import { isPresent } from "./presence.ts";
import { openRateWindow } from "./rate-window.ts";
import { openResolve } from "./resolve.ts";
import { openVerify } from "./verify.ts";
import { getRow } from "./get-row.ts";
import { noTurn, openWriteTurn, type WriteTurn } from "./write-turn.ts";

/** Where the store is and what it decides by. */
export interface StoreSettings extends DatabaseSettings, AdmitRules {
  readonly requestsPerMinute: number;
  /** Its thread reads reports alone, which lets everything else go first. */
  readonly yields?: true;
}

/** The synchronous core: no thread, no clock, no randomness of its own, so that a simulation can run it alone. */
export interface SqliteStore extends Disposable {
  /**
   * One transaction over all calls: a refusal or a fault of one leaves the others as they are. What is answered has been
   * committed; when the commit itself fails, every answer is that fault.
   */
  execute(calls: readonly StoreCall[]): readonly StoreAnswer[];
}

/** What a store knows of its file and of other processes. */
export interface StoreSurroundings {
  readonly guard: FileGuard;
  /** Whether the process with this id lives. */
  readonly isPresent: (owner: string) => boolean;
  /** How a transaction waits for other processes; absent: there are none. */
  readonly turn?: WriteTurn & Disposable;
}

const alone: StoreSurroundings = { guard: () => {}, isPresent: () => true };

/** Opens the file, creating and migrating it as needed. */
export function openStore(settings: StoreSettings): SqliteStore {
  const { database, guard } = openGuardedDatabase(settings);
  const { busyMs = limits.ledgerBusyMs, owner, path } = settings;
  const isShared = path !== memoryPath;
  // From here on `openWriteTurn` waits, and not SQLite.
  if (isShared) database.exec("pragma busy_timeout = 0");
  return openStoreOn(database, settings, {
    guard,
    isPresent: (other) => isPresent(path, other),
    ...(isShared ? { turn: openWriteTurn({ path, busyMs, owner }) } : {}),
  });
}

/** The store over an open database, which closes with it; a simulation has several on one. */
export function openStoreOn(
  database: DatabaseSync,
  settings: StoreSettings,
  surroundings: StoreSurroundings = alone,
): SqliteStore {
  const operations = openOperations(database, settings, surroundings);
  const transaction = openTransaction(database, surroundings);
  return {
    execute: (calls) => transaction(calls, operations),
    [Symbol.dispose]: () => {
      surroundings.turn?.[Symbol.dispose]();
      database.close();
    },
  };
}

const lightOperations: ReadonlySet<OperationName> = new Set([
  "authorize",
  "giveTicketBack",
  "receipt",
  "callerAccount",
  "verify",
  ...lookNames,
]);

/** Operations that write nothing but rate tickets: their commit needs no sync and no lock on the accounts. */
export function isLight(call: StoreCall): boolean {
  return lightOperations.has(call.name);
}

function takesTickets({ name }: StoreCall): boolean {
  return name === "authorize" || name === "giveTicketBack";
}

function openOperations(
  database: DatabaseSync,
  settings: StoreSettings,
  { isPresent: isOwnerPresent }: StoreSurroundings,
): StoreOperations {
  const accounts = openAccounts(database);
  const budgets = openBudgets(database);
  const rateWindow = openRateWindow(database);
  const keyGate = openKeyGate(database, rateWindow, settings);
  const administration = openAdministration(database, accounts);
  const payGrant = (accountId: AccountId, nowMs: number): void =>
    void administration.payGrants({ accountId }, nowMs);
  return {
    authorize: keyGate.authorize,
    noteKeyUse: keyGate.noteKeyUse,
    giveTicketBack(caller) {
      giveTicketBack(caller, rateWindow);
      return null;
    },
    admit: openAdmit(database, settings, { accounts, budgets, keyGate, payGrant, rateWindow }),
    ...openResolve(database, {
      leaseMs: settings.leaseMs,
      accounts,
      budgets,
      rateWindow,
      isPresent: isOwnerPresent,
    }),
    ...administration,
    ...openBooks(database, settings),
    verify: openVerify(database),
    check: openCheck(database),
  };
}

/** Writes to both files what is in them already, a page each: the smallest write that fails where a request's would. */
function openCheck(database: DatabaseSync): StoreOperations["check"] {
  return () => {
    for (const schema of ["main", "rate"]) {
      const row = getRow(database.prepare(`pragma ${schema}.user_version`));
      if (row === null) throw new Error(`ledger: ${schema} has no version`);
      database.exec(`pragma ${schema}.user_version = ${String(row["user_version"])}`);
    }
    return null;
  };
}

type Transaction = (
  calls: readonly StoreCall[],
  operations: StoreOperations,
) => readonly StoreAnswer[];

function openTransaction(
  database: DatabaseSync,
  { guard, turn = noTurn }: Pick<StoreSurroundings, "guard"> & { readonly turn?: WriteTurn },
): Transaction {
  const begin = database.prepare("begin");
  const beginImmediate = database.prepare("begin immediate");
  const commit = database.prepare("commit");
  const apart = openSavepoint(database);
  // Takes the lock of the rate window, whose tickets are all that light calls write.
  const lockRate = database.prepare("delete from rate.ticket where false");

  function executeAll(
    calls: readonly StoreCall[],
    execute: (call: StoreCall) => StoreAnswer,
    entered: () => void,
  ): readonly StoreAnswer[] {
    try {
      (calls.every(isLight) ? begin : beginImmediate).run();
      if (calls.some(takesTickets)) lockRate.run();
      entered();
      guard();
      const answers = calls.map(execute);
      commit.run();
      return answers;
    } catch (error) {
      if (database.isTransaction) database.exec("rollback");
      throw error;
    }
  }

  return (calls, operations) => {
    const refuseAll = (error: unknown): readonly StoreAnswer[] =>
      calls.map(() => ({ ok: false, error }));
    const transact = (execute: (call: StoreCall) => StoreAnswer): readonly StoreAnswer[] =>
      turn((entered) => executeAll(calls, execute, entered));
    try {
      return transact((call) => executeOne(call, operations));
    } catch (error) {
      // Nothing of the group happened. A fault of the file is the fault of all: when one call has waited for another
      // process in vain, the others must not wait as long again. A bug is that of one call, which is then found.
      if (calls.length === 1 || faultKind(error) !== "bug") return refuseAll(error);
      try {
        return transact((call) => apart(() => executeOne(call, operations)));
      } catch (again) {
        return refuseAll(again);
      }
    }
  };
}

function executeOne(call: StoreCall, operations: StoreOperations): StoreAnswer {
  try {
    return { ok: true, value: apply(call, operations) };
  } catch (error) {
    // A refusal is an answer: it is thrown before anything but the rate window was written, and that is kept.
    if (error instanceof Failure) return { ok: false, error };
    throw error;
  }
}

/** Undoes a step that throws for itself alone. Costs a copy of every page that it changes. */
function openSavepoint(database: DatabaseSync): (step: () => StoreAnswer) => StoreAnswer {
  const savepoint = database.prepare("savepoint call");
  const release = database.prepare("release call");
  const undo = database.prepare("rollback to call");
  return (step) => {
    savepoint.run();
    try {
      return step();
    } catch (error) {
      if (!database.isTransaction || faultKind(error) !== "bug") throw error;
      undo.run();
      return { ok: false, error };
    } finally {
      if (database.isTransaction) release.run();
    }
  };
}

function apply(call: StoreCall, operations: StoreOperations): ReturnType<StoreOperations["check"]> {
  // The type of a call ties its argument to its name; a lookup by name loses that tie.
  const operation = operations[call.name] as (argument: unknown, nowMs: number) => never;
  return operation(call.argument, call.nowMs);
}
