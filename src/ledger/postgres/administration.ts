import { changes, looks } from "../administration/definitions.ts";
import type { StatementValue, Step, Steps } from "../administration/steps.ts";
import { numberOf, type Row } from "../row.ts";
import type { OperationName, PostgresOperations } from "../store-operations.ts";
import type { Clock, Database, Query } from "./database.ts";

type Administration = Pick<
  PostgresOperations,
  OperationName & (keyof typeof looks | keyof typeof changes)
>;

const readClock = { name: "now", text: "select tributary.now_ms() as now" };
const move = {
  name: "move",
  text: "select tributary.move($1, $2, $3, 0, 0, 'operator', null, $4, $5)",
};
const lock = { name: "advisory-lock", text: "select pg_advisory_xact_lock($1)" };
const lockNumbers = { first: 92_706_122_727_426n };

/** What operators do, a step at a time. What they read is read over a connection of its own, without a limit on its time. */
export function openAdministration(database: Database, clock: Clock): Administration {
  const operations = [
    ...Object.entries(looks).map(([name, begin]) => [
      name,
      (argument: never) => database.look((query) => run<unknown>(begin(argument), query)),
    ]),
    ...Object.entries(changes).map(([name, begin]) => [
      name,
      (argument: never) =>
        database.transaction(async (query) => {
          const nowMs = clock() ?? (await serverTime(query));
          return run<unknown>(begin(argument, nowMs), query, nowMs);
        }),
    ]),
  ];
  // The names are those of the definitions, and with them the types.
  return Object.fromEntries(operations) as Administration;
}

async function serverTime(query: Query): Promise<number> {
  const [row] = await query(readClock);
  if (row === undefined) throw new Error("ledger: the server told no time");
  return numberOf(row, "now");
}

async function run<Value>(steps: Steps<Value>, query: Query, nowMs = 0): Promise<Value> {
  let step = steps.next();
  while (step.done !== true) step = steps.next(await take(step.value, query, nowMs));
  return step.value;
}

function take(step: Step, query: Query, nowMs: number): Promise<readonly Row[]> {
  switch (step.type) {
    case "statement":
      return query({ name: "", text: step.sql }, ...step.values.map(inWordsOfDriver));
    case "move": {
      const { accountId, amountNanos, kind, note } = step.movement;
      return query(move, accountId, kind, amountNanos, note, nowMs);
    }
    case "lock":
      return query(lock, lockNumbers[step.name]);
    default:
      return step satisfies never;
  }
}

function inWordsOfDriver(value: StatementValue): unknown {
  return value instanceof Uint8Array ? Buffer.from(value) : value;
}
