import { answerJson, type Exchange } from "./exchange.ts";
import { authorize } from "./generation-handler.ts";
import { readRequestBody } from "./request-body.ts";
import type { Service } from "./service.ts";

/** An estimate of a message's input tokens: no credit, no generation slot, nothing asked of the deployment. */
export async function handleCountTokens(exchange: Exchange, service: Service): Promise<void> {
  const caller = await authorize(exchange, { preferredKey: "x-api-key" }, service);
  const bytes = await readRequestBody(exchange.request, exchange.response);
  const tokens = await service.workers.countTokens({
    type: "count-tokens",
    bytes,
    accountId: caller.accountId,
  });
  answerJson(exchange, { status: 200 }, { input_tokens: tokens });
}
