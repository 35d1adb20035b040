import { Failure } from "../failure.ts";
import { receiptToJson } from "../ledger/receipt.ts";
import { authorize } from "./authorization.ts";
import { answerJson } from "./answer.ts";
import type { Exchange } from "./exchange.ts";
import type { Service } from "./service.ts";

/** What one request of the caller's own account reserved and was charged. Does not count against the key's rate. */
export async function handleReceipt(
  exchange: Exchange,
  requestId: string,
  service: Service,
): Promise<void> {
  const { caller } = await authorize(exchange, { type: "look" }, service);
  const receipt = await service.ledger.findReceipt(caller.accountId, requestId);
  if (receipt === null)
    throw new Failure(
      "not_found",
      "This account has no receipt of such a request. Only generations that were admitted have one; the id is in the " +
        "x-request-id header of their answers.",
    );
  answerJson(
    exchange,
    { status: 200, headers: { "cache-control": "no-store" } },
    receiptToJson(receipt),
  );
}
