import {
  type AdministrationOperations,
  type Begun,
  begunChanges,
  begunLooks,
} from "../administration/definitions.ts";
import type { StatementValue, Step, Steps } from "../administration/steps.ts";
import { numberOf, type Row } from "../row.ts";
import type { PostgresOperations } from "../store-operations.ts";
import type { Clock, Database, Query } from "./database.ts";

type Administration = Pick<PostgresOperations, keyof AdministrationOperations>;

const readClock = { name: "now", text: "select tributary.now_ms() as now" };
const move = {
  name: "move",
  text: `select written_sequence as sequence, written_hash as hash
    from tributary.move($1, $2, $3, 0, 0, $4, null, $5, $6)`,
};
const moveCredit = {
  name: "move-credit",
  text: `select written_sequence as sequence, written_hash as hash
    from tributary.move_credit($1, $2, $3, $4, $5, $6, $7, $8)`,
};
const lock = { name: "advisory-lock", text: "select pg_advisory_xact_lock($1)" };
const lockNumbers = { first: 92_706_122_727_426n, "external-id": 92_706_122_727_428n };
const tryLock = {
  name: "try-advisory-lock",
  text: "select 1 as one where pg_try_advisory_xact_lock(hashtextextended($1, 92706122727427))",
};

/**
 * What a server that dies may lose, since it is done again: receipts are in their file before they are removed. Requests
 * wait for none of these commits, and what they commit themselves brings these to the disk first.
 */
const unsynced: ReadonlySet<string> = new Set(["archiveReceipts", "keepUsage"]);
const notDurable = {
  name: "not-durable",
  text: "select set_config('synchronous_commit', 'off', true)",
};

/** What operators do, a step at a time. What they read is read over a connection of its own, without a limit on its time. */
export function openAdministration(database: Database, clock: Clock): Administration {
  const timed = async ({ begin }: Begun, argument: unknown, query: Query): Promise<unknown> => {
    const nowMs = clock() ?? (await serverTime(query));
    return run(begin(argument, nowMs), query, nowMs);
  };
  const operations = [
    ...begunLooks.map((one) => [
      one.name,
      (argument: unknown) => database.look((query) => timed(one, argument, query)),
    ]),
    ...begunChanges.map((one) => [
      one.name,
      (argument: unknown) =>
        database.transaction(async (query) => {
          if (unsynced.has(one.name)) await query(notDurable);
          return timed(one, argument, query);
        }),
    ]),
  ];
  // The names are those of the definitions, and with them the types.
  return Object.fromEntries(operations) as Administration;
}

async function serverTime(query: Query): Promise<number> {
  const [row] = await query(readClock);
  if (row === undefined) throw new Error("ledger: the server answered no time");
  return numberOf(row, "now");
}

async function run(steps: Steps<unknown>, query: Query, nowMs: number): Promise<unknown> {
  let step = steps.next();
  while (step.done !== true) step = steps.next(await take(step.value, query, nowMs));
  return step.value;
}

function take(step: Step, query: Query, nowMs: number): Promise<readonly Row[]> {
  switch (step.type) {
    case "statement":
      return query({ name: "", text: step.sql }, ...step.values.map(inWordsOfDriver));
    case "move": {
      const { accountId, actor, amountNanos, kind, known, note } = step.movement;
      if (known === null) return query(move, accountId, kind, amountNanos, actor, note, nowMs);
      const { receipt, reference } = known;
      const order = [accountId, kind, amountNanos, actor, reference, receipt, note, nowMs];
      return query(moveCredit, ...order);
    }
    case "lock":
      return query(lock, lockNumbers[step.name]);
    case "try-lock":
      return query(tryLock, step.name);
    default:
      return step satisfies never;
  }
}

function inWordsOfDriver(value: StatementValue): unknown {
  return value instanceof Uint8Array ? Buffer.from(value) : value;
}
