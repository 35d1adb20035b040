import { limits } from "../../limits.ts";
import { OperatorError } from "../operator-error.ts";
import { numberOf, type Row, textOf, textOrNullOf } from "../row.ts";
import { audit } from "./audit.ts";
import type { ChangeContext } from "./changed-by.ts";
import { ask, askOne, type Steps } from "./steps.ts";

/** What a replica says of itself, again and again. */
export interface ReplicaFacts {
  readonly version: string;
  /** The name of its machine, and its process there. */
  readonly host: string;
  readonly processId: number;
  /** Where operators reach it; null: nowhere. */
  readonly operators: string | null;
  /** Requests that it runs. */
  readonly running: number;
  readonly draining: boolean;
  /** Why it cannot serve; {} when it can. */
  readonly reasons: Readonly<Record<string, string>>;
  /** A short hash of each setting that replicas of one service have in common. */
  readonly settings: Readonly<Record<string, string>>;
}

/** A replica and what it said last. */
export interface ReplicaRecord {
  readonly id: string;
  readonly startedAtMs: number;
  readonly seenAtMs: number;
  /** Who asked it to drain; null: it was not asked. */
  readonly drainAskedBy: string | null;
  readonly facts: ReplicaFacts;
}

const columns = "id, started_at_ms, seen_at_ms, drain_asked_by, facts_json";

/** Says that a replica lives, and what of it there is to know; answers what was asked of it meanwhile. */
export function* reportReplica(
  { facts, id }: { readonly id: string; readonly facts: ReplicaFacts },
  { nowMs }: ChangeContext,
): Steps<ReplicaRecord> {
  yield* ask(
    "delete from tributary.replica where seen_at_ms <= $1",
    nowMs - limits.replicaForgottenMs,
  );
  const row = yield* askOne(
    `insert into tributary.replica (id, started_at_ms, seen_at_ms, facts_json) values ($1, $2, $2, $3)
     on conflict (id) do update set seen_at_ms = $2, facts_json = $3 returning ${columns}`,
    id,
    nowMs,
    JSON.stringify(facts),
  );
  if (row === null) throw new Error("ledger: the replica was not written");
  return replicaOf(row);
}

/** A replica ends in order. */
export function* forgetReplica({ id }: { readonly id: string }): Steps<null> {
  yield* ask("delete from tributary.replica where id = $1", id);
  return null;
}

/** The replicas that were seen in the last minute, oldest first. */
export function* listReplicas(
  _argument: null,
  { nowMs }: { readonly nowMs: number },
): Steps<readonly ReplicaRecord[]> {
  const rows = yield* ask(
    `select ${columns} from tributary.replica where seen_at_ms > $1 order by started_at_ms, id`,
    nowMs - limits.replicaSeenMs,
  );
  return rows.map(replicaOf);
}

/** Asks a replica to drain and end; it learns that when it reports next. */
export function* drainReplica(
  { id }: { readonly id: string },
  context: ChangeContext,
): Steps<ReplicaRecord> {
  const row = yield* askOne(
    `update tributary.replica set drain_asked_by = coalesce(drain_asked_by, $2)
     where id = $1 and seen_at_ms > $3 returning ${columns}`,
    id,
    context.actor,
    context.nowMs - limits.replicaSeenMs,
  );
  if (row === null)
    throw new OperatorError(
      "not_found",
      `No replica ${id} was seen in the last minute. GET /status lists those that were.`,
      { param: "id" },
    );
  const replica = replicaOf(row);
  const after = { host: replica.facts.host, process: replica.facts.processId };
  yield* audit(context, { action: "replica.drain", target: id, before: null, after });
  return replica;
}

function replicaOf(row: Row): ReplicaRecord {
  return {
    id: textOf(row, "id"),
    startedAtMs: numberOf(row, "started_at_ms"),
    seenAtMs: numberOf(row, "seen_at_ms"),
    drainAskedBy: textOrNullOf(row, "drain_asked_by"),
    // `reportReplica` wrote it.
    facts: JSON.parse(textOf(row, "facts_json")) as ReplicaFacts,
  };
}
