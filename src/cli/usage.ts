import { formatCredit, parseCredit } from "../admission/price.ts";
import { csvLine } from "../ledger/csv.ts";
import { isTimeZone } from "../ledger/periods.ts";
import { usageToJson } from "../ledger/usage/usage-json.ts";
import { groupingsOf, type UsageGrouping, usageGroupings } from "../ledger/usage/usage-query.ts";
import { misuse, type Outcome, type Shell } from "./command.ts";
import { ofEachAccount } from "./of-each-account.ts";
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
    return usageOutcome(
      rows.map((row) => usageToJson(row, by)),
      format,
    );
  });
}

function readGroupings(text: string): readonly UsageGrouping[] {
  const by = groupingsOf(text);
  if (by === null)
    throw misuse(
      `--by ${JSON.stringify(text)} is no grouping: write one of ${usageGroupings.join(", ")}, or two of them with a comma between, of which one at most is a time.`,
    );
  return groupingsOf(ofEachAccount(text)) ?? by;
}

type Row = Readonly<Record<string, unknown>>;
type Cell = string | number | null;

/** Rows of usage as the API answers them, one account after another, in the form that was asked for. */
export function usageOutcome(rows: readonly Row[], format: string | undefined): Outcome {
  const json = rows.toSorted((one, other) =>
    compare(String(one["account"]), String(other["account"])),
  );
  const heads = Object.keys(json[0] ?? {});
  const cells = json.map((row) => Object.values(row));
  switch (format as Format) {
    case "jsonl":
      return { json, text: json.map((row) => `${JSON.stringify(row)}\n`).join("") };
    case "csv": {
      const lines = [heads, ...(cells as readonly (readonly Cell[])[])];
      return { json, text: json.length === 0 ? "" : lines.map(csvLine).join("") };
    }
    case "table":
      return {
        json,
        text: json.length === 0 ? "No request has ended in this time.\n" : table(json, heads),
      };
    default:
      return format as never;
  }
}

function compare(one: string, other: string): number {
  return one === other ? 0 : one < other ? -1 : 1;
}

/** The groups and what they used; a file has more columns than fit beside each other. */
function table(rows: readonly Row[], heads: readonly string[]): string {
  const shown = heads.slice(0, heads.indexOf("charged") + 1);
  return formatTable([
    shown.map((head) => head.replaceAll("_", " ").toUpperCase()),
    ...rows.map((row) => shown.map((head) => String((row[head] as Cell) ?? "-"))),
    ...(rows.length > 1 ? [totalOf(rows, shown)] : []),
  ]);
}

function totalOf(rows: readonly Row[], shown: readonly string[]): readonly string[] {
  const from = shown.indexOf("requests");
  return shown.map((head, at) => {
    if (at < from) return at === 0 ? "total" : "";
    if (head !== "charged") return String(rows.reduce((sum, row) => sum + Number(row[head]), 0));
    return formatCredit(
      rows.reduce((sum, { charged }) => sum + (parseCredit(String(charged)) ?? 0n), 0n),
    );
  });
}
