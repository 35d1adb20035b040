import { csvLine } from "../ledger/csv.ts";
import { isTimeZone } from "../ledger/periods.ts";
import { addSums, noSums, type UsageSums } from "../ledger/usage/measures.ts";
import { usageToJson } from "../ledger/usage/usage-json.ts";
import {
  groupingsOf,
  type UsageGrouping,
  usageGroupings,
  type UsageRow,
} from "../ledger/usage/usage-query.ts";
import { misuse, type Outcome, type Shell } from "./command.ts";
import { withLedger } from "./open-ledger.ts";
import { readTime } from "./read-time.ts";
import { formatTable } from "./text-table.ts";

type Format = "table" | "csv" | "jsonl";

interface UsageOptions {
  readonly account?: string | undefined;
  readonly key?: string | undefined;
  readonly since?: string | undefined;
  readonly until?: string | undefined;
  readonly timezone: string;
  readonly by: string;
  readonly format: Format;
}

/** `usage` */
export async function showUsage(shell: Shell, options: UsageOptions): Promise<Outcome> {
  const { account, format, key, since, timezone, until } = options;
  const nowMs = Date.now();
  const sinceMs = since === undefined ? null : readTime(since, "--since", nowMs);
  const untilMs = until === undefined ? null : readTime(until, "--until", nowMs);
  if (sinceMs !== null && untilMs !== null && sinceMs >= untilMs)
    throw misuse("--since must be before --until.");
  if (!isTimeZone(timezone))
    throw misuse(`--timezone ${timezone} is no time zone: write it as UTC or Europe/Berlin.`);
  const by = readGroupings(options.by);
  return withLedger(shell, async (ledger) => {
    const rows = await ledger.sumUsage({
      accountId: account ?? null,
      keyId: key ?? null,
      format: null,
      sinceMs,
      untilMs,
      by,
      timezone,
    });
    const ordered = rows.toSorted((one, other) => compare(one.accountId, other.accountId));
    const json = ordered.map((row) => usageToJson(row, by));
    return { json, text: describe(ordered, { by, format, json }) };
  });
}

/** One grouping is of each account, as it always was; two are as they are named. */
function readGroupings(text: string): readonly UsageGrouping[] {
  const by = groupingsOf(text);
  if (by === null)
    throw misuse(
      `--by ${JSON.stringify(text)} is no grouping: write one of ${usageGroupings.join(", ")}, or two of them with a comma between, of which one at most is a time.`,
    );
  const [first, second] = by;
  return second === undefined && first !== undefined && first !== "account"
    ? ["account", first]
    : by;
}

function compare(one = "", other = ""): number {
  return one === other ? 0 : one < other ? -1 : 1;
}

type Json = ReturnType<typeof usageToJson>;

function describe(
  rows: readonly UsageRow[],
  parts: {
    readonly by: readonly UsageGrouping[];
    readonly format: Format;
    readonly json: readonly Json[];
  },
): string {
  const { by, format, json } = parts;
  switch (format) {
    case "jsonl":
      return json.map((row) => `${JSON.stringify(row)}\n`).join("");
    case "csv":
      return json.length === 0
        ? ""
        : [Object.keys(json[0] ?? {}), ...json.map((row) => Object.values(row))]
            .map(csvLine)
            .join("");
    case "table":
      return json.length === 0 ? "No request has ended in this time.\n" : table(rows, by, json);
    default:
      return format satisfies never;
  }
}

/** The groups and what they used; a file has more columns than fit beside each other. */
function table(
  rows: readonly UsageRow[],
  by: readonly UsageGrouping[],
  json: readonly Json[],
): string {
  const last = Object.keys(json[0] ?? {}).indexOf("charged") + 1;
  const cells = (row: Json): readonly string[] =>
    Object.values(row)
      .slice(0, last)
      .map((cell) => (cell === null ? "-" : String(cell)));
  const heads = Object.keys(json[0] ?? {}).slice(0, last);
  const total = rows.reduce((all, { sums }) => addSums(all, sums), noSums());
  return formatTable([
    heads.map((head) => head.replaceAll("_", " ").toUpperCase()),
    ...json.map(cells),
    ...(rows.length > 1 ? [totalOf(total, by.length)] : []),
  ]);
}

function totalOf(sums: UsageSums, groups: number): readonly string[] {
  const cells = Object.values(usageToJson({ sums }, [])).slice(0, 6).map(String);
  return ["total", ...Array.from({ length: groups - 1 }, () => ""), ...cells];
}
