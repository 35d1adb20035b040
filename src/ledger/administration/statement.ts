import { formatHead } from "../journal.ts";
import { OperatorError } from "../operator-error.ts";
import { unknownAccount } from "../operator-input.ts";
import { type Account, accountColumns, accountOf } from "../records.ts";
import { bigOf, bytesOf, numberOf, type Row, textOf, textOrNullOf } from "../row.ts";
import { limits } from "../../limits.ts";
import { ask, askOne, type Steps } from "./steps.ts";

/** What moved the balance of an account in a month of UTC, from its entries alone. */
export interface Statement {
  readonly account: Account;
  /** Such as `2026-10`. */
  readonly month: string;
  readonly openingNanos: bigint;
  readonly closingNanos: bigint;
  readonly sums: StatementSums;
  /** What was not of requests, oldest first: the first of `creditsTotal`. */
  readonly credits: readonly StatementCredit[];
  readonly creditsTotal: number;
  /** Days on which a request ended, oldest first. */
  readonly days: readonly StatementDay[];
  /** Of the last entry before the month's end, as `formatHead` has it; null: there is none. */
  readonly head: string | null;
}

/** What the movements of each sort add up to; `charged` is what requests cost. */
export interface StatementSums {
  readonly topUpsNanos: bigint;
  readonly grantsNanos: bigint;
  readonly refundsNanos: bigint;
  readonly correctionsNanos: bigint;
  readonly chargedNanos: bigint;
}

/** One movement that was not of a request. */
export interface StatementCredit {
  readonly sequence: number;
  readonly atMs: number;
  readonly kind: string;
  readonly amountNanos: bigint;
  readonly reference: string | null;
  readonly receipt: string | null;
  readonly note: string | null;
}

/** The requests that ended on a day, which are 0 where only their number is known. */
export interface StatementDay {
  /** Such as `2026-10-31`. */
  readonly day: string;
  readonly requests: number;
  readonly chargedNanos: bigint;
}

const dayMs = 86_400_000;
const ofRequests = "('reserve', 'settle', 'expire', 'checkpoint')";

/** The statement of a month; of one that goes on, until now. */
export function* readStatement(order: {
  readonly accountId: string;
  readonly month: string;
}): Steps<Statement> {
  const { accountId, month } = order;
  const [fromMs, untilMs] = boundsOf(month);
  const row = yield* askOne(
    `select ${accountColumns} from tributary.account where id = $1`,
    accountId,
  );
  if (row === null) throw unknownAccount(accountId);
  const account = accountOf(row);
  yield* ensureWhole(accountId, month, fromMs);
  const later = yield* askOne(
    `select coalesce(sum(balance_delta_nanos), 0) as moved from tributary.entry
     where account_id = $1 and at_ms >= $2`,
    accountId,
    fromMs,
  );
  const openingNanos = account.balanceNanos - (later === null ? 0n : bigOf(later, "moved"));
  const moved = yield* ask(
    `select at_ms / ${String(dayMs)} as day, kind, count(*) as entries, sum(balance_delta_nanos) as moved
     from tributary.entry where account_id = $1 and at_ms >= $2 and at_ms < $3
     group by at_ms / ${String(dayMs)}, kind order by 1, 2`,
    accountId,
    fromMs,
    untilMs,
  );
  const credits = yield* ask(
    `select sequence, at_ms, kind, balance_delta_nanos, reference, receipt, note from tributary.entry
     where account_id = $1 and at_ms >= $2 and at_ms < $3 and kind not in ${ofRequests}
     order by sequence limit ${String(limits.statementCreditsMax)}`,
    accountId,
    fromMs,
    untilMs,
  );
  const last = yield* askOne(
    `select sequence, hash from tributary.entry where account_id = $1 and at_ms < $2
     order by sequence desc limit 1`,
    accountId,
    untilMs,
  );
  return {
    account,
    month,
    openingNanos,
    closingNanos: moved.reduce((sum, one) => sum + bigOf(one, "moved"), openingNanos),
    sums: sumsOf(moved),
    credits: credits.map(creditOf),
    creditsTotal: moved
      .filter((one) => !ofRequests.includes(`'${textOf(one, "kind")}'`))
      .reduce((sum, one) => sum + numberOf(one, "entries"), 0),
    days: daysOf(moved),
    head:
      last === null
        ? null
        : formatHead({
            accountId: account.id,
            sequence: numberOf(last, "sequence"),
            hash: bytesOf(last, "hash"),
          }),
  };
}

function boundsOf(month: string): readonly [fromMs: number, untilMs: number] {
  const [, year, number] = /^(\d{4})-(0[1-9]|1[0-2])$/.exec(month) ?? [];
  if (year === undefined || number === undefined)
    throw new OperatorError(
      "invalid_value",
      `${JSON.stringify(month)} is no month. Write it as 2026-10.`,
      { param: "month" },
    );
  return [Date.UTC(Number(year), Number(number) - 1), Date.UTC(Number(year), Number(number))];
}

/** A month is whole where an entry from before it is left, or where a checkpoint has taken none. */
function* ensureWhole(accountId: string, month: string, fromMs: number): Steps<void> {
  const first = yield* askOne(
    `select entry.at_ms, entry.sequence from tributary.checkpoint
     join tributary.entry on entry.account_id = checkpoint.account_id and entry.sequence > checkpoint.sequence
     where checkpoint.account_id = $1 order by entry.sequence limit 1`,
    accountId,
  );
  if (first === null || numberOf(first, "at_ms") < fromMs) return;
  throw new OperatorError(
    "not_possible",
    `Entries of ${month} may have been rolled up by a checkpoint (the first that is left is number ${String(numberOf(first, "sequence"))}), so that its statement cannot be made any more. Keep the statements of months that \`tributary checkpoint\` rolls up.`,
  );
}

function sumsOf(moved: readonly Row[]): StatementSums {
  const sumOf = (...kinds: readonly string[]): bigint =>
    moved
      .filter((row) => kinds.includes(textOf(row, "kind")))
      .reduce((sum, row) => sum + bigOf(row, "moved"), 0n);
  return {
    topUpsNanos: sumOf("top_up", "credit", "takeback"),
    grantsNanos: sumOf("grant"),
    refundsNanos: sumOf("refund"),
    correctionsNanos: sumOf("correction"),
    chargedNanos: -sumOf("settle", "expire"),
  };
}

function daysOf(moved: readonly Row[]): readonly StatementDay[] {
  const days = new Map<string, StatementDay>();
  for (const row of moved) {
    if (!["settle", "expire"].includes(textOf(row, "kind"))) continue;
    const day = new Date(numberOf(row, "day") * dayMs).toISOString().slice(0, 10);
    const before = days.get(day) ?? { day, requests: 0, chargedNanos: 0n };
    days.set(day, {
      day,
      requests: before.requests + numberOf(row, "entries"),
      chargedNanos: before.chargedNanos - bigOf(row, "moved"),
    });
  }
  return [...days.values()];
}

function creditOf(row: Row): StatementCredit {
  return {
    sequence: numberOf(row, "sequence"),
    atMs: numberOf(row, "at_ms"),
    kind: textOf(row, "kind"),
    amountNanos: bigOf(row, "balance_delta_nanos"),
    reference: textOrNullOf(row, "reference"),
    receipt: textOrNullOf(row, "receipt"),
    note: textOrNullOf(row, "note"),
  };
}
