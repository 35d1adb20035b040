import { limits } from "../limits.ts";
import { authorize, withTicketBack } from "./authorization.ts";
import { answerJson } from "./answer.ts";
import type { Exchange } from "./exchange.ts";
import { readRequestBody } from "./request-body.ts";
import type { Service } from "./service.ts";

/**
 * A message's input tokens: as the deployment's own tokenizer counts them where it has one and is quick, else an estimate.
 * No credit and no generation slot.
 */
export async function handleCountTokens(exchange: Exchange, service: Service): Promise<void> {
  const { request, response } = exchange;
  const { caller, entry } = await authorize(exchange, { type: "count-tokens" }, service);
  const { bytes } = await withTicketBack(caller, service, () =>
    readRequestBody(request, response, {
      entry,
      keptBytesMax: limits.bodyBytesMax,
      timers: service.timers,
    }),
  );
  if (bytes === null) throw new Error("a body within the limit was not kept");
  const { deployment, workers } = service;
  const { accountId } = caller;
  const promptSettings = deployment.countTokens === undefined ? null : deployment.promptSettings();
  const { prompt, tokens } = await workers.countTokens(
    { type: "count-tokens", bytes, accountId, promptSettings },
    exchange.gone,
  );
  entry.release();
  const counted = prompt === null ? null : await deployment.countTokens?.(prompt, exchange.gone);
  answerJson(exchange, { status: 200 }, { input_tokens: counted ?? tokens });
}
