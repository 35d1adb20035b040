import { limits } from "../../limits.ts";
import type { AccountId, CreditNanos, KeyId } from "../scalars.ts";
import { bigOf, numberOf, numberOrNullOf, textOf, textOrNullOf } from "../row.ts";
import { writeEvent } from "./outbox.ts";
import { ask, askOne, type Steps } from "./steps.ts";

// What becomes an event and is not a change of an account's balance: of these the database itself writes events.

type Context = { readonly nowMs: number };

/** A request was refused for credit, with the balance that it found: an event unless there was one since the last credit. */
export function* noteExhausted(
  order: {
    readonly accountId: AccountId;
    readonly keyId: KeyId;
    readonly balanceNanos: CreditNanos;
    readonly neededNanos: CreditNanos;
  },
  { nowMs }: Context,
): Steps<null> {
  // Credit that came after the refusal makes the balance higher than the one that the refusal found.
  const row = yield* askOne(
    `update tributary.account set exhausted = 1 where id = $1 and exhausted = 0 and balance_nanos <= $2
     returning balance_nanos, held_nanos`,
    order.accountId,
    order.balanceNanos,
  );
  if (row === null) return null;
  const facts = {
    balance_nanos: bigOf(row, "balance_nanos").toString(),
    held_nanos: bigOf(row, "held_nanos").toString(),
    needed_nanos: order.neededNanos.toString(),
  };
  const { accountId, keyId } = order;
  yield* writeEvent({ type: "account.exhausted", accountId, keyId, facts }, nowMs);
  return null;
}

/**
 * A request was refused for its key's budget. What is left of a budget never pays for anything in the end, so that hardly
 * one is ever spent to the last: where 80 % is spent, this counts as all of it, once a period.
 */
export function* noteBudgetRefused(
  { accountId, keyId }: { readonly accountId: AccountId; readonly keyId: KeyId },
  { nowMs }: Context,
): Steps<null> {
  // Keys are written under their account's lock.
  yield* ask("select 1 as one from tributary.account where id = $1 for no key update", accountId);
  const row = yield* askOne(
    `update tributary.api_key set budget_event_begin_ms = budget_begin_ms, budget_event_percent = 100
     where account_id = $1 and id = $2 and budget_spent_nanos >= budget_nanos - budget_nanos / 5
       and (budget_event_begin_ms is distinct from budget_begin_ms or budget_event_percent < 100)
     returning budget_nanos, budget_spent_nanos, budget_period, budget_begin_ms, budget_end_ms`,
    accountId,
    keyId,
  );
  if (row === null) return null;
  const facts = {
    percent: 100,
    budget_nanos: bigOf(row, "budget_nanos").toString(),
    spent_nanos: bigOf(row, "budget_spent_nanos").toString(),
    period: textOf(row, "budget_period"),
    begins_at_ms: numberOrNullOf(row, "budget_begin_ms"),
    ends_at_ms: numberOrNullOf(row, "budget_end_ms"),
  };
  yield* writeEvent({ type: "budget.reached", accountId, keyId, facts }, nowMs);
  return null;
}

/** Verifying has found something wrong. */
export function* noteVerifyFailed(
  order: { readonly problems: number; readonly first: string },
  { nowMs }: Context,
): Steps<null> {
  const facts = { problems: order.problems, first: order.first };
  yield* writeEvent({ type: "verify.failed", accountId: null, keyId: null, facts }, nowMs);
  return null;
}

/** Announces keys that expire within a day, each end once; answers how many. */
export function* noteExpiringKeys(_order: object, { nowMs }: Context): Steps<number> {
  const keys = yield* ask(
    `select id, account_id, name, expires_at_ms from tributary.api_key
     where expires_at_ms > $1 and expires_at_ms <= $2 and revoked_at_ms is null
       and coalesce(expiring_event_ms, 0) <> expires_at_ms
     order by expires_at_ms limit ${String(limits.eventsTakenMax)}`,
    nowMs,
    nowMs + limits.keyExpiringMs,
  );
  let count = 0;
  for (const key of keys) {
    const id = textOf(key, "id");
    const accountId = textOf(key, "account_id");
    const expiresAtMs = numberOf(key, "expires_at_ms");
    // Keys are written under their account's lock; of two replicas the second finds the event of the first.
    yield* ask(`select 1 as one from tributary.account where id = $1 for no key update`, accountId);
    const row = yield* askOne(
      `update tributary.api_key set expiring_event_ms = expires_at_ms where account_id = $1 and id = $2
         and expires_at_ms = $3 and coalesce(expiring_event_ms, 0) <> $3 returning id`,
      accountId,
      id,
      expiresAtMs,
    );
    if (row === null) continue;
    const facts = { name: textOf(key, "name"), expires_at_ms: expiresAtMs };
    yield* writeEvent({ type: "key.expiring", accountId, keyId: id, facts }, nowMs);
    count += 1;
  }
  return count;
}

/**
 * What one process sees of the deployment. It is down when for 30 s all that looked found it so, and up again 30 s after
 * one found it up and did not take that back.
 */
export function* noteDeployment(
  { seenBy, up }: { readonly seenBy: string; readonly up: boolean },
  { nowMs }: Context,
): Steps<null> {
  const first = `select state, since_ms, doubted_since_ms, doubted_by from tributary.deployment_state where id = 1`;
  let row = yield* askOne(first);
  if (row === null) {
    // A model that is fetched and loaded for the first time was never there, and is not gone.
    if (!up) return null;
    yield* ask(
      "insert into tributary.deployment_state (id, state, since_ms) values (1, 'up', $1) on conflict do nothing",
      nowMs,
    );
    row = yield* askOne(first);
  }
  // Most looks find what was known, and write nothing.
  if (row === null || isNews(textOf(row, "state"), textOrNullOf(row, "doubted_by"), { seenBy, up }))
    row = yield* askOne(`${first} for no key update`);
  else return null;
  if (row === null) return null;
  const state = textOf(row, "state");
  const doubtedBy = textOrNullOf(row, "doubted_by");
  if (!isNews(state, doubtedBy, { seenBy, up })) return null;
  const seen = up ? "up" : "down";
  const doubtedSinceMs = seen === state ? null : (numberOrNullOf(row, "doubted_since_ms") ?? nowMs);
  const changes = doubtedSinceMs !== null && nowMs - doubtedSinceMs >= limits.deploymentDownMs;
  yield* ask(
    `update tributary.deployment_state set state = $1, since_ms = $2, doubted_since_ms = $3, doubted_by = $4 where id = 1`,
    changes ? seen : state,
    changes ? nowMs : numberOf(row, "since_ms"),
    changes ? null : doubtedSinceMs,
    changes || doubtedSinceMs === null ? null : (doubtedBy ?? seenBy),
  );
  if (changes) {
    const facts = { since_at_ms: doubtedSinceMs };
    yield* writeEvent({ type: `deployment.${seen}`, accountId: null, keyId: null, facts }, nowMs);
  }
  return null;
}

/** Whether a look says anything that the row does not. */
function isNews(
  state: string,
  doubtedBy: string | null,
  { seenBy, up }: { readonly seenBy: string; readonly up: boolean },
): boolean {
  if ((state === "up") !== up) return true;
  // While it is up, whoever reaches it shows that it is; while it is down, a doubt is taken back by who had it.
  return doubtedBy !== null && (up || doubtedBy === seenBy);
}
