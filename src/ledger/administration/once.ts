import { limits } from "../../limits.ts";
import { OperatorError } from "../operator-error.ts";
import { bytesOf, textOf } from "../row.ts";
import type { ChangeContext, Once } from "./changed-by.ts";
import { ask, askOne, type Steps } from "./steps.ts";

/**
 * Runs a change once under its key: a repeat with the same body gets the answer of the first time. The answer is kept in
 * the transaction of the change, so that a process that dies leaves neither; a refusal keeps nothing.
 */
export function* runOnce<Value>(
  once: Once,
  { actor, nowMs }: ChangeContext,
  begin: () => Steps<Value>,
): Steps<Value> {
  const { bodyHash, key, route } = once;
  const param = "idempotency-key";
  // Another transaction under this key has to be over, or its answer could not be seen.
  const [free] = yield { type: "try-lock", name: `${actor} ${route} ${key}` };
  if (free === undefined)
    throw new OperatorError(
      "idempotency_in_progress",
      "A request with this idempotency-key is still running. Repeat it in a few seconds.",
      { param },
    );
  const kept = yield* askOne(
    `select body_hash, answer_json from tributary.kept_answer
     where actor = $1 and route = $2 and idempotency_key = $3 and created_at_ms > $4`,
    actor,
    route,
    key,
    nowMs - limits.keptAnswerMs,
  );
  if (kept !== null) {
    if (Buffer.compare(bytesOf(kept, "body_hash"), bodyHash) !== 0)
      throw new OperatorError(
        "idempotency_conflict",
        "This idempotency-key was used for a request with another body. Use a fresh key for each change.",
        { param },
      );
    // `jsonOf` wrote it, from a value of this change.
    return valueOf(textOf(kept, "answer_json")) as Value;
  }
  const value = yield* begin();
  yield* ask(
    "delete from tributary.kept_answer where created_at_ms <= $1",
    nowMs - limits.keptAnswerMs,
  );
  yield* ask(
    `insert into tributary.kept_answer (actor, route, idempotency_key, body_hash, answer_json, created_at_ms)
     values ($1, $2, $3, $4, $5, $6)`,
    actor,
    route,
    key,
    bodyHash,
    jsonOf(value),
    nowMs,
  );
  return value;
}

// Credit is a bigint, which JSON has no word for. No value of a change has a member of this name by itself.
const creditMember = "credit_nanos";

function jsonOf(value: unknown): string {
  return JSON.stringify(value, (_name, member: unknown) => {
    if (member instanceof Uint8Array)
      throw new Error("ledger: an answer with a secret is not kept");
    return typeof member === "bigint" ? { [creditMember]: member.toString() } : member;
  });
}

function valueOf(json: string): unknown {
  return JSON.parse(json, (_name, member: unknown) =>
    typeof member === "object" && member !== null && creditMember in member
      ? BigInt(String(member[creditMember]))
      : member,
  );
}
