import type { IncomingMessage } from "node:http";
import { describe, expect, it } from "vitest";
import {
  type ClientAddressSettings,
  isProxyName,
  networkOf,
  openClientAddresses,
} from "../../src/network/client-address.ts";

const trusted = ["10.0.0.0/8", "192.0.2.9", "fd00::/8"];

function clientOf(
  peer: string | undefined,
  headers: Readonly<Record<string, string>>,
  settings: Partial<ClientAddressSettings> = {},
): string {
  const find = openClientAddresses({
    trustedProxies: trusted,
    forwardedHeader: "x-forwarded-for",
    host: "0.0.0.0",
    ...settings,
  });
  return find({ headers, socket: { remoteAddress: peer } } as unknown as IncomingMessage);
}

describe("the address that a request comes from", () => {
  it.each([
    // What stands before the last address that is of no proxy is the word of a stranger.
    ["10.0.0.1", "203.0.113.7", "203.0.113.7"],
    ["10.0.0.1", "1.1.1.1, 203.0.113.7", "203.0.113.7"],
    ["10.0.0.1", "1.1.1.1, 203.0.113.7, 10.9.9.9,192.0.2.9", "203.0.113.7"],
    ["10.0.0.1", "1.1.1.1,203.0.113.7:4711", "203.0.113.7"],
    ["fd00::1", "1.1.1.1, 2001:DB8::7", "2001:db8::7"],
    ["::ffff:10.0.0.1", "[2001:db8::7]:4711", "2001:db8::7"],
    ["10.0.0.1", "::ffff:203.0.113.7", "203.0.113.7"],
    // All of them are proxies: the first one is the caller.
    ["10.0.0.1", "10.0.0.3, 10.0.0.2", "10.0.0.3"],
    // What cannot be read is not guessed.
    ["10.0.0.1", "203.0.113.7, unknown", "10.0.0.1"],
    ["10.0.0.1", "203.0.113.7, , 10.0.0.2", "10.0.0.2"],
    ["10.0.0.1", "", "10.0.0.1"],
    ["10.0.0.1", ",", "10.0.0.1"],
    ["10.0.0.1", "203.0.113.777", "10.0.0.1"],
    // An address that is not trusted says nothing about another.
    ["203.0.113.1", "10.0.0.2, 1.1.1.1", "203.0.113.1"],
    ["2001:db8::1", "1.1.1.1", "2001:db8::1"],
    [undefined, "1.1.1.1", "unknown"],
  ])("is for a connection of %s with x-forwarded-for %o: %s", (peer, header, expected) => {
    expect(clientOf(peer, { "x-forwarded-for": header })).toBe(expected);
  });

  it.each([
    ["for=203.0.113.7", "203.0.113.7"],
    ['for=1.1.1.1;by=10.0.0.2, proto=https;For="[2001:db8::7]:443";host=a', "2001:db8::7"],
    ["for=203.0.113.7, for=10.0.0.2", "203.0.113.7"],
    ["for=203.0.113.7, for=_hidden", "10.0.0.1"],
    ["for=203.0.113.7, proto=https", "10.0.0.1"],
    // A quote that a caller leaves open changes nothing of what the proxy writes behind it.
    ['for="1.1.1.1, for=203.0.113.7', "203.0.113.7"],
  ])("is with forwarded %o: %s", (header, expected) => {
    const headers = { forwarded: header, "x-forwarded-for": "9.9.9.9" };
    expect(clientOf("10.0.0.1", headers, { forwardedHeader: "forwarded" })).toBe(expected);
    // A proxy that sets one header passes the other on as its caller has written it.
    expect(clientOf("10.0.0.1", { forwarded: header })).toBe("10.0.0.1");
  });

  it("is no further back than 32 proxies, however long a header is", () => {
    const header = Array.from({ length: 3_000 }, (_, index) => `10.1.0.${String(index % 250)}`);
    expect(clientOf("10.0.0.1", { "x-forwarded-for": header.join() })).toBe(header.at(-32));
  });

  it("is the connection's own where no proxy is trusted, of a unix socket only by that word", () => {
    const headers = { "x-forwarded-for": "203.0.113.7" };
    const socket = "unix:/run/callers";
    const none = { trustedProxies: [] };
    expect(clientOf("::ffff:10.0.0.1", headers, none)).toBe("10.0.0.1");
    expect(clientOf("fe80::1%eth0", headers, none)).toBe("fe80::1");
    expect(clientOf(undefined, headers, { ...none, host: socket })).toBe("unix");
    expect(clientOf(undefined, headers, { host: socket })).toBe("unix");
    const unix = { trustedProxies: ["unix"] };
    expect(clientOf(undefined, headers, { ...unix, host: socket })).toBe("203.0.113.7");
    // A TCP connection that is gone has no address either.
    expect(clientOf(undefined, headers, unix)).toBe("unknown");
  });
});

it.each([
  ["203.0.113.7", "203.0.113.7"],
  ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
  ["2001:db8::7", "2001:db8:0:0::/64"],
  ["2001:db8:0:0:8::", "2001:db8:0:0::/64"],
  ["::1", "0:0:0:0::/64"],
  ["unix", "unix"],
])("%s is of %s", (address, network) => {
  expect(networkOf(address)).toBe(network);
});

it.each([
  ["10.0.0.1", true],
  ["10.0.0.0/8", true],
  ["fd00::/8", true],
  ["unix", true],
  ["10.0.0.0/33", false],
  ["10.0.0.0/", false],
  ["10.0.0.0/8/8", false],
  ["proxy.example", false],
  ["", false],
])("%o names proxies: %o", (name, expected) => {
  expect(isProxyName(name)).toBe(expected);
});
