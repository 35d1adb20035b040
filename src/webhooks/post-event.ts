import type { LookupAddress } from "node:dns";
import { lookup as lookUp } from "node:dns/promises";
import { type ClientRequest, type IncomingMessage, request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import type { LookupFunction } from "node:net";
import { callbackify } from "node:util";
import { eventToJson } from "../ledger/event-record.ts";
import type { DueDelivery } from "../ledger/webhook.ts";
import { limits } from "../limits.ts";
import type { Timers } from "../timers.ts";
import { isInside, type PrivateAddresses, urlProblem } from "./endpoint-address.ts";
import { signatureHeaders } from "./sign-event.ts";

/** How one try went, for the ledger. */
export interface TryOutcome {
  readonly delivered: boolean;
  readonly statusCode: number | null;
  readonly error: string | null;
}

/** Sends an event to its webhook once. Never rejects; `signal` ends it as a failed try. */
export type PostEvent = (delivery: DueDelivery, signal: AbortSignal) => Promise<TryOutcome>;

/** Looks up all addresses of a name. */
export type ResolveName = (name: string) => Promise<readonly LookupAddress[]>;

/** What sending works with. */
export interface PostParts {
  readonly privateAddresses: PrivateAddresses;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly timers: Timers;
  readonly resolve?: ResolveName;
}

/** Sends events: signed, with 15 seconds for all of it, to addresses that were checked, and following nothing. */
export function openPostEvent(parts: PostParts): PostEvent {
  return async (delivery, signal) => {
    const problem = urlProblem(delivery.url, parts.privateAddresses);
    if (problem !== null) return failed(`the url ${problem}`);
    try {
      return outcomeOf(await send(delivery, signal, parts));
    } catch (error) {
      return failed(wordsOf(error));
    }
  };
}

/** The status of the answer. What is behind 64 KiB of its body is not read. */
function send(
  { event, secrets, url: text }: DueDelivery,
  signal: AbortSignal,
  parts: PostParts,
): Promise<number> {
  const url = new URL(text);
  const body = JSON.stringify(eventToJson(event));
  const headers = {
    "content-type": "application/json",
    "content-length": String(Buffer.byteLength(body)),
    "user-agent": "tributary",
    ...signatureHeaders({ id: event.id, sentAtMs: parts.now(), body }, secrets),
  };
  return new Promise<number>((resolve, reject) => {
    const begin = url.protocol === "https:" ? requestHttps : requestHttp;
    // A connection of its own: one that was kept would go to an address that was checked a while ago.
    const request = begin(url, {
      method: "POST",
      agent: false,
      headers: { ...headers, connection: "close" },
      lookup: checkedLookup(parts),
    });
    const timer = parts.timers.set(() => {
      request.destroy(new Error(`there was no answer within ${seconds(limits.webhookTimeoutMs)}`));
    }, limits.webhookTimeoutMs);
    const stop = (): void => void request.destroy(new Error("the service was stopped meanwhile"));
    signal.addEventListener("abort", stop, { once: true });
    request.once("close", () => {
      parts.timers.clear(timer);
      signal.removeEventListener("abort", stop);
      reject(new Error("the connection ended without an answer"));
    });
    request.once("error", reject);
    request.once("response", (response) => {
      readSome(response, request);
      // The status is all that counts: whoever sends it has the event.
      resolve(response.statusCode ?? 0);
    });
    if (signal.aborted) stop();
    request.end(body);
  });
}

/** Takes an answer in, so that its sender is not cut off, up to a bound. */
function readSome(response: IncomingMessage, request: ClientRequest): void {
  let bytes = 0;
  response.on("data", (chunk: Buffer) => {
    bytes += chunk.byteLength;
    if (bytes > limits.webhookAnswerBytesMax) request.destroy();
  });
  response.on("error", ignore);
}

/**
 * Resolves a name once, and gives the connection the addresses that were checked and no others. One that leads inside
 * spoils all: a name of which some do is made for that.
 */
function checkedLookup({ privateAddresses, resolve = resolveName }: PostParts): LookupFunction {
  const resolveChecked = callbackify(async (name: string) => {
    const [first, ...others] = await resolve(name);
    if (first === undefined) throw new Error("the name has no address");
    const inside = [first, ...others].find(({ address }) => isInside(address));
    if (inside !== undefined && privateAddresses === "refuse") throw refusedAddress(inside.address);
    return [first, ...others] as const;
  });
  return (name, options, callback) => {
    resolveChecked(name, (error, addresses) => {
      // An error comes without addresses, whatever the types say.
      if (error !== null) callback(error, []);
      else if (options.all === true) callback(null, [...addresses]);
      else callback(null, addresses[0].address, addresses[0].family);
    });
  };
}

function refusedAddress(address: string): Error {
  return new Error(
    `the name leads to ${address}, which is of this machine or of a private network; TRIBUTARY_WEBHOOK_PRIVATE=allow lets that be`,
  );
}

function resolveName(name: string): Promise<readonly LookupAddress[]> {
  return lookUp(name, { all: true });
}

function outcomeOf(statusCode: number): TryOutcome {
  if (statusCode >= 200 && statusCode < 300) return { delivered: true, statusCode, error: null };
  const words =
    statusCode >= 300 && statusCode < 400
      ? `answered ${String(statusCode)}: redirects are not followed, set the url to where it leads`
      : `answered ${String(statusCode)}`;
  return { delivered: false, statusCode, error: words };
}

function failed(words: string): TryOutcome {
  const error = words.slice(0, limits.deliveryErrorCharactersMax);
  return { delivered: false, statusCode: null, error };
}

const meanings: Readonly<Record<string, string>> = {
  ENOTFOUND: "the name has no address",
  EAI_AGAIN: "the name could not be looked up",
  ECONNREFUSED: "the connection was refused",
  ECONNRESET: "the connection was ended",
};

function wordsOf(error: unknown): string {
  if (!(error instanceof Error)) return "the request failed";
  const code = "code" in error ? String(error.code) : "";
  return meanings[code] ?? (error.message === "" ? code : error.message);
}

function seconds(ms: number): string {
  return `${String(ms / 1_000)} seconds`;
}

function ignore(): void {}
