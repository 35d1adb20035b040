import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import { pipeline } from "node:stream/promises";
import { askOwnServer, type OwnAddress } from "../network/own-server.ts";
import type { PageFiles } from "./page-files.ts";

/** What callers ask, as the operators' listener answers it too: for its playground, with an API key. */
const relayed: ReadonlySet<string> = new Set([
  "POST /v1/chat/completions",
  "POST /v1/responses",
  "POST /v1/messages",
  "POST /v1/messages/count_tokens",
  "GET /v1/models",
]);

/** Answers what browsers ask of the operators' listener beside the API; false: nothing of it was asked. */
export function openOperatorPages(
  page: PageFiles,
  callers: OwnAddress,
): (request: IncomingMessage, response: ServerResponse) => Promise<boolean> {
  return async (request, response) => {
    const [path = ""] = (request.url ?? "").split("?", 1);
    if (relayed.has(`${request.method ?? ""} ${path}`))
      await relayToCallers(request, response, callers);
    else if (page.has(path)) await page.answer(request, response);
    else return false;
    return true;
  };
}

/** Headers that are of one connection, or that say who looks: a cookie of an operator reaches no caller's route. */
const left: ReadonlySet<string> = new Set([
  "connection",
  "cookie",
  "expect",
  "host",
  "keep-alive",
  "origin",
  "referer",
  "transfer-encoding",
  "upgrade",
]);

/** Asks the listener of callers, which answers by the handlers that callers have; a browser that leaves cancels. */
async function relayToCallers(
  request: IncomingMessage,
  response: ServerResponse,
  callers: OwnAddress,
): Promise<void> {
  const upstream = askOwnServer(callers, {
    method: request.method ?? "GET",
    path: request.url ?? "/",
    headers: headersOf(request.headers),
  });
  response.once("close", () => upstream.destroy());
  const answered = new Promise<IncomingMessage>((resolve, reject) => {
    upstream.once("response", resolve);
    upstream.once("error", reject);
  });
  const sent = pipeline(request, upstream).catch(ignore);
  const answer = await answered;
  response.writeHead(answer.statusCode ?? 502, headersOf(answer.headers));
  response.flushHeaders();
  await pipeline(answer, response).catch(ignore);
  await sent;
}

function headersOf(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !left.has(name)));
}

/** Whoever breaks off has ended both halves. */
function ignore(): void {}
