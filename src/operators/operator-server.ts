import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { type AddressInfo, isIP } from "node:net";
import type { StoreLedger } from "../ledger/store-ledger.ts";
import { limits } from "../limits.ts";
import { newId } from "../new-id.ts";
import type { OperatorApiParts } from "./api.ts";
import { openFailedTries } from "./failed-tries.ts";
import { answerProblem, type Problem, problemOf } from "./problem.ts";

/** The listener for operators, which stays until the process ends. */
export interface OperatorServer extends AsyncDisposable {
  readonly url: string;
}

/** What the listener works with. */
export interface OperatorServerParts extends Pick<OperatorApiParts, "onFailure" | "version"> {
  /** Opens the ledger, with the first request to the API: it is not the one that requests wait for. */
  readonly openLedger: () => Promise<StoreLedger>;
  /** Metrics in the Prometheus text format. */
  readonly metrics: () => Promise<Uint8Array>;
}

/** Where to listen. */
export interface OperatorAddress {
  readonly host: string;
  readonly port: number;
  /** Whether a free port is taken where this one is in use. */
  readonly spare: boolean;
  /** Hosts beside addresses and `localhost` by which operators may come. */
  readonly names: readonly string[];
}

/** Listens; rejects when the address cannot be had. The API's code is loaded with its first request. */
export async function listenForOperators(
  address: OperatorAddress,
  parts: OperatorServerParts,
): Promise<OperatorServer> {
  let api: Promise<ApiListener> | null = null;
  let ledger: Promise<StoreLedger> | null = null;
  const apiParts: OperatorApiParts = {
    ...parts,
    ledger: () => (ledger ??= openOnce()),
    tries: openFailedTries(() => performance.now()),
    newId,
    now: Date.now,
  };
  async function openOnce(): Promise<StoreLedger> {
    try {
      return await parts.openLedger();
    } catch (error) {
      // The next request tries again.
      ledger = null;
      throw error;
    }
  }
  const server = createServer(
    {
      headersTimeout: limits.requestReceiveMs,
      requestTimeout: limits.requestReceiveMs,
      noDelay: true,
    },
    (request, response) => {
      handle(request, response).catch((cause: unknown) => {
        const requestId = newId("req_");
        parts.onFailure({ requestId, cause });
        if (response.headersSent) response.destroy();
        else send(response, problemOf(cause), requestId);
      });
    },
  );
  async function serveApi(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const listener = await (api ??= loadApi(apiParts));
    await listener(request, response);
  }
  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (!isKnownHost(request.headers.host, address.names)) {
      send(response, refusedHost, newId("req_"));
      return;
    }
    const [path] = (request.url ?? "").split("?", 1);
    if (path === "/healthz") answer(response, "application/json", '{"status":"ok"}');
    else if (path === "/metrics") answer(response, metricsType, await parts.metrics());
    else if (path?.startsWith("/api/v1") === true) await serveApi(request, response);
    else send(response, nothingHere, newId("req_"));
  }
  await listen(server, address);
  const { port } = server.address() as AddressInfo;
  const { host } = address;
  return {
    url: `http://${host.includes(":") ? `[${host}]` : host}:${String(port)}`,
    async [Symbol.asyncDispose]() {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
      await ledger?.then((opened) => opened[Symbol.asyncDispose](), ignore);
    },
  };
}

/** Rejects when neither the port nor, where that will do, a free one can be had. */
async function listen(server: Server, address: OperatorAddress): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const tryPort = (port: number): void => void server.listen(port, address.host, resolve);
    server.once("error", (error: NodeJS.ErrnoException) => {
      if (error.code !== "EADDRINUSE" || !address.spare) {
        reject(error);
        return;
      }
      server.once("error", reject);
      tryPort(0);
    });
    tryPort(address.port);
  });
  server.removeAllListeners("error");
}

type ApiListener = (request: IncomingMessage, response: ServerResponse) => Promise<void>;

function ignore(): void {}

async function loadApi(parts: OperatorApiParts): Promise<ApiListener> {
  const [{ getRequestListener }, { openOperatorApi }] = await Promise.all([
    import("@hono/node-server"),
    import("./api.ts"),
  ]);
  const app = openOperatorApi(parts);
  return getRequestListener(app.fetch);
}

const metricsType = "text/plain; version=0.0.4; charset=utf-8";

function answer(response: ServerResponse, type: string, body: string | Uint8Array): void {
  response.writeHead(200, { "content-type": type }).end(body);
}

/** A page of another site that a browser was led to by a name of its own must reach nothing here. */
function isKnownHost(header: string | undefined, names: readonly string[]): boolean {
  const host = (header ?? "").replace(/:\d+$/, "").toLowerCase();
  const bare = host.replace(/^\[|\]$/g, "");
  return host === "localhost" || isIP(bare) !== 0 || names.includes(host);
}

const refusedHost: Problem = {
  status: 403,
  code: "host_refused",
  detail:
    "The operators' listener is asked by an address, by localhost, or by the name in TRIBUTARY_OPERATOR_URL. Set that variable to the address by which operators come.",
};

const nothingHere: Problem = {
  status: 404,
  code: "not_found",
  detail:
    "There is nothing here. /api/v1/openapi.json lists what operators can ask; /metrics has metrics.",
};

function send(response: ServerResponse, problem: Problem, requestId: string): void {
  const made = answerProblem(problem, requestId);
  response.writeHead(made.status, Object.fromEntries(made.headers));
  void made.text().then((text) => response.end(text));
}
