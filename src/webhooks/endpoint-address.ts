import { BlockList, isIP } from "node:net";

/** Whether addresses of the own machine and of private networks may get events. */
export type PrivateAddresses = "refuse" | "allow";

/** What is wrong with the url of a webhook as it is written, for its operator; null: nothing. What its name leads to is looked at with each delivery. */
export function urlProblem(text: string, privateAddresses: PrivateAddresses): string | null {
  const url = URL.parse(text);
  if (url === null || (url.protocol !== "https:" && url.protocol !== "http:"))
    return "is no address: write it whole, such as https://shop.example/tributary-events";
  if (url.username !== "" || url.password !== "")
    return "has a user name or a password. Leave them out: the signature shows who sends";
  if (privateAddresses === "allow") return null;
  if (url.protocol !== "https:")
    return "is not https, so that others could read what it gets. TRIBUTARY_WEBHOOK_PRIVATE=allow lets http be used in a network of yours";
  if (isInsideName(hostOf(url)))
    return "leads to this machine or into a private network. TRIBUTARY_WEBHOOK_PRIVATE=allow lets that be";
  return null;
}

/** The host without the brackets of an IPv6 address. Numbers in other notations have become dotted ones by the parsing of the url. */
export function hostOf(url: URL): string {
  return url.hostname.replace(/^\[|\]$/g, "");
}

function isInsideName(host: string): boolean {
  if (isIP(host) !== 0) return isInside(host);
  const name = host.replace(/\.$/, "");
  return name === "localhost" || name.endsWith(".localhost") || name === "";
}

/**
 * Whether an IP address is of this machine, of a link, of a private network, or of one with another purpose than being
 * reached from everywhere. What is no address counts as inside.
 */
export function isInside(address: string): boolean {
  const [bare = ""] = address.split("%", 1);
  const kind = isIP(bare);
  if (kind === 4) return insideV4.check(bare, "ipv4");
  if (kind !== 6) return true;
  // Global unicast is one eighth of IPv6; of the rest nothing is reached from everywhere, `::ffff:127.0.0.1` included.
  return !globalV6.check(bare, "ipv6") || insideV6.check(bare, "ipv6");
}

// The registries of IANA for special purposes: RFC 6890 and what came after it.
const insideV4 = blockList("ipv4", [
  "0.0.0.0/8",
  "10.0.0.0/8",
  // Between a provider and its customers (RFC 6598); a cloud has its metadata at 100.100.100.200.
  "100.64.0.0/10",
  "127.0.0.0/8",
  // Of a link; clouds have their metadata at 169.254.169.254.
  "169.254.0.0/16",
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.0.2.0/24",
  "192.88.99.0/24",
  "192.168.0.0/16",
  "198.18.0.0/15",
  "198.51.100.0/24",
  "203.0.113.0/24",
  // Multicast, what is reserved, and broadcast.
  "224.0.0.0/3",
]);
const globalV6 = blockList("ipv6", ["2000::/3"]);
const insideV6 = blockList("ipv6", [
  // Teredo, benchmarks and other protocols.
  "2001::/23",
  "2001:db8::/32",
  // Holds an IPv4 address, which could be any.
  "2002::/16",
  "3fff::/20",
]);

function blockList(kind: "ipv4" | "ipv6", networks: readonly string[]): BlockList {
  const list = new BlockList();
  for (const network of networks) {
    const [address = "", bits = ""] = network.split("/");
    list.addSubnet(address, Number(bits), kind);
  }
  return list;
}
