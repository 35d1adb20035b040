import { formatCredit } from "../admission/price.ts";
import type { UsageGrouping, UsageRow } from "../ledger/usage-sums.ts";
import { misuse, type Outcome, type Shell } from "./command.ts";
import { withLedger } from "./open-ledger.ts";
import { readTime } from "./read-time.ts";
import { formatTable } from "./text-table.ts";

type Format = "table" | "csv" | "jsonl";

interface UsageOptions {
  readonly account?: string | undefined;
  readonly since?: string | undefined;
  readonly until?: string | undefined;
  readonly by: UsageGrouping;
  readonly format: Format;
}

/** `usage` */
export async function showUsage(
  shell: Shell,
  { account, by, format, since, until }: UsageOptions,
): Promise<Outcome> {
  const nowMs = Date.now();
  const sinceMs = since === undefined ? null : readTime(since, "--since", nowMs);
  const untilMs = until === undefined ? null : readTime(until, "--until", nowMs);
  if (sinceMs !== null && untilMs !== null && sinceMs >= untilMs)
    throw misuse("--since must be before --until.");
  return withLedger(shell, async (ledger) => {
    const rows = await ledger.sumUsage({ accountId: account ?? null, sinceMs, untilMs, by });
    const json = rows.map((row) => toJson(row, by));
    return { json, text: describe(rows, { by, format, json }) };
  });
}

type Json = Readonly<Record<string, string | number>>;

function toJson(row: UsageRow, by: UsageGrouping): Json {
  return {
    account: row.accountId,
    [by]: row.group,
    requests: row.requests,
    input_tokens: row.inputTokens,
    cached_input_tokens: row.cachedInputTokens,
    output_tokens: row.outputTokens,
    reasoning_tokens: row.reasoningTokens,
    charged: formatCredit(row.chargedNanos),
  };
}

function describe(
  rows: readonly UsageRow[],
  parts: { readonly by: UsageGrouping; readonly format: Format; readonly json: readonly Json[] },
): string {
  const { by, format, json } = parts;
  switch (format) {
    case "jsonl":
      return json.map((row) => `${JSON.stringify(row)}\n`).join("");
    case "csv":
      // No value has a comma or a quotation mark: ids, names of formats, times and numbers.
      return [heads(by), ...json.map(cells)].map((row) => `${row.join(",")}\n`).join("");
    case "table":
      if (rows.length === 0) return "No request has ended in this time.\n";
      return formatTable([
        heads(by).map((head) => head.replaceAll("_", " ").toUpperCase()),
        ...json.map(cells),
        ...(rows.length > 1 ? [cells(toJson(total(rows), by))] : []),
      ]);
    default:
      return format satisfies never;
  }
}

function heads(by: UsageGrouping): readonly string[] {
  return Object.keys(toJson(total([]), by));
}

function cells(row: Json): readonly string[] {
  return Object.values(row).map(String);
}

function total(rows: readonly UsageRow[]): UsageRow {
  const sum = (read: (row: UsageRow) => number): number =>
    rows.reduce((all, row) => all + read(row), 0);
  return {
    accountId: "total",
    group: "",
    requests: sum((row) => row.requests),
    inputTokens: sum((row) => row.inputTokens),
    cachedInputTokens: sum((row) => row.cachedInputTokens),
    outputTokens: sum((row) => row.outputTokens),
    reasoningTokens: sum((row) => row.reasoningTokens),
    chargedNanos: rows.reduce((all, row) => all + row.chargedNanos, 0n),
  };
}
