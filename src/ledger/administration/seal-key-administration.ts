import type { SealKeyRecord } from "../records.ts";
import { bytesOf, numberOf, textOf } from "../row.ts";
import { audit } from "./audit.ts";
import type { ChangeContext } from "./changed-by.ts";
import { ask, type Steps } from "./steps.ts";

/** A key that seals reasoning, to be made. */
export interface NewSealKey {
  readonly id: string;
  readonly secret: Uint8Array;
}

/** The keys that seal, oldest first; `fresh` is kept when there is none yet. */
export function* sealKeys(
  fresh: NewSealKey,
  context: ChangeContext,
): Steps<readonly SealKeyRecord[]> {
  const there = yield* list(context);
  if (there.length > 0) return there;
  // Two transactions may both find none; under this lock the second finds that of the first.
  yield { type: "lock", name: "first" };
  const again = yield* list(context);
  return again.length > 0 ? again : [yield* addSealKey(fresh, context)];
}

/** Adds a key, which seals from now on. */
export function* addSealKey(fresh: NewSealKey, context: ChangeContext): Steps<SealKeyRecord> {
  yield* ask(
    "insert into tributary.seal_key (id, secret, created_at_ms) values ($1, $2, $3)",
    fresh.id,
    fresh.secret,
    context.nowMs,
  );
  yield* audit(context, { action: "seal.rotate", target: fresh.id, before: null, after: {} });
  return { id: fresh.id, secret: fresh.secret, ageMs: 0 };
}

function* list({ nowMs }: ChangeContext): Steps<readonly SealKeyRecord[]> {
  const rows = yield* ask(
    "select id, secret, created_at_ms from tributary.seal_key order by sequence",
  );
  return rows.map((row) => ({
    id: textOf(row, "id"),
    secret: bytesOf(row, "secret"),
    ageMs: nowMs - numberOf(row, "created_at_ms"),
  }));
}
