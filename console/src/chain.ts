import type { Entry } from "./api/types.ts";
import { unitsOf } from "./exact.ts";

/** How far a chain of entries was found right, or the entry that it breaks at. */
export type ChainResult =
  | { readonly state: "right"; readonly checked: number }
  | { readonly state: "broken"; readonly sequence: number; readonly why: string };

/** The hash that stands before the first entry of every account. */
export const firstHash = "0".repeat(64);

/** Kinds whose text has a reference and a receipt. */
const newerKinds: ReadonlySet<string> = new Set(["top_up", "grant", "refund", "correction"]);

/**
 * The text of an entry that its hash covers, as docs/ledger.md has it: the service's own code is not asked, since it is
 * the service that is checked.
 */
export function canonicalText(account: string, entry: Entry): string {
  const newer = newerKinds.has(entry.kind);
  return [
    `tributary-entry-${newer ? "2" : "1"}`,
    account,
    String(entry.sequence),
    String(Date.parse(entry.at)),
    entry.kind,
    unitsOf(entry.amount, 9).toString(),
    unitsOf(entry.held_change, 9).toString(),
    entry.actor,
    entry.request ?? "",
    ...(newer ? [entry.reference ?? "", entry.receipt ?? ""] : []),
    entry.note === null ? "" : `=${entry.note}`,
  ].join("\n");
}

/** SHA-256 over the hash before and the canonical text, in hexadecimal digits. */
export async function chainHash(previous: string, text: string): Promise<string> {
  const tail = new TextEncoder().encode(text);
  const bytes = new Uint8Array(32 + tail.length);
  for (let at = 0; at < 32; at += 1)
    bytes[at] = Number.parseInt(previous.slice(at * 2, at * 2 + 2), 16);
  bytes.set(tail, 32);
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Recomputes entries, oldest first, on from the hash of the entry before them. */
export async function checkChain(
  account: string,
  before: string,
  entries: readonly Entry[],
): Promise<ChainResult> {
  let previous = before;
  let expected = entries[0]?.sequence ?? 0;
  for (const entry of entries) {
    if (entry.sequence !== expected)
      return { state: "broken", sequence: expected, why: "the entry is missing" };
    const hash = await chainHash(previous, canonicalText(account, entry));
    if (hash !== entry.hash)
      return { state: "broken", sequence: entry.sequence, why: "its hash is not that of its text" };
    previous = hash;
    expected += 1;
  }
  return { state: "right", checked: entries.length };
}
