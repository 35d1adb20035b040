import { formatCredit } from "../../admission/price.ts";
import { limits } from "../../limits.ts";
import { grantReferencePrefix } from "../journal.ts";
import { type Grant, grantColumns, grantOf, grantPeriods, type GrantState } from "../grant.ts";
import { OperatorError } from "../operator-error.ts";
import { isTimeZone, periodAt } from "../periods.ts";
import type { AccountId } from "../scalars.ts";
import { bigOf, idOf } from "../row.ts";
import type { AuditFacts } from "./audit.ts";
import { type Patch, present } from "./changed-by.ts";
import { ask, askOne, type Steps } from "./steps.ts";

/** The grant after a change; throws where it would be none that can be kept. */
export function patchedGrant(before: Grant | null, patch: Patch<Grant>): Grant {
  const { amountNanos, carryOver, every, timezone }: Partial<Grant> = {
    timezone: "UTC",
    carryOver: false,
    ...before,
    ...present(patch),
  };
  if (amountNanos === undefined || amountNanos <= 0n || amountNanos > limits.creditNanosMax)
    throw invalid(
      "amount",
      `is an amount of credits above 0, at most ${formatCredit(limits.creditNanosMax)}, such as "10".`,
    );
  if (every === undefined || !grantPeriods.includes(every))
    throw invalid("every", `is one of ${grantPeriods.join(", ")}.`);
  if (timezone === undefined || !isTimeZone(timezone))
    throw invalid("timezone", "is UTC, or a name such as Europe/Berlin.");
  return { amountNanos, every, timezone, carryOver };
}

/** The facts of a grant for the audit log. */
export function grantFacts(grant: Grant | null): AuditFacts {
  return {
    grant_amount: grant === null ? null : formatCredit(grant.amountNanos),
    grant_every: grant?.every ?? null,
    grant_timezone: grant?.timezone ?? null,
    grant_carry_over: grant?.carryOver ?? null,
  };
}

/** Grants an account credit from now on, or no more; its row is locked. The first grant is paid at once, whole. */
export function* setGrant(
  { grant: before, id }: { readonly id: AccountId; readonly grant: GrantState | null },
  grant: Grant | null,
  nowMs: number,
): Steps<void> {
  yield* ask(
    `update tributary.account set grant_nanos = $2, grant_every = $3, grant_timezone = $4, grant_carry_over = $5,
       grant_next_ms = $6
     where id = $1`,
    id,
    grant?.amountNanos ?? null,
    grant?.every ?? null,
    grant?.timezone ?? null,
    grant === null ? null : Number(grant.carryOver),
    grant === null ? null : (before?.nextMs ?? nowMs),
  );
  if (before === null && grant !== null) yield* payGrant(id, nowMs);
}

/** Pays what is due: of one account, or of some of all; answers how many accounts were looked at. */
export function* payGrants(
  { accountId }: { readonly accountId: AccountId | null },
  { nowMs }: { readonly nowMs: number },
): Steps<number> {
  if (accountId !== null) {
    yield* payGrant(accountId, nowMs);
    return 1;
  }
  const due = yield* ask(
    `select id from tributary.account where grant_next_ms <= $1 order by id limit ${String(limits.grantsAtOnce)}`,
    nowMs,
  );
  for (const row of due) yield* payGrant(idOf(row, "id", "acct_"), nowMs);
  return due.length;
}

/** Whether a grant of the account is due. */
export function* isGrantDue(id: string, { nowMs }: { readonly nowMs: number }): Steps<boolean> {
  const due = "select 1 as one from tributary.account where id = $1 and grant_next_ms <= $2";
  return (yield* askOne(due, id, nowMs)) !== null;
}

/** The present period's grant, once: periods that nothing saw get none, and a clock that was set back makes none again. */
function* payGrant(id: AccountId, nowMs: number): Steps<void> {
  const row = yield* askOne(
    `select ${grantColumns}, grant_left_nanos, balance_nanos, held_nanos from tributary.account
     where id = $1 for no key update`,
    id,
  );
  const grant = row === null ? null : grantOf(row);
  if (row === null || grant === null || grant.nextMs > nowMs) return;
  const { beginMs, endMs } = periodAt({ period: grant.every, timezone: grant.timezone }, nowMs);
  const begin = new Date(beginMs).toISOString();
  const reference = `${grantReferencePrefix}${begin}`;
  let amountNanos = 0n;
  const paid =
    "select 1 as one from tributary.kept_credit where account_id = $1 and reference = $2";
  if ((yield* askOne(paid, id, reference)) === null) {
    const restNanos = grant.carryOver ? 0n : least(bigOf(row, "grant_left_nanos"), freeOf(row));
    if (restNanos > 0n)
      yield* move(id, {
        amountNanos: -restNanos,
        kind: "correction",
        note: `rest of the grant before ${begin}`,
      });
    const room = limits.creditNanosMax - bigOf(row, "balance_nanos") + restNanos;
    amountNanos = least(grant.amountNanos, room);
    if (amountNanos > 0n)
      yield* move(id, {
        amountNanos,
        kind: "grant",
        reference,
        note: `grant of the ${grant.every}`,
      });
  }
  yield* ask(
    "update tributary.account set grant_left_nanos = grant_left_nanos + $2, grant_next_ms = $3 where id = $1",
    id,
    amountNanos,
    endMs,
  );
}

function freeOf(row: Parameters<typeof bigOf>[0]): bigint {
  return bigOf(row, "balance_nanos") - bigOf(row, "held_nanos");
}

function least(one: bigint, other: bigint): bigint {
  return one < other ? one : other;
}

function* move(
  accountId: AccountId,
  movement: {
    readonly amountNanos: bigint;
    readonly kind: "grant" | "correction";
    readonly note: string;
    readonly reference?: string;
  },
): Steps<void> {
  const { reference = null, ...rest } = movement;
  const known = { reference, receipt: null };
  yield { type: "move", movement: { accountId, actor: "service", ...rest, known } };
}

function invalid(member: string, words: string): OperatorError {
  const param = `grant.${member}`;
  return new OperatorError("invalid_value", `${param} ${words}`, { param });
}
