import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { Server as NetServer } from "node:net";
import { Failure } from "../failure.ts";
import { limits } from "../limits.ts";
import type { Exchange } from "./exchange.ts";
import type { Service } from "./service.ts";

/** How a drain goes. */
export interface DrainOrder {
  /** Milliseconds that running generations have. */
  readonly withinMs: number;
  /**
   * `open`: new requests are refused by an answer; `closed`: by a refused connection, upon which a proxy turns to another
   * replica even where it must not repeat a request. Requests on open connections are served then, and end them.
   */
  readonly listener: "open" | "closed";
}

/** What a drain works on. */
export interface DrainParts {
  readonly server: Server;
  readonly service: Service;
  /** The exchanges under way. */
  readonly exchanges: ReadonlySet<Exchange>;
}

type Clock = Pick<Service, "monotonicMs">;

/** Lets what runs finish, then fails and settles the rest. */
export async function drain(order: DrainOrder, parts: DrainParts): Promise<void> {
  const { exchanges, server, service } = parts;
  const { state } = service;
  const isIdle = (): boolean => [...exchanges].every((exchange) => !isBusy(exchange));
  state.leaving = true;
  const endMs = service.monotonicMs() + order.withinMs;
  if (order.listener === "closed") {
    await stopListening(server, service);
    await serveOpenConnections(parts, { endMs, isIdle });
  }
  state.draining = true;
  if (await becomes(isIdle, endMs, service)) return;
  state.closing = true;
  const failure = new Failure(
    "overloaded",
    "The service is shutting down before this answer was complete. Nothing was charged. Try again in a moment.",
    { retryAfterSeconds: 5 },
  );
  for (const generation of state.generations) generation.fail(failure);
  await becomes(isIdle, service.monotonicMs() + limits.drainSettleMs, service);
}

/** Whether a drain waits for an exchange; without a known caller only until its answer is written, as it may never be read. */
function isBusy({ record, response }: Exchange): boolean {
  return record.caller !== null || !response.writableEnded;
}

/**
 * Closes the listener alone: the server's own `close` ends idle connections too, where a proxy may be writing its next
 * request. Connections that the kernel has accepted and Node has not would be reset, with a request that a proxy must not
 * repeat. Node takes one a turn of its event loop: the listener is closed at the end of a turn that brought none, and
 * that was so short that hardly one can have come meanwhile.
 */
async function stopListening(server: Server, { monotonicMs }: Clock): Promise<void> {
  let connections = 0;
  const count = (): void => void (connections += 1);
  server.on("connection", count);
  const untilMs = monotonicMs() + limits.drainListenerMs;
  // The rest of the turn that is under way may have no look at the listener.
  await turn();
  for (let isQuiet = false; !isQuiet && monotonicMs() < untilMs;) {
    const [beganMs, before] = [monotonicMs(), connections];
    await turn();
    isQuiet = connections === before && monotonicMs() - beganMs <= limits.drainListenerTurnMs;
  }
  server.off("connection", count);
  NetServer.prototype.close.call(server);
}

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/**
 * Resolves when all is idle and proxies have used up their open connections, or have had `drainConnectionsMs` for it:
 * since the last answer, whose connection may have become one of them.
 */
async function serveOpenConnections(
  { server, service }: DrainParts,
  until: { readonly endMs: number; readonly isIdle: () => boolean },
): Promise<void> {
  let open = true;
  const look = (): void =>
    void server.getConnections((error, count) => (open = error !== null || count > 0));
  let usedMs = service.monotonicMs();
  const use = (): void => void (usedMs = service.monotonicMs());
  const serve = (_request: IncomingMessage, response: ServerResponse): void => {
    use();
    response.once("close", use);
  };
  server.on("request", serve);
  await becomes(
    () => {
      look();
      if (!until.isIdle()) use();
      const isUnused = service.monotonicMs() - usedMs >= limits.drainConnectionsMs;
      return until.isIdle() && (!open || isUnused);
    },
    until.endMs,
    service,
  );
  server.off("request", serve);
}

async function becomes(condition: () => boolean, endMs: number, service: Clock): Promise<boolean> {
  while (!condition()) {
    if (service.monotonicMs() >= endMs) return false;
    await new Promise((resolve) => setTimeout(resolve, limits.drainPollMs));
  }
  return true;
}
