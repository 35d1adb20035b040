import { OperatorError } from "../operator-error.ts";
import { receiptColumns, receiptOf } from "../receipt.ts";
import { idOf, numberOf, type Row, textOrNullOf } from "../row.ts";
import type { RequestId } from "../scalars.ts";
import { audit } from "./audit.ts";
import type { ChangeContext } from "./changed-by.ts";
import { ask, askOne, type Steps } from "./steps.ts";

/**
 * Marks a running request: the process that serves it learns that with its next renewal of leases, ends it and settles it
 * for nothing. Until then it holds its slot and its credit, since it still runs.
 */
export function* cancelGeneration(
  { requestId }: { readonly requestId: string },
  context: ChangeContext,
): Steps<RequestId> {
  const row = yield* askOne(
    `select ${receiptColumns} from tributary.reservation where request_id = $1`,
    requestId,
  );
  if (row === null)
    throw new OperatorError(
      "not_found",
      `There is no request ${requestId} in this ledger. GET /generations lists what runs.`,
      { param: "request_id" },
    );
  const receipt = receiptOf(row);
  const marked = yield* ask(
    `update tributary.reservation set cancelled_by = $2
     where request_id = $1 and state = 'open' and cancelled_by is null returning request_id`,
    requestId,
    context.actor,
  );
  if (marked.length > 0)
    yield* audit(context, {
      action: "generation.cancel",
      target: requestId,
      before: null,
      after: { account: receipt.accountId, key: receipt.keyId },
    });
  else if (receipt.state !== "open")
    throw new OperatorError(
      "not_possible",
      `Request ${requestId} has ended already. Its receipt says how.`,
      { param: "request_id" },
    );
  return receipt.requestId;
}

/** The running requests of all processes, newest first. */
export interface OpenRequests {
  /** Up to as many as were asked for. */
  readonly ids: readonly RequestId[];
  /** Those of them that an operator has cancelled. */
  readonly cancelled: readonly RequestId[];
  /** How many there are in all. */
  readonly count: number;
}

/** Which requests run: their ids alone, so that who looks again and again reads the rest of each once. */
export function* openRequests({ idsMax }: { readonly idsMax: number }): Steps<OpenRequests> {
  const rows = yield* ask(
    `select request_id, cancelled_by from tributary.reservation where state = 'open'
     order by admitted_at_ms desc, request_id desc limit ${String(idsMax)}`,
  );
  const counted = yield* askOne(
    "select count(*) as requests from tributary.reservation where state = 'open'",
  );
  return {
    ids: rows.map(requestIdOf),
    cancelled: rows.filter((row) => textOrNullOf(row, "cancelled_by") !== null).map(requestIdOf),
    count: counted === null ? 0 : numberOf(counted, "requests"),
  };
}

function requestIdOf(row: Row): RequestId {
  return idOf(row, "request_id", "req_");
}

/** The running requests, of all processes, that an operator has cancelled. */
export function* cancelledGenerations(): Steps<readonly RequestId[]> {
  const rows = yield* ask(
    "select request_id from tributary.reservation where state = 'open' and cancelled_by is not null",
  );
  return rows.map(requestIdOf);
}
