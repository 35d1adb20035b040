import { receiptToJson } from "../ledger/receipt.ts";
import { type Command, operand } from "./command.ts";
import { withLedger } from "./open-ledger.ts";
import { formatTable } from "./text-table.ts";

const help = `What one request reserved and was charged, its tokens, how it ended and how long it took.

  tributary receipt REQUEST_ID   the id is in the x-request-id header of every answer, in error bodies and in the log

The last line is the head of the account's journal at this request: \`tributary verify --against HEAD\` proves later
that nothing up to it was changed.

  --json   print the receipt, as GET /receipts/{request id} answers it
`;

/** `receipt` */
export const receiptCommand: Command = {
  help,
  operands: ["REQUEST_ID"],
  options: {},
  run: (line, shell) =>
    withLedger(shell, async (ledger) => {
      const json = receiptToJson(await ledger.showReceipt(operand(line, 0)));
      return { json, text: formatTable(flatten(json)) };
    }),
};

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
