import { getRequestListener } from "@hono/node-server";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { isIP } from "node:net";
import { isTimeZone } from "../ledger/periods.ts";
import type { StoreLedger } from "../ledger/store-ledger.ts";
import { limits } from "../limits.ts";
import type { CertificateTelemetry } from "../network/certificate.ts";
import {
  type ListenAddress,
  listenAt,
  openHttpServer,
  portOf,
  urlOf,
} from "../network/http-server.ts";
import { newId } from "../new-id.ts";
import { quietTimers, type Timers } from "../timers.ts";
import { openOperatorApi, type OperatorApiParts } from "./api.ts";
import { openFailedTries } from "./failed-tries.ts";
import { loginLink } from "./login-link.ts";
import { answerProblem, type Problem, problemOf } from "./problem.ts";

/** The listener for operators, which stays until the process ends. */
export interface OperatorServer extends AsyncDisposable {
  readonly url: string;
  /** A link that signs the first owner in, where the ledger has or had no operator; else null. */
  firstLoginLink(ledger: Pick<StoreLedger, "createFirstOperator">): Promise<string | null>;
}

/** What the listener works with. */
export interface OperatorServerParts extends Pick<
  OperatorApiParts,
  "clientOf" | "ledger" | "onFailure" | "prices" | "privateAddresses" | "service" | "version"
> {
  /** Of live streams; those of the process where they are left out. */
  readonly timers?: Timers;
  /** Metrics in the Prometheus text format. */
  readonly metrics: () => Promise<Uint8Array>;
  /** Hears what becomes of the listener's certificate. */
  readonly telemetry: CertificateTelemetry;
  /** Answers what a browser asks for beside the API: the console, and what its playground generates; false: neither. */
  readonly page: (request: IncomingMessage, response: ServerResponse) => Promise<boolean>;
}

/** Where to listen. */
export interface OperatorAddress extends ListenAddress {
  /** Whether a free port is taken where this one is in use. */
  readonly spare: boolean;
  /** The address by which operators come through a proxy; null: by an address, or by `localhost`. */
  readonly publicUrl: string | null;
}

/**
 * Listens; rejects when the address cannot be had. The API's code is loaded before, since what loads a hundred modules later, with
 * the first request, holds up every stream of the process meanwhile.
 */
export async function listenForOperators(
  address: OperatorAddress,
  parts: OperatorServerParts,
): Promise<OperatorServer> {
  const closing = new AbortController();
  const apiParts: OperatorApiParts = {
    ...parts,
    tries: openFailedTries(() => performance.now()),
    publicUrl: address.publicUrl,
    scheme: address.tls === null ? "http" : "https",
    newId,
    now: Date.now,
    timers: parts.timers ?? quietTimers,
    closing: closing.signal,
  };
  const api = openOperatorApi(apiParts);
  // Hono sorts its routes for the first request, and ICU is read for the first time zone: 20 ms each, in which every stream would wait.
  await api.request("/api/v1/openapi.json");
  isTimeZone("UTC");
  const serveApi = getRequestListener(api.fetch);
  const publicName =
    address.publicUrl === null ? null : (URL.parse(address.publicUrl)?.hostname ?? null);
  const { server, ...opened } = await openHttpServer(
    address,
    (request, response) => {
      handle(request, response).catch((cause: unknown) => {
        const requestId = newId("req_");
        parts.onFailure({ requestId, cause });
        if (response.headersSent) response.destroy();
        else send(response, problemOf(cause), requestId);
      });
    },
    { options: serverOptions, timers: quietTimers, telemetry: parts.telemetry },
  );
  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (!isKnownHost(request.headers.host, publicName)) {
      send(response, refusedHost, newId("req_"));
      return;
    }
    const [path] = (request.url ?? "").split("?", 1);
    if (path === "/healthz") answer(response, "application/json", '{"status":"ok"}');
    else if (path === "/metrics") answer(response, metricsType, await parts.metrics());
    else if (path?.startsWith("/api/v1") === true) await serveApi(request, response);
    else if (!(await parts.page(request, response))) send(response, nothingHere, newId("req_"));
  }
  await listen(server, address).catch((error: unknown) => {
    opened[Symbol.dispose]();
    throw error;
  });
  const url = urlOf({ ...address, port: portOf(server) });
  return {
    url,
    async firstLoginLink(ledger) {
      const code = await ledger.createFirstOperator();
      return code === null ? null : loginLink(address.publicUrl ?? url, code.secret);
    },
    async [Symbol.asyncDispose]() {
      opened[Symbol.dispose]();
      const closed = new Promise((resolve) => server.close(resolve));
      closing.abort();
      server.closeIdleConnections();
      // What was asked last, such as a drain, is still answered.
      const timer = setTimeout(() => server.closeAllConnections(), limits.operatorCloseMs);
      await closed;
      clearTimeout(timer);
    },
  };
}

const serverOptions = {
  headersTimeout: limits.requestReceiveMs,
  requestTimeout: limits.requestReceiveMs,
  // Of Node 5 s: a program that asks again just then is cut off.
  keepAliveTimeout: limits.keepAliveMs,
  noDelay: true,
};

/** Rejects when neither the port nor, where that will do, a free one can be had. */
async function listen(server: Server, address: OperatorAddress): Promise<void> {
  try {
    await listenAt(server, address);
  } catch (error) {
    const isTaken = error instanceof Error && "code" in error && error.code === "EADDRINUSE";
    if (!isTaken || !address.spare) throw error;
    await listenAt(server, { ...address, port: 0 });
  }
}

const metricsType = "text/plain; version=0.0.4; charset=utf-8";

function answer(response: ServerResponse, type: string, body: string | Uint8Array): void {
  response.writeHead(200, { "content-type": type }).end(body);
}

/** A page of another site that a browser was led to by a name of its own must reach nothing here. */
function isKnownHost(header: string | undefined, name: string | null): boolean {
  const host = (header ?? "").replace(/:\d+$/, "").toLowerCase();
  const bare = host.replace(/^\[|\]$/g, "");
  return host === "localhost" || isIP(bare) !== 0 || host === name;
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
