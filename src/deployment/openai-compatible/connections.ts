import { Client, type Dispatcher } from "undici";
import { openConnector } from "./shared-reads.ts";
import type { TlsOptions } from "./tls-files.ts";

/** One connection that carries one request at a time. */
export interface Connection {
  readonly client: Client;
  /** Requests that were begun on the socket that is open now; what a retry depends on. */
  requestsOfSocket: number;
}

/** Connections to one origin. A pool of undici's own would not say whether a request met a used connection. */
export class Connections {
  readonly #origin: string;
  readonly #connectMs: number;
  readonly #tls: () => TlsOptions;
  /** The one used last is used first, so that the others may time out. */
  readonly #idle: Connection[] = [];
  readonly #all = new Set<Connection>();

  constructor(origin: string, connectMs: number, tls: () => TlsOptions = () => ({})) {
    this.#origin = origin;
    this.#connectMs = connectMs;
    this.#tls = tls;
  }

  /** A connection for one request, used before where there is one. */
  take(): Connection {
    return this.#idle.pop() ?? this.takeFresh();
  }

  /** A connection that has carried nothing yet. */
  takeFresh(): Connection {
    const client = new Client(this.#origin, {
      pipelining: 1,
      // Prompts are processed for minutes before the first byte; the generation keeps its own time limits.
      headersTimeout: 0,
      bodyTimeout: 0,
      connect: openConnector(this.#connectMs, this.#tls),
      // Engines close idle connections after 5 s; to be first spares a retry.
      keepAliveTimeout: 4_000,
      keepAliveMaxTimeout: 60_000,
    });
    const connection: Connection = { client, requestsOfSocket: 0 };
    client.on("disconnect", () => {
      connection.requestsOfSocket = 0;
      const index = this.#idle.indexOf(connection);
      if (index === -1) return;
      this.#idle.splice(index, 1);
      this.drop(connection);
    });
    this.#all.add(connection);
    return connection;
  }

  /** After a request that was answered to its end. */
  giveBack(connection: Connection): void {
    if (connection.client.destroyed || connection.client.closed) this.#all.delete(connection);
    else if (connection.requestsOfSocket === 0) this.drop(connection);
    else this.#idle.push(connection);
  }

  /** Ends the connection at once, whatever it carries. */
  drop(connection: Connection): void {
    this.#all.delete(connection);
    void connection.client.destroy().catch(() => undefined);
  }

  async close(): Promise<void> {
    this.#idle.length = 0;
    const clients = [...this.#all].map((connection) => connection.client);
    this.#all.clear();
    await Promise.allSettled(clients.map(async (client) => client.destroy()));
  }
}

/** What undici calls during a request; the members that are used here. */
export type RequestHandler = Required<
  Pick<
    Dispatcher.DispatchHandler,
    "onRequestStart" | "onResponseStart" | "onResponseData" | "onResponseEnd" | "onResponseError"
  >
>;
