import type { IncomingMessage } from "node:http";
import { BlockList, isIP, type Socket } from "node:net";
import { limits } from "../limits.ts";
import { socketPathOf } from "./http-server.ts";

/** Whose word is taken for where a request comes from, and where that stands. */
export interface ClientAddressSettings {
  /** Addresses and networks of proxies, and `unix` for whatever comes over a unix socket. */
  readonly trustedProxies: readonly string[];
  /** The header that those proxies set or append to; another one may have come from their callers. */
  readonly forwardedHeader: "x-forwarded-for" | "forwarded";
  /** Where the requests come to. */
  readonly host: string;
}

/** Tells the address that a request comes from: an IP address, `unix`, or `unknown` where its connection is gone. */
export type ClientAddressOf = (request: IncomingMessage) => string;

/** Whether a text names proxies: an address, a network such as 10.0.0.0/8, or `unix`. */
export function isProxyName(text: string): boolean {
  return text === "unix" || parseNetwork(text) !== null;
}

/**
 * The address of a connection, or, where that is of a trusted proxy, the last one in the header that is none: what stands before it
 * is the word of a stranger. Without trusted proxies no header is looked at.
 */
export function openClientAddresses({
  forwardedHeader,
  host,
  trustedProxies,
}: ClientAddressSettings): ClientAddressOf {
  const isUnixSocket = socketPathOf(host) !== null;
  if (trustedProxies.length === 0) return ({ socket }) => peerOf(socket, isUnixSocket);
  const isTrusted = openTrust(trustedProxies);
  /** Of connections that are kept, and so asked about again and again. */
  const peers = new WeakMap<Socket, { readonly address: string; readonly trusted: boolean }>();
  const read = forwardedHeader === "forwarded" ? forwardedFor : plainAddress;
  return ({ headers, socket }) => {
    let peer = peers.get(socket);
    if (peer === undefined) {
      const address = peerOf(socket, isUnixSocket);
      peer = { address, trusted: isTrusted(address) };
      peers.set(socket, peer);
    }
    const header = peer.trusted ? headers[forwardedHeader] : undefined;
    // Node joins repeated headers of these names with commas.
    return typeof header === "string"
      ? lastUntrusted(header, peer.address, { isTrusted, read })
      : peer.address;
  };
}

/** What shares a fate by address: an IPv4 address, or the /64 network of IPv6 that one machine may take all addresses of. */
export function networkOf(address: string): string {
  if (!address.includes(":")) return address;
  const [left = "", right] = address.split("::");
  const [before, behind] = [groupsOf(left), groupsOf(right ?? "")];
  const between = Array<string>(Math.max(8 - before.length - behind.length, 0)).fill("0");
  return `${[...before, ...(right === undefined ? [] : between), ...behind].slice(0, 4).join(":")}::/64`;
}

function groupsOf(text: string): readonly string[] {
  return text === "" ? [] : text.split(":").map((group) => Number.parseInt(group, 16).toString(16));
}

function peerOf({ remoteAddress }: Socket, isUnixSocket: boolean): string {
  if (remoteAddress === undefined) return isUnixSocket ? "unix" : "unknown";
  return plainAddress(remoteAddress) ?? "unknown";
}

function openTrust(proxies: readonly string[]): (address: string) => boolean {
  const list = new BlockList();
  for (const proxy of proxies) {
    const network = parseNetwork(proxy);
    if (network !== null) list.addSubnet(network.address, network.prefix, network.family);
  }
  const trustsUnix = proxies.includes("unix");
  return (address) => {
    const version = isIP(address);
    if (version === 0) return address === "unix" && trustsUnix;
    return list.check(address, version === 4 ? "ipv4" : "ipv6");
  };
}

function parseNetwork(text: string): {
  readonly address: string;
  readonly prefix: number;
  readonly family: "ipv4" | "ipv6";
} | null {
  const [address = "", bits, ...others] = text.split("/");
  const version = isIP(address);
  const most = version === 4 ? 32 : 128;
  const prefix = bits === undefined ? most : /^\d{1,3}$/.test(bits) ? Number(bits) : -1;
  if (version === 0 || others.length > 0 || prefix < 0 || prefix > most) return null;
  return { address, prefix, family: version === 4 ? "ipv4" : "ipv6" };
}

function lastUntrusted(
  header: string,
  peer: string,
  {
    isTrusted,
    read,
  }: {
    readonly isTrusted: (address: string) => boolean;
    readonly read: (text: string) => string | null;
  },
): string {
  let client = peer;
  let end = header.length;
  for (let hops = 0; hops < limits.forwardedHopsMax; hops += 1) {
    const comma = header.lastIndexOf(",", end - 1);
    const address = read(header.slice(comma + 1, end));
    // A trusted proxy that does not say: what is known is its own address.
    if (address === null) return client;
    client = address;
    if (comma <= 0 || !isTrusted(address)) return client;
    end = comma;
  }
  return client;
}

/** `for=` of an element of RFC 7239. */
function forwardedFor(element: string): string | null {
  const [, value] = /(?:^|;)\s*for\s*=\s*"?([^";]*)/i.exec(element) ?? [];
  return value === undefined ? null : plainAddress(value);
}

/** An address without brackets, port and zone, an IPv4 address as such; null: it is none. */
function plainAddress(text: string): string | null {
  const trimmed = text.trim();
  if (isIP(trimmed) === 4) return trimmed;
  const [, bracketed, withPort] = /^(?:\[([^\]]*)\](?::\d+)?|([\d.]+):\d+)$/.exec(trimmed) ?? [];
  const [address = ""] = (bracketed ?? withPort ?? trimmed).split("%", 1);
  if (isIP(address) === 0) return null;
  const [, mapped] = /^::ffff:([\d.]+)$/i.exec(address) ?? [];
  return mapped ?? address.toLowerCase();
}
