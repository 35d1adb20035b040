import { formatCredit } from "../admission/price.ts";
import type { PeriodLength } from "./periods.ts";
import type { CreditNanos } from "./scalars.ts";
import { bigOf, numberOf, type Row, textOf } from "./row.ts";

/** How often an account can be granted credit. */
export const grantPeriods = ["day", "week", "month"] as const satisfies readonly PeriodLength[];

/** What an account is granted at the begin of each period. */
export interface Grant {
  readonly amountNanos: CreditNanos;
  readonly every: (typeof grantPeriods)[number];
  /** A name of the IANA database; periods begin with its days. */
  readonly timezone: string;
  /** Whether what is left of a period goes on into the next. */
  readonly carryOver: boolean;
}

/** A grant with when it is due next. */
export interface GrantState extends Grant {
  readonly nextMs: number;
}

/** The columns of an account that `grantOf` reads. */
export const grantColumns =
  "grant_nanos, grant_every, grant_timezone, grant_carry_over, grant_next_ms";

/** What an account is granted, from columns of these names; null: nothing. */
export function grantOf(row: Row): GrantState | null {
  if (row["grant_nanos"] === null) return null;
  return {
    amountNanos: bigOf(row, "grant_nanos"),
    every: textOf(row, "grant_every") as Grant["every"],
    timezone: textOf(row, "grant_timezone"),
    carryOver: numberOf(row, "grant_carry_over") === 1,
    nextMs: numberOf(row, "grant_next_ms"),
  };
}

/** A grant as operators see it. */
export function grantToJson(grant: Grant): {
  readonly amount: string;
  readonly every: Grant["every"];
  readonly timezone: string;
  readonly carry_over: boolean;
} {
  const { amountNanos, carryOver, every, timezone } = grant;
  return { amount: formatCredit(amountNanos), every, timezone, carry_over: carryOver };
}
