// What a week of usage is filled with where the sums by day are kept already. Released: never edited, a change is a new number.

const tokens = ["input_tokens", "cached_input_tokens", "output_tokens", "reasoning_tokens"];
const outcomes = [
  "completed",
  "cancelled",
  "cancelled-before-output",
  "refused",
  "failed",
  "cancelled-by-operator",
  "lease-lost",
];
const sums: readonly (readonly [column: string, ofReceipts: string])[] = [
  ["requests", "count(*)"],
  ...tokens.map((column) => [column, `coalesce(sum(receipt.${column}), 0)`] as const),
  ["charged_nanos", "sum(receipt.charged_nanos)"],
  ...outcomes.map(
    (outcome) =>
      [
        outcome.replaceAll("-", "_"),
        `count(*) filter (where receipt.outcome = '${outcome}')`,
      ] as const,
  ),
  ...["first_output", "total"].flatMap((latency) =>
    Array.from({ length: 18 }, (_, bucket) => {
      const ms = `receipt.${latency}_ms`;
      const least = bucket === 0 ? "" : `${ms} >= ${String(16 * 2 ** (bucket - 1))}`;
      const most = bucket === 17 ? "" : `${ms} < ${String(16 * 2 ** bucket)}`;
      const within = [least, most].filter((condition) => condition !== "").join(" and ");
      return [
        `${latency}_${String(bucket)}`,
        `nullif(count(*) filter (where ${within}), 0)`,
      ] as const;
    }),
  ),
];

/** Adds up by week what kept sums cover; the schema's name and a dot stand before tables, where there is one. */
export function fillWeeks(schema: string): string {
  return `insert into ${schema}usage_week (account_id, begin_ms, key_id, format, label, ${sums.map(([column]) => column).join(", ")})
    select receipt.account_id, receipt.resolved_at_ms - receipt.resolved_at_ms % 604800000, receipt.key_id, receipt.format,
      coalesce(receipt.label, ''), ${sums.map(([, ofReceipts]) => ofReceipts).join(", ")}
    from ${schema}usage_progress as progress join ${schema}reservation as receipt on receipt.account_id = progress.account_id
    where receipt.state <> 'open' and receipt.resolved_sequence <= progress.summed_sequence
    group by 1, 2, 3, 4, 5;`;
}
