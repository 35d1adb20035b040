import type { DatabaseSync } from "node:sqlite";
import { limits } from "../../limits.ts";
import type { MovedTable, MoveSource } from "../moved-tables.ts";
import { OperatorError } from "../operator-error.ts";
import { type Row, numberOf } from "../row.ts";
import { openAccounts } from "./accounts.ts";
import { openBudgets } from "./budgets.ts";
import { openDatabase } from "./database.ts";
import { faultKind } from "./fault.ts";
import { ledgerMark, movedMark, movingMark, setMark } from "./file-mark.ts";
import { getRow } from "./get-row.ts";
import { countPresent, isPresent } from "./presence.ts";
import { openRateWindow } from "./rate-window.ts";
import { openResolve } from "./resolve.ts";
import { openVerify } from "./verify.ts";

/** The time and the length of leases by which leases have ended. */
export interface MoveClock {
  readonly nowMs: number;
  readonly leaseMs: number;
}

/** Opens the file of a ledger that moves, and keeps others from writing to it until it is closed. */
export function openMoveSource(path: string, clock: MoveClock): MoveSource {
  const database = openDatabase({ path, synchronous: "full", moving: true });
  try {
    lock(database, path);
    giveBack(database, path, clock);
    const open = getRow(
      database.prepare("select count(*) as count from reservation where state = 'open'"),
    );
    const verify = openVerify(database);
    const mark = (what: number): void => {
      setMark(database, what);
      database.exec("commit");
      lock(database, path);
    };
    return {
      open: open === null ? 0 : numberOf(open, "count"),
      processes: countPresent(path),
      verify: () => verify({ against: [], listHeads: true }, 0),
      read: (table) => read(database, table),
      beginMove: () => mark(movingMark),
      finishMove: () => mark(movedMark),
      giveUpMove: () => mark(ledgerMark),
      [Symbol.dispose]: () => {
        database.close();
      },
    };
  } catch (error) {
    database.close();
    throw error;
  }
}

/** Gives back what dead processes held, so that only requests that run are left open. */
function giveBack(database: DatabaseSync, path: string, { leaseMs, nowMs }: MoveClock): void {
  const { expire, giveBackDead } = openResolve(database, {
    leaseMs,
    accounts: openAccounts(database),
    budgets: openBudgets(database),
    rateWindow: openRateWindow(database),
    isPresent: (owner) => isPresent(path, owner),
  });
  while (giveBackDead(null, nowMs).count >= limits.ledgerGroupMax);
  while (expire(null, nowMs) >= limits.ledgerGroupMax);
}

function lock(database: DatabaseSync, path: string): void {
  try {
    database.exec("begin immediate");
  } catch (error) {
    if (faultKind(error) !== "busy") throw error;
    throw new OperatorError(
      "not_possible",
      `Another process keeps writing to ${path}. Stop the service and try again.`,
      { cause: error },
    );
  }
}

function* read(database: DatabaseSync, table: MovedTable): Generator<readonly Row[], undefined> {
  const rows = database
    .prepare(`select ${table.columns.join(", ")} from ${table.name} order by ${table.order}`)
    .iterate();
  let piece: Row[] = [];
  for (const row of rows) {
    piece.push(row);
    if (piece.length < limits.movedRowsAPiece) continue;
    yield piece;
    piece = [];
  }
  if (piece.length > 0) yield piece;
}
