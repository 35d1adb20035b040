import type { UsageSums } from "./measures.ts";

/** What a sum of usage may be over. */
export const usageGroupings = [
  "hour",
  "day",
  "month",
  "account",
  "key",
  "format",
  "label",
] as const;
/** One of `usageGroupings`. Hours are those of UTC, days and months those of the time zone. */
export type UsageGrouping = (typeof usageGroupings)[number];

/** One grouping, or two with a comma between, of which one at most is a time; null: the text is something else. */
export function groupingsOf(text: string): readonly UsageGrouping[] | null {
  const names = text.split(",").map((name) => name.trim());
  const by = usageGroupings.filter((grouping) => names.includes(grouping));
  const times = by.filter((one) => one === "hour" || one === "day" || one === "month");
  return by.length !== names.length || by.length > 2 || times.length > 1 ? null : by;
}

/** Which requests to add up: those that ended in `[sinceMs, untilMs)`; null: without that bound, or of all. */
export interface UsageQuery {
  readonly by: readonly UsageGrouping[];
  readonly accountId: string | null;
  /** Of these accounts alone, where none is named by `accountId`. */
  readonly accountIds?: readonly string[];
  readonly keyId: string | null;
  readonly format: string | null;
  readonly sinceMs: number | null;
  readonly untilMs: number | null;
  /** A name of the IANA database. */
  readonly timezone: string;
  /** Rows of a page at most; absent: `limits.usageRowsMax`. */
  readonly rowsMax?: number;
}

/** A time that sums are over, as far as the query reaches. */
export interface UsageTime {
  readonly beginMs: number;
  readonly endMs: number;
  /** As 2026-01-31T12:00:00Z, 2026-01-31 or 2026-01. */
  readonly name: string;
}

/** What a group's requests have in common, as far as it was asked for. */
export interface UsageGroup {
  readonly time?: UsageTime;
  readonly accountId?: string;
  readonly accountName?: string | null;
  readonly keyId?: string;
  readonly keyName?: string | null;
  readonly format?: string;
  /** null: requests without one. */
  readonly label?: string | null;
}

/** Why a query has no answer, and which parameter to change. */
export const usageProblems = {
  "too many": {
    param: "by",
    message:
      "has more rows for one time than an answer may have. Ask for one account, a shorter time or one grouping.",
  },
  archived: {
    param: "since",
    message:
      "is before receipts were archived. What is kept of that time is by quarters of an hour, of labels by days of UTC: ask for whole ones, and for labels by no hour, key or format, or for later times.",
  },
} as const;
/** The name of one of them. */
export type UsageProblemName = keyof typeof usageProblems;

/** The requests of one group, added up. */
export interface UsageRow extends UsageGroup {
  readonly sums: UsageSums;
}

/** An account whose kept sums do not go to its last entry, and how far they go. */
export interface Unsummed {
  readonly accountId: string;
  readonly after: number;
}
