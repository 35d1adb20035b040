import { randomLetters } from "../new-id.ts";
import { hashApiKey } from "./api-key.ts";
import { keyPrefix } from "./records.ts";
import type { AccountId, KeyId } from "./scalars.ts";

// 62^43 is the first power of 62 above 2^256.
const secretCharacters = 43;
const idCharacters = 15;

/** A new key: the whole of it is shown once, the store gets the hash. */
export function newApiKey(
  accountId: AccountId,
  keyId: KeyId,
): { readonly secret: string; readonly secretHash: Uint8Array } {
  const secret = `${keyPrefix({ accountId, id: keyId })}_${randomLetters(secretCharacters)}`;
  return { secret, secretHash: hashApiKey(secret) };
}

/** A fresh public id: a prefix such as `acct_` followed by letters and digits (89 bits). */
export function newLedgerId<Prefix extends "acct_" | "hook_" | "key_" | "oper_">(
  prefix: Prefix,
): `${Prefix}${string}` {
  return `${prefix}${randomLetters(idCharacters)}`;
}
