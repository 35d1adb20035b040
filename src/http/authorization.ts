import type { IncomingHttpHeaders } from "node:http";
import { Failure } from "../failure.ts";
import { parseApiKey } from "../ledger/api-key.ts";
import type { Caller } from "../ledger/ledger.ts";
import type { AccountEntry } from "./account-bounds.ts";
import { rateHeaders } from "./answer.ts";
import type { Exchange } from "./exchange.ts";
import { brokenOff } from "./request-body.ts";
import type { GenerationRoute, Service } from "./service.ts";

/** What a route asks of the key. */
export type Purpose =
  | { readonly type: "generation"; readonly preferredKey: GenerationRoute["preferredKey"] }
  | { readonly type: "count-tokens" }
  /** A look at the caller's own account: it counts for no rate, and needs no credit. */
  | { readonly type: "look" };

/** Who calls, and the place that the request has among those of its account until its response is over. */
export interface Authorized {
  readonly caller: Caller;
  readonly entry: AccountEntry;
}

/** The ledger's first step, and the account's bounds; nothing of the body has been read. */
export async function authorize(
  exchange: Exchange,
  purpose: Purpose,
  service: Service,
): Promise<Authorized> {
  if (service.state.draining) throw shuttingDown();
  const key = presentedKey(exchange.request.headers, preferredKey(exchange, purpose));
  if (purpose.type === "look") service.looks.take(key);
  const authorizing = service.wrongKeys.guard({ key, address: exchange.client }, () =>
    service.ledger.authorize(key, purpose.type !== "look", purpose.type === "generation"),
  );
  exchange.trace?.follow("authorize", authorizing);
  let caller: Caller;
  try {
    caller = await authorizing;
  } catch (error) {
    if (error instanceof Failure && error.facts.keyIsKnown === true)
      exchange.record.refused = parseApiKey(key);
    throw error;
  }
  exchange.record.caller = caller;
  // `endMalformed` of server.ts has answered meanwhile.
  if (exchange.response.headersSent) throw brokenOff();
  const headers = rateHeaders(caller.rate, exchange.shape, service.now());
  for (const [name, value] of Object.entries(headers)) exchange.response.setHeader(name, value);
  const entry = await withTicketBack(caller, service, () =>
    Promise.resolve(service.bounds.enter(caller)),
  );
  const leave = (): void => entry[Symbol.dispose]();
  if (exchange.response.closed) leave();
  else exchange.response.once("close", leave);
  return { caller, entry };
}

/** Runs a step, and gives the rate ticket back where it ends in `too_many_concurrent`: no answer 429 counts for the rate. */
export async function withTicketBack<Value>(
  caller: Caller,
  { ledger }: Pick<Service, "ledger">,
  run: () => Promise<Value>,
): Promise<Value> {
  try {
    return await run();
  } catch (error) {
    if (error instanceof Failure && error.code === "too_many_concurrent")
      // A ledger that is away keeps the ticket; the refusal stands.
      await ledger.giveTicketBack(caller).catch(() => undefined);
    throw error;
  }
}

/** The Failure of a request that comes, or is still being sent, while the service ends. */
export function shuttingDown(): Failure {
  return new Failure("overloaded", "The service is shutting down. Try again in a moment.", {
    retryAfterSeconds: 5,
  });
}

function preferredKey(exchange: Exchange, purpose: Purpose): GenerationRoute["preferredKey"] {
  if (purpose.type === "generation") return purpose.preferredKey;
  if (purpose.type === "count-tokens") return "x-api-key";
  return exchange.shape === "messages" ? "x-api-key" : "bearer";
}

/** The key that a caller presents, or "" for none; formats differ in which header wins when both are sent. */
function presentedKey(
  headers: IncomingHttpHeaders,
  preferred: GenerationRoute["preferredKey"],
): string {
  const apiKey = headers["x-api-key"];
  const plain = typeof apiKey === "string" ? apiKey.trim() : "";
  const bearer = /^bearer +(\S+) *$/i.exec(headers.authorization ?? "")?.[1] ?? "";
  return preferred === "x-api-key" ? plain || bearer : bearer || plain;
}
