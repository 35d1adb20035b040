import { formatCredit } from "../admission/price.ts";
import { budgetToJson } from "../ledger/budget.ts";
import { formatHead } from "../ledger/journal.ts";
import { type CallerAccount, pricesToJson, type Receipt } from "../ledger/receipt.ts";
import { limits } from "../limits.ts";
import { authorize } from "./authorization.ts";
import { answerJson } from "./answer.ts";
import type { Exchange } from "./exchange.ts";
import type { Service } from "./service.ts";

/** What the caller's own account has, may and does. Does not count against the key's rate. */
export async function handleAccount(exchange: Exchange, service: Service): Promise<void> {
  const { caller } = await authorize(exchange, { type: "look" }, service);
  const account = await service.ledger.showCaller(caller);
  answerJson(
    exchange,
    { status: 200, headers: { "cache-control": "no-store" } },
    accountToJson(account, caller.rate.remaining),
  );
}

function accountToJson(caller: CallerAccount, requestsRemaining: number): unknown {
  const { id, name, status, balanceNanos, heldNanos } = caller.account;
  const { outputTokensMax } = caller.limits;
  return {
    id,
    name,
    status,
    balance: formatCredit(balanceNanos),
    held: formatCredit(heldNanos),
    available: formatCredit(balanceNanos - heldNanos),
    ...budgetToJson(caller.budget),
    prices: pricesToJson(caller.prices),
    limits: {
      concurrent_requests: caller.limits.concurrentRequests,
      requests_per_minute: caller.limits.requestsPerMinute,
      requests_remaining: requestsRemaining,
      output_allowance_default: Math.min(limits.outputAllowanceDefault, outputTokensMax),
      output_allowance_max: outputTokensMax,
      input_bound_max: limits.inputBoundMax,
    },
    running_requests: caller.running.map(runningToJson),
    head: caller.head === null ? null : formatHead(caller.head),
  };
}

function runningToJson(request: Receipt): unknown {
  return {
    id: request.requestId,
    key: request.keyId,
    format: request.format,
    streamed: request.streamed,
    output_allowance: request.allowance,
    reserved: formatCredit(request.reservedNanos),
    admitted_at: new Date(request.admittedAtMs).toISOString(),
  };
}
