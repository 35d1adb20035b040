import type { SealKeyRecord } from "../records.ts";
import { bytesOf, numberOf, textOf } from "../row.ts";
import { ask, type Steps } from "./steps.ts";

/** A key that seals reasoning, to be made. */
export interface NewSealKey {
  readonly id: string;
  readonly secret: Uint8Array;
}

/** The keys that seal, oldest first; `fresh` is kept when there is none yet. */
export function* sealKeys(fresh: NewSealKey, nowMs: number): Steps<readonly SealKeyRecord[]> {
  const there = yield* list(nowMs);
  if (there.length > 0) return there;
  // Two transactions may both find none; under this lock the second finds that of the first.
  yield { type: "lock", name: "first" };
  const again = yield* list(nowMs);
  return again.length > 0 ? again : [yield* addSealKey(fresh, nowMs)];
}

/** Adds a key, which seals from now on. */
export function* addSealKey(fresh: NewSealKey, nowMs: number): Steps<SealKeyRecord> {
  yield* ask(
    "insert into tributary.seal_key (id, secret, created_at_ms) values ($1, $2, $3)",
    fresh.id,
    fresh.secret,
    nowMs,
  );
  return { ...fresh, ageMs: 0 };
}

function* list(nowMs: number): Steps<readonly SealKeyRecord[]> {
  const rows = yield* ask(
    "select id, secret, created_at_ms from tributary.seal_key order by sequence",
  );
  return rows.map((row) => ({
    id: textOf(row, "id"),
    secret: bytesOf(row, "secret"),
    ageMs: nowMs - numberOf(row, "created_at_ms"),
  }));
}
