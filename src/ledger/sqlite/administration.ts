import type { DatabaseSync, StatementSync } from "node:sqlite";
import {
  type AdministrationOperations,
  begunChanges,
  begunLooks,
} from "../administration/definitions.ts";
import type { OperatorMovement, Step } from "../administration/steps.ts";
import { limits } from "../../limits.ts";
import type { Row } from "../row.ts";
import type { Accounts, Written } from "./accounts.ts";

/** What operators do, a step at a time inside the open transaction. Each statement is prepared when it is first wanted. */
export function openAdministration(
  database: DatabaseSync,
  accounts: Accounts,
): AdministrationOperations {
  const prepared = new Map<string, StatementSync>();

  function prepare(sql: string): StatementSync {
    const statement = prepared.get(sql) ?? database.prepare(inWordsOfSqlite(sql));
    // Reports have texts of their own for each question.
    if (prepared.size >= limits.preparedStatementsMax) prepared.clear();
    prepared.set(sql, statement);
    return statement;
  }

  function take(step: Step, nowMs: number): readonly Row[] {
    switch (step.type) {
      case "statement":
        return prepare(step.sql).all(...step.values);
      case "move":
        return [
          writtenRow(accounts.move(step.movement.accountId, movementOf(step.movement), nowMs)),
        ];
      case "lock":
        return [];
      case "try-lock":
        return [{}];
      default:
        return step satisfies never;
    }
  }

  const operations = [...begunLooks, ...begunChanges].map(({ begin, name }) => {
    const operation = (argument: unknown, nowMs: number): unknown => {
      const steps = begin(argument, nowMs);
      let step = steps.next();
      while (step.done !== true) step = steps.next(take(step.value, nowMs));
      return step.value;
    };
    return [name, operation];
  });
  // The names are those of the definitions, and with them the types.
  return Object.fromEntries(operations) as AdministrationOperations;
}

function inWordsOfSqlite(sql: string): string {
  return sql
    .replaceAll("tributary.", "")
    .replaceAll(/\$(\d+)/g, "?$1")
    .replace(/ for no key update$/, "");
}

function writtenRow({ hash, sequence }: Written): Row {
  return { sequence: BigInt(sequence), hash };
}

function movementOf(movement: OperatorMovement): Parameters<Accounts["move"]>[1] {
  const { known } = movement;
  return {
    kind: movement.kind,
    balanceDeltaNanos: movement.amountNanos,
    heldDeltaNanos: 0n,
    runningDelta: 0,
    actor: movement.actor,
    requestId: null,
    note: movement.note,
    ...(known === null ? {} : { known }),
  };
}
