import { type ClientRequest, request as askPlain, type RequestOptions } from "node:http";
import { request as askTls } from "node:https";
import { socketPathOf } from "./http-server.ts";

/** Where this process listens. */
export interface OwnAddress {
  /** A name, an address, or `unix:` and a path. */
  readonly host: string;
  readonly port: number;
  readonly url: string;
}

/** Begins a request to a listener of this process, over a connection of its own. */
export function askOwnServer(
  { host, port, url }: OwnAddress,
  request: Pick<RequestOptions, "method" | "path" | "headers">,
): ClientRequest {
  const path = socketPathOf(host);
  // Where all addresses are listened to, this machine's own is one.
  const name = ["0.0.0.0", "::"].includes(host) ? "localhost" : host;
  const options = {
    ...request,
    ...(path === null ? { host: name, port } : { socketPath: path }),
    agent: false,
  };
  if (!url.startsWith("https:")) return askPlain(options);
  // The certificate names the service as callers know it. What listens here is this process: it has the port.
  return askTls({ ...options, rejectUnauthorized: false });
}
