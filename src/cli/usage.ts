import { formatCredit, parseCredit } from "../admission/price.ts";
import { csvLine } from "../ledger/csv.ts";
import type { Outcome } from "./command.ts";
import { formatTable } from "./text-table.ts";

type Format = "table" | "csv" | "jsonl";

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
