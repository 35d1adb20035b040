import type { Server } from "node:http";
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

/** Lets what runs finish, then fails and settles the rest. */
export async function drain(order: DrainOrder, parts: DrainParts): Promise<void> {
  const { exchanges, server, service } = parts;
  const { state } = service;
  const isIdle = (): boolean => [...exchanges].every((exchange) => !isBusy(exchange));
  state.leaving = true;
  const endMs = service.monotonicMs() + order.withinMs;
  if (order.listener === "closed") {
    await stopListening(server);
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
 * request. The turn of the event loop lets Node take over what the kernel has accepted, which would be reset otherwise.
 */
async function stopListening(server: Server): Promise<void> {
  await new Promise<void>((resolve) => setImmediate(resolve));
  NetServer.prototype.close.call(server);
}

/** Resolves when all is idle and proxies have used up their open connections, or have had `drainConnectionsMs` for it. */
async function serveOpenConnections(
  { server, service }: DrainParts,
  until: { readonly endMs: number; readonly isIdle: () => boolean },
): Promise<void> {
  const usedUpMs = Math.min(service.monotonicMs() + limits.drainConnectionsMs, until.endMs);
  let open = true;
  const look = (): void =>
    void server.getConnections((error, count) => (open = error !== null || count > 0));
  await becomes(
    () => {
      look();
      return until.isIdle() && (!open || service.monotonicMs() >= usedUpMs);
    },
    until.endMs,
    service,
  );
}

async function becomes(
  condition: () => boolean,
  endMs: number,
  service: Pick<Service, "monotonicMs">,
): Promise<boolean> {
  while (!condition()) {
    if (service.monotonicMs() >= endMs) return false;
    await new Promise((resolve) => setTimeout(resolve, limits.drainPollMs));
  }
  return true;
}
