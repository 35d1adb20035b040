import type { ReceiptQuery } from "./administration/lists.ts";
import { limits } from "../limits.ts";
import { csvLine } from "./csv.ts";
import { type Receipt, receiptToJson } from "./receipt.ts";

/** The forms in which reports are files: a table, or a JSON object a line. */
export type FileType = "text/csv" | "application/jsonl";

/** Which receipts a file has. */
export type FileQuery = Omit<ReceiptQuery, "after" | "rowsMax">;

/** What a file of receipts is read from. */
export interface ReceiptSource {
  pageReceipts(query: ReceiptQuery): Promise<readonly Receipt[]>;
}

const columns = [
  "id",
  "account",
  "key",
  "format",
  "label",
  "streamed",
  "state",
  "outcome",
  "price_list",
  "reserved",
  "charged",
  "input_tokens",
  "cached_input_tokens",
  "output_tokens",
  "reasoning_tokens",
  "admitted_at",
  "resolved_at",
  "first_output_ms",
  "total_ms",
  "head",
] as const;

/** The receipts of one account after another, newest first: a page at a time, so that any number of them takes the same room. */
export async function* receiptLines(
  source: ReceiptSource,
  order: { readonly accountIds: readonly string[]; readonly query: FileQuery },
  type: FileType,
): AsyncGenerator<string, void> {
  if (type === "text/csv") yield csvLine(columns);
  for (const accountId of order.accountIds)
    for (let after: ReceiptQuery["after"] = null; ;) {
      const rowsMax = limits.pageRowsMax;
      const rows = await source.pageReceipts({ ...order.query, accountId, after, rowsMax });
      if (rows.length > 0) yield rows.map((row) => lineOf(row, type)).join("");
      const last = rows.at(-1);
      if (last === undefined || rows.length < rowsMax) break;
      after = { atMs: last.admittedAtMs, id: last.requestId };
    }
}

function lineOf(receipt: Receipt, type: FileType): string {
  const json = receiptToJson(receipt);
  if (type === "application/jsonl") return `${JSON.stringify(json)}\n`;
  const { usage } = receipt;
  const cells: Readonly<Record<string, unknown>> = {
    ...json,
    input_tokens: usage?.inputTokens,
    cached_input_tokens: usage?.cachedInputTokens,
    output_tokens: usage?.outputTokens,
    reasoning_tokens: usage?.reasoningTokens,
  };
  return csvLine(columns.map((column) => cellOf(cells[column])));
}

function cellOf(value: unknown): string | number | null {
  if (typeof value === "string" || typeof value === "number") return value;
  return typeof value === "boolean" ? String(value) : null;
}

/** The form that an `accept` header asks for before JSON; null: JSON. */
export function fileTypeOf(accept: string | undefined): FileType | null {
  const [first = ""] = (accept ?? "").split(",", 1);
  const [name = ""] = first.split(";", 1);
  const type = name.trim().toLowerCase();
  if (type === "text/csv") return type;
  return type === "application/jsonl" || type === "application/x-ndjson"
    ? "application/jsonl"
    : null;
}
