import { measures } from "./measures.ts";

const quarterMs = 900_000;
const dayMs = 86_400_000;
const weekMs = 7 * dayMs;

/** A table of sums: what of the requests that ended within its time is added up in one row. */
export interface SumsTable {
  readonly name: "usage_quarter" | "usage_day" | "usage_label" | "usage_week" | "usage_all";
  readonly spanMs: number;
  /** False: of all accounts together. */
  readonly ofAccount: boolean;
  /** Columns of a row's key beside the account and the begin of its time, and what receipts have there. */
  readonly dimensions: Readonly<Record<string, string>>;
}

const keyAndFormat = { key_id: "receipt.key_id", format: "receipt.format" } as const;
// A label is never empty: the empty one stands for none, as a key's column cannot be null.
const ofLabel = { label: "coalesce(receipt.label, '')" } as const;

/**
 * Quarter hours, because local days begin at quarters of an hour of UTC; days of UTC, because years are many quarters. Labels
 * are many, and so without keys and formats by day, and with them by week, which begins on a Thursday as 1970 did. Accounts
 * are many, too: a question that names none is answered from the quarters of all of them together.
 */
export const sumsTables = {
  quarter: { name: "usage_quarter", spanMs: quarterMs, ofAccount: true, dimensions: keyAndFormat },
  day: { name: "usage_day", spanMs: dayMs, ofAccount: true, dimensions: keyAndFormat },
  label: {
    name: "usage_label",
    spanMs: dayMs,
    ofAccount: true,
    dimensions: ofLabel,
  },
  week: {
    name: "usage_week",
    spanMs: weekMs,
    ofAccount: true,
    dimensions: { ...keyAndFormat, ...ofLabel },
  },
  all: {
    name: "usage_all",
    spanMs: quarterMs,
    ofAccount: false,
    dimensions: { format: "receipt.format" },
  },
} as const satisfies Readonly<Record<string, SumsTable>>;

function beginOf({ spanMs }: SumsTable): string {
  return `receipt.resolved_at_ms - receipt.resolved_at_ms % ${String(spanMs)}`;
}

/** The columns of a row's key. */
export function keyColumnsOf({ dimensions, ofAccount }: SumsTable): readonly string[] {
  return [...(ofAccount ? ["account_id"] : []), "begin_ms", ...Object.keys(dimensions)];
}

/** Adds receipts of one account, $1, to a table: those resolved by its entries after $2, up to $3. */
export function addReceipts(table: SumsTable): string {
  const key = keyColumnsOf(table);
  const ofReceipts = [
    ...(table.ofAccount ? ["receipt.account_id"] : []),
    beginOf(table),
    ...Object.values(table.dimensions),
  ];
  const columns = measures.map(({ column }) => column);
  const added = measures.map(({ column, nullable }) =>
    nullable
      ? `${column} = coalesce(kept.${column} + excluded.${column}, kept.${column}, excluded.${column})`
      : `${column} = kept.${column} + excluded.${column}`,
  );
  return `insert into tributary.${table.name} as kept (${[...key, ...columns].join(", ")})
    select ${[...ofReceipts, ...measures.map(({ ofReceipts: expression }) => expression)].join(", ")}
    from tributary.reservation as receipt where receipt.account_id = $1 and receipt.state <> 'open'
      and receipt.resolved_sequence > $2 and receipt.resolved_sequence <= $3
    group by ${ofReceipts.join(", ")}
    on conflict (${key.join(", ")}) do update set ${added.join(", ")}`;
}
