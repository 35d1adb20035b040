import { formatCredit } from "../../admission/price.ts";
import { csvLine } from "../csv.ts";
import { noSums, percentilesOf } from "./measures.ts";
import type { UsageGrouping, UsageQuery, UsageRow } from "./usage-query.ts";

/** A row of usage as the API and commands print it, in the order of a file's columns: no member is an object. */
export function usageToJson(
  row: UsageRow,
  by: readonly UsageGrouping[],
): Readonly<Record<string, string | number | null>> {
  const { sums, time } = row;
  const timed = by.find((one) => one === "hour" || one === "day" || one === "month");
  const first = percentilesOf(sums, "first_output");
  const total = percentilesOf(sums, "total");
  return {
    ...(row.accountId === undefined ? {} : { account: row.accountId }),
    ...(time === undefined || timed === undefined ? {} : { [timed]: time.name }),
    ...(row.keyId === undefined ? {} : { key: row.keyId }),
    ...(row.format === undefined ? {} : { format: row.format }),
    ...(row.label === undefined ? {} : { label: row.label }),
    requests: sums.requests,
    input_tokens: sums.inputTokens,
    cached_input_tokens: sums.cachedInputTokens,
    output_tokens: sums.outputTokens,
    reasoning_tokens: sums.reasoningTokens,
    charged: formatCredit(sums.chargedNanos),
    ...(row.accountName === undefined ? {} : { account_name: row.accountName }),
    ...(row.keyName === undefined ? {} : { key_name: row.keyName }),
    ...(time === undefined
      ? {}
      : {
          begins_at: new Date(time.beginMs).toISOString(),
          ends_at: new Date(time.endMs).toISOString(),
        }),
    completed: sums.outcomes.completed,
    cancelled: sums.outcomes.cancelled,
    cancelled_before_output: sums.outcomes["cancelled-before-output"],
    refused: sums.outcomes.refused,
    failed: sums.outcomes.failed,
    cancelled_by_operator: sums.outcomes["cancelled-by-operator"],
    lease_lost: sums.outcomes["lease-lost"],
    first_output_p50_ms: first?.p50 ?? null,
    first_output_p95_ms: first?.p95 ?? null,
    first_output_p99_ms: first?.p99 ?? null,
    total_p50_ms: total?.p50 ?? null,
    total_p95_ms: total?.p95 ?? null,
    total_p99_ms: total?.p99 ?? null,
  };
}

/** The forms in which usage is answered: an object with its rows, or lines of a table, the names of its columns first. */
export type UsageForm = "application/json" | "text/csv" | "more-csv";

/** A page of usage as text; `more-csv` has no names of columns. A table has the same columns where there are no rows. */
export function usageText(
  { nextMs, rows }: { readonly rows: readonly UsageRow[]; readonly nextMs: number | null },
  by: readonly UsageGrouping[],
  form: UsageForm,
): string {
  if (form !== "application/json") {
    const heads = csvLine(Object.keys(usageToJson(rows[0] ?? emptyRow(by), by)));
    const lines = rows.map((row) => csvLine(Object.values(usageToJson(row, by))));
    return [...(form === "text/csv" ? [heads] : []), ...lines].join("");
  }
  const cursor = nextMs === null ? null : Buffer.from(String(nextMs)).toString("base64url");
  const data = rows.map((row) => JSON.stringify(usageToJson(row, by))).join(",");
  return `{"data":[${data}],"next_cursor":${JSON.stringify(cursor)}}`;
}

/** All pages of a file; each is read when the one before was taken. */
export async function* usageLines<Query extends UsageQuery>(
  print: (query: Query & { readonly form: UsageForm }) => Promise<UsageText>,
  query: Query,
): AsyncGenerator<Uint8Array, void> {
  let form: UsageForm = "text/csv";
  for (let sinceMs = query.sinceMs; ;) {
    const { nextMs, text }: UsageText = await print({ ...query, sinceMs, form });
    yield text;
    if (nextMs === null) return;
    [sinceMs, form] = [nextMs, "more-csv"];
  }
}

/** What to print, and how. */
export type UsagePrint = UsageQuery & { readonly form: UsageForm };

/** A page as it is answered, and where the next one begins; null: it was the last. */
export interface UsageText {
  readonly text: Uint8Array<ArrayBuffer>;
  readonly nextMs: number | null;
}

function emptyRow(by: readonly UsageGrouping[]): UsageRow {
  const isTimed = by.some((one) => one === "hour" || one === "day" || one === "month");
  return {
    sums: noSums(),
    ...(isTimed ? { time: { beginMs: 0, endMs: 0, name: "" } } : {}),
    ...(by.includes("account") ? { accountId: "", accountName: null } : {}),
    ...(by.includes("key") ? { keyId: "", keyName: null } : {}),
    ...(by.includes("format") ? { format: "" } : {}),
    ...(by.includes("label") ? { label: null } : {}),
  };
}
