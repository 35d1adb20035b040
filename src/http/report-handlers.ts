import { once } from "node:events";
import { Failure } from "../failure.ts";
import type { ReceiptQuery } from "../ledger/administration/lists.ts";
import { entryToJson } from "../ledger/administration/entry-row.ts";
import type { LedgerForCallers, OfAccount } from "../ledger/ledger.ts";
import type { AccountId } from "../ledger/scalars.ts";
import { OperatorError } from "../ledger/operator-error.ts";
import { receiptToJson } from "../ledger/receipt.ts";
import { type FileType, fileTypeOf, receiptLines } from "../ledger/receipt-file.ts";
import { statementFormOf, statementForms, writeStatement } from "../ledger/statement-text.ts";
import { usageLines, type UsagePrint } from "../ledger/usage/usage-json.ts";
import { authorize } from "./authorization.ts";
import { answerBytes, answerJson } from "./answer.ts";
import type { Exchange } from "./exchange.ts";
import { cursorBehind, type QueryReader, readQuery } from "./read-query.ts";
import type { Service } from "./service.ts";

// What callers read of their own account: the account is that of the key, and no parameter names one. Reports are read
// past the ledger that requests wait for.

const fresh = { status: 200, headers: { "cache-control": "no-store" } } as const;

/** Sums of what the caller's account used. */
export async function handleUsage(exchange: Exchange, service: Service): Promise<void> {
  const { accountId, reports } = await look(exchange, service);
  const names = ["by", "key", "format", "since", "until", "timezone", "limit", "cursor"];
  const query = readQuery(exchange, names);
  const wanted = {
    accountId,
    keyId: query.text("key"),
    format: query.text("format"),
    sinceMs: query.number() ?? query.time("since"),
    untilMs: query.time("until"),
    timezone: query.timezone(),
    by: query.groupings(),
    rowsMax: query.usageRows(),
  };
  const isTable = fileTypeOf(exchange.request.headers.accept) === "text/csv";
  if (isTable) {
    const pieces = usageLines((page: UsagePrint & OfAccount) => reports.printUsageOf(page), wanted);
    await sendFile(exchange, "text/csv", pieces);
    return;
  }
  const { text } = await reports.printUsageOf({ ...wanted, form: "application/json" });
  const headers = { "content-type": "application/json; charset=utf-8", ...fresh.headers };
  answerBytes(exchange, { ...fresh, headers }, text);
}

/** The journal of the caller's account, newest first. */
export async function handleEntries(exchange: Exchange, service: Service): Promise<void> {
  const { accountId, reports } = await look(exchange, service);
  const query = readQuery(exchange, ["limit", "cursor"]);
  const limit = query.rows();
  const rows = await reports.entriesOf({ accountId, before: query.number(), rowsMax: limit + 1 });
  answerJson(exchange, fresh, {
    data: rows.slice(0, limit).map(entryToJson),
    ...nextOf(rows, limit, ({ sequence }) => String(sequence)),
  });
}

const receiptFilters = [
  "key",
  "outcome",
  "format",
  "label",
  "since",
  "until",
  "ended_since",
  "ended_until",
  "charged_at_least",
];

/** Receipts of the caller's account, newest first: a page of them, or all as a file. */
export async function handleReceiptList(exchange: Exchange, service: Service): Promise<void> {
  const { accountId, reports } = await look(exchange, service);
  const query = readQuery(exchange, ["limit", "cursor", ...receiptFilters]);
  const wanted = { ...filtersOf(query), accountId };
  const type = fileTypeOf(exchange.request.headers.accept);
  if (type !== null) {
    const source = {
      pageReceipts: (page: ReceiptQuery) => reports.receiptsOf({ ...page, accountId }),
    };
    await sendFile(
      exchange,
      type,
      receiptLines(source, { accountIds: [accountId], query: wanted }, type),
    );
    return;
  }
  const limit = query.rows();
  const rows = await reports.receiptsOf({
    ...wanted,
    after: query.pageStart(),
    rowsMax: limit + 1,
  });
  const archivedMs = await reports.archivedUntilOf(accountId);
  answerJson(exchange, fresh, {
    data: rows.slice(0, limit).map(receiptToJson),
    ...nextOf(rows, limit, (row) => `${String(row.admittedAtMs)}.${row.requestId}`),
    archived_until: archivedMs === null ? null : new Date(archivedMs).toISOString(),
  });
}

/** What moved the balance of the caller's account in a month, as the operators' API has it. */
export async function handleStatement(
  exchange: Exchange,
  month: string,
  service: Service,
): Promise<void> {
  const { accountId, reports } = await look(exchange, service);
  const asked = readQuery(exchange, ["format"]).choice("format", statementForms);
  const form = asked ?? statementFormOf(exchange.request.headers.accept);
  const statement = await reports.statementOf({ accountId, month }).catch((error: unknown) => {
    throw statementFailure(error, month);
  });
  const { body, headers } = writeStatement(statement, form);
  const head = { status: 200, headers: { ...headers, ...fresh.headers } };
  answerBytes(exchange, head, Buffer.from(body));
}

/** What the ledger tells operators, as callers can act on it. */
function statementFailure(error: unknown, month: string): unknown {
  if (!(error instanceof OperatorError)) return error;
  if (error.code === "invalid_value")
    return new Failure("invalid_request", error.message, { param: "month" });
  return new Failure(
    "not_found",
    `There is no statement of ${month}: its entries are not kept one by one any more. Ask the operator of the service for it.`,
  );
}

function filtersOf(query: QueryReader): Omit<ReceiptQuery, "after" | "rowsMax" | "accountId"> {
  return {
    keyId: query.text("key"),
    state: null,
    outcome: query.text("outcome"),
    format: query.text("format"),
    label: query.text("label"),
    sinceMs: query.time("since"),
    untilMs: query.time("until"),
    endedSinceMs: query.time("ended_since"),
    endedUntilMs: query.time("ended_until"),
    chargedAtLeastNanos: query.nanos("charged_at_least"),
  };
}

async function look(
  exchange: Exchange,
  service: Service,
): Promise<{ readonly accountId: AccountId; readonly reports: LedgerForCallers }> {
  const { caller } = await authorize(exchange, { type: "look" }, service);
  return { accountId: caller.accountId, reports: await service.reports() };
}

function nextOf<Row>(
  rows: readonly Row[],
  limit: number,
  nameOf: (row: Row) => string,
): { readonly next_cursor: string | null } {
  const last = rows.length > limit ? rows[limit - 1] : undefined;
  return { next_cursor: last === undefined ? null : cursorBehind(nameOf(last)) };
}

/** As fast as the caller takes it; a fault on the way breaks the answer off. */
async function sendFile(
  { gone, response }: Exchange,
  type: FileType,
  pieces: AsyncIterable<string | Uint8Array>,
): Promise<void> {
  if (response.headersSent || response.destroyed) return;
  response.writeHead(200, { "content-type": `${type}; charset=utf-8`, ...fresh.headers });
  try {
    for await (const piece of pieces)
      if (!response.write(piece)) await once(response, "drain", { signal: gone });
    response.end();
  } catch {
    response.destroy();
  }
}
