import { formatCredit } from "../admission/price.ts";
import type { UsageGrouping, UsageRow } from "../ledger/usage-sums.ts";
import { type Command, misuse } from "./command.ts";
import { withLedger } from "./open-ledger.ts";
import { readTime } from "./read-time.ts";
import { formatTable } from "./text-table.ts";

const help = `Tokens and credit of the requests that have ended, added up for each account.

  tributary usage [--account ID] [--since T] [--until T] [--by hour|day|key|format] [--format table|csv|jsonl]

  --since T, --until T   requests that ended from T on, and before T: 2026-01-31, 2026-01-31T12:00:00Z,
                         or a span that ends now, 24h or 7d; times are UTC
  --by                   hour, day (default), key or format
  --format               table (default), csv, or jsonl: one JSON object a row
  --json                 print the rows as one array
`;

const groupings = ["hour", "day", "key", "format"] as const satisfies readonly UsageGrouping[];
const formats = ["table", "csv", "jsonl"] as const;
type Format = (typeof formats)[number];

/** `usage` */
export const usageCommand: Command = {
  help,
  operands: [],
  options: {
    account: { type: "string" },
    since: { type: "string" },
    until: { type: "string" },
    by: { type: "string" },
    format: { type: "string" },
  },
  run: (line, shell) => {
    const { account, since, until } = line.texts;
    const nowMs = Date.now();
    const by = oneOf(groupings, line.texts["by"] ?? "day", "--by");
    const format = oneOf(formats, line.texts["format"] ?? "table", "--format");
    const sinceMs = since === undefined ? null : readTime(since, "--since", nowMs);
    const untilMs = until === undefined ? null : readTime(until, "--until", nowMs);
    if (sinceMs !== null && untilMs !== null && sinceMs >= untilMs)
      throw misuse("--since must be before --until.");
    return withLedger(shell, async (ledger) => {
      const rows = await ledger.sumUsage({ accountId: account ?? null, sinceMs, untilMs, by });
      const json = rows.map((row) => toJson(row, by));
      return { json, text: describe(rows, { by, format, json }) };
    });
  },
};

function oneOf<Name extends string>(names: readonly Name[], text: string, option: string): Name {
  const name = names.find((one) => one === text);
  if (name === undefined)
    throw misuse(`${option} ${JSON.stringify(text)} is none of: ${names.join(", ")}.`);
  return name;
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
