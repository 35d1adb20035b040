import { answerJson, type Exchange } from "./exchange.ts";
import { authorize } from "./generation-handler.ts";
import { readRequestBody } from "./request-body.ts";
import type { Service } from "./service.ts";

/**
 * A message's input tokens: as the deployment's own tokenizer counts them where it has one and is quick, else an estimate.
 * No credit and no generation slot.
 */
export async function handleCountTokens(exchange: Exchange, service: Service): Promise<void> {
  const caller = await authorize(exchange, { preferredKey: "x-api-key" }, service);
  const bytes = await readRequestBody(exchange.request, exchange.response);
  const { deployment, workers } = service;
  const { prompt, tokens } = await workers.countTokens({
    type: "count-tokens",
    bytes,
    accountId: caller.accountId,
    recipe: deployment.countTokens === undefined ? null : deployment.recipe(),
  });
  const gone = new AbortController();
  exchange.response.once("close", () => gone.abort());
  const counted = prompt === null ? null : await deployment.countTokens?.(prompt, gone.signal);
  answerJson(exchange, { status: 200 }, { input_tokens: counted ?? tokens });
}
