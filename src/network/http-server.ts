import { chmod, lstat, rm } from "node:fs/promises";
import { createServer, type RequestListener, type Server, type ServerOptions } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { connect, type Socket } from "node:net";
import { Server as TlsServer, type TlsOptions } from "node:tls";
import { limits } from "../limits.ts";
import type { Timers } from "../timers.ts";
import {
  type CertificateFiles,
  type CertificateWatchParts,
  readCertificate,
  watchCertificate,
} from "./certificate.ts";

/** Where a server listens. */
export interface ListenAddress {
  /** A name, an address, or `unix:` and a path. */
  readonly host: string;
  /** Of no meaning where the host is a path. */
  readonly port: number;
  /** null: without TLS. */
  readonly tls: CertificateFiles | null;
}

/** A server that does not listen yet. With TLS its certificate is watched until it is disposed. */
export interface HttpServer extends Disposable {
  readonly server: Server;
}

/** Makes a server of HTTP, under TLS where the address has a certificate. */
export async function openHttpServer(
  { tls }: Pick<ListenAddress, "tls">,
  handle: RequestListener,
  parts: {
    readonly options: ServerOptions & Pick<TlsOptions, "handshakeTimeout">;
    readonly timers: Timers;
    readonly telemetry: CertificateWatchParts["telemetry"];
  },
): Promise<HttpServer> {
  if (tls === null) return { server: createServer(parts.options, handle), [Symbol.dispose]() {} };
  const certificate = await readCertificate(tls);
  const { cert, key } = certificate;
  const handshakeTimeout = limits.tlsHandshakeMs;
  const server = createTlsServer({ handshakeTimeout, ...parts.options, cert, key }, handle);
  // Node gives a handshake that failed or never ends to `clientError`, whose answer waits for the handshake: its place is taken for good.
  server.removeAllListeners("tlsClientError");
  server.on("tlsClientError", (_error, socket) => socket.destroy());
  const watch = watchCertificate(tls, certificate, {
    ...parts,
    use: (found) => server.setSecureContext({ cert: found.cert, key: found.key }),
  });
  return { server, [Symbol.dispose]: () => watch[Symbol.dispose]() };
}

/** Hears of each connection once requests can come on it. */
export function onConnection(server: Server, listener: (socket: Socket) => void): void {
  server.on(server instanceof TlsServer ? "secureConnection" : "connection", listener);
}

/** Listens; rejects when the address cannot be had. */
export async function listenAt(
  server: Server,
  { host, port }: Pick<ListenAddress, "host" | "port">,
): Promise<void> {
  const path = socketPathOf(host);
  if (path === null) return begin(server, { host, port });
  try {
    await begin(server, { path });
  } catch (error) {
    if (!(await isLeftOver(error, path))) throw error;
    await rm(path, { force: true });
    await begin(server, { path });
  }
  // The proxy in front is of another user: whoever shares the group may connect.
  await chmod(path, 0o660);
}

/** The port that a server got; 0 where it listens at a path. */
export function portOf(server: Server): number {
  const address = server.address();
  return typeof address === "object" ? (address?.port ?? 0) : 0;
}

/** The path of `unix:PATH`; null: the host is none. */
export function socketPathOf(host: string): string | null {
  return host.startsWith("unix:") ? host.slice("unix:".length) : null;
}

/** How a server is named: `http://host:port`, `https://host:port`, or `unix:PATH`. */
export function urlOf({ host, port, tls }: ListenAddress): string {
  if (socketPathOf(host) !== null) return host;
  const name = host.includes(":") ? `[${host}]` : host;
  return `${tls === null ? "http" : "https"}://${name}:${String(port)}`;
}

function begin(
  server: Server,
  where: { readonly host: string; readonly port: number } | { readonly path: string },
): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(where, () => {
      server.off("error", reject);
      resolve();
    });
  });
}

/** Whether a socket of a process that died is in the way; any other file stays, and so does one that is listened to. */
async function isLeftOver(error: unknown, path: string): Promise<boolean> {
  if (!(error instanceof Error && "code" in error && error.code === "EADDRINUSE")) return false;
  if (!(await lstat(path)).isSocket()) return false;
  return new Promise((resolve) => {
    const socket = connect(path);
    socket.once("connect", () => {
      socket.destroy();
      resolve(false);
    });
    socket.once("error", ({ code }: NodeJS.ErrnoException) => resolve(code === "ECONNREFUSED"));
  });
}
