import type { AdmitOrder, Caller, Settlement } from "../../src/ledger/ledger.ts";

let requests = 0;

/** An order for 1,000 tokens of input at most and 100 of output, with a request id of its own. */
export function orderOf(caller: Caller, changes: Partial<AdmitOrder> = {}): AdmitOrder {
  requests += 1;
  return {
    requestId: `req_${String(requests)}`,
    caller,
    inputBound: 1_000,
    outputTokensRequested: 100,
    outputTokensFitting: null,
    format: "messages",
    streamed: true,
    label: null,
    ...changes,
  };
}

/** Its end after 500 tokens of input and 20 of output, or those given. */
export function settlementOf(
  { caller, requestId }: AdmitOrder,
  [inputTokens, outputTokens]: readonly [number, number] = [500, 20],
): Settlement {
  return {
    requestId,
    accountId: caller.accountId,
    outcome: "completed",
    usage: { inputTokens, cachedInputTokens: 0, outputTokens, reasoningTokens: 0 },
    firstOutputMs: 3,
    totalMs: 9,
  };
}
