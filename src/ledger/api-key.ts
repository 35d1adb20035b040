import { hash, randomBytes } from "node:crypto";
import type { AccountId, KeyId } from "./records.ts";

/** A key as a caller presents it, understood. The secret itself is never kept: only its hash travels on. */
export interface PresentedKey {
  readonly accountId: AccountId;
  readonly keyId: KeyId;
  readonly secretHash: Uint8Array;
}

const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const secretBytes = 32;
// 62^43 is the first power of 62 above 2^256.
const secretCharacters = 43;
const idBytes = 11;
const idCharacters = 15;
const pattern = /^trib_([0-9A-Za-z]{1,32})_([0-9A-Za-z]{1,32})_[0-9A-Za-z]{43}$/;
const patternCharactersMax = 5 + 32 + 1 + 32 + 1 + secretCharacters;

/** The parts of a presented key, or null for a text that cannot be a key: such a text never reaches the store. */
export function parseApiKey(presented: string): PresentedKey | null {
  if (presented.length > patternCharactersMax) return null;
  const match = pattern.exec(presented);
  const [, account, key] = match ?? [];
  if (account === undefined || key === undefined) return null;
  return { accountId: `acct_${account}`, keyId: `key_${key}`, secretHash: hashApiKey(presented) };
}

/** A new key: the whole of it is shown once, the store gets the hash. */
export function newApiKey(
  accountId: AccountId,
  keyId: KeyId,
): { readonly secret: string; readonly secretHash: Uint8Array } {
  const text = base62(randomBytes(secretBytes), secretCharacters);
  const secret = `trib_${accountId.slice("acct_".length)}_${keyId.slice("key_".length)}_${text}`;
  return { secret, secretHash: hashApiKey(secret) };
}

/** A fresh public id: `acct_` or `key_` followed by letters and digits (88 bits). */
export function newLedgerId<Prefix extends "acct_" | "key_">(prefix: Prefix): `${Prefix}${string}` {
  return `${prefix}${base62(randomBytes(idBytes), idCharacters)}`;
}

// SHA-256 without salt or rounds: the secret has 256 bits of its own, and every request pays for this.
function hashApiKey(key: string): Uint8Array {
  return new Uint8Array(hash("sha256", key, "buffer"));
}

function base62(bytes: Uint8Array, characters: number): string {
  let rest = BigInt(`0x${Buffer.from(bytes).toString("hex")}`);
  let text = "";
  while (text.length < characters) {
    text = alphabet.charAt(Number(rest % 62n)) + text;
    rest /= 62n;
  }
  return text;
}
