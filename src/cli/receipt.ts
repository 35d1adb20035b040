import { linesToJson, receiptToJson } from "../ledger/receipt.ts";
import type { Outcome, Shell } from "./command.ts";
import { withLedger } from "./open-ledger.ts";
import { formatTable } from "./text-table.ts";

/** `receipt` */
export function showReceipt(shell: Shell, id: string): Promise<Outcome> {
  return withLedger(shell, async (ledger) => {
    const receipt = await ledger.showReceipt(id);
    const json = receiptToJson(receipt);
    const lines = linesToJson(receipt)?.map(({ amount, item, price, tokens }) => [
      item.replaceAll("_", " "),
      `${String(tokens)} x ${price} per million = ${amount}`,
    ]);
    const sum = lines === undefined ? null : (Object.fromEntries(lines) as unknown);
    return { json, text: formatTable(flatten({ ...json, lines: sum })) };
  });
}

/** One line a value; what is not there is a dash. */
function flatten(json: Readonly<Record<string, unknown>>): readonly (readonly string[])[] {
  return Object.entries(json).flatMap(([name, value]) => {
    const title = name.replaceAll("_", " ");
    if (typeof value === "object" && value !== null)
      return flatten(value as Readonly<Record<string, unknown>>).map(([inner = "", cell = ""]) => [
        name === "usage" ? inner : `${title} ${inner}`,
        cell,
      ]);
    return [
      [title, typeof value === "string" ? value : JSON.stringify(value ?? "-").replaceAll('"', "")],
    ];
  });
}
