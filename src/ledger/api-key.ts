import { hash } from "node:crypto";
import type { AccountId, KeyId } from "./scalars.ts";

/** A key as a caller presents it, understood. The secret itself is never kept: only its hash travels on. */
export interface PresentedKey {
  readonly accountId: AccountId;
  readonly keyId: KeyId;
  readonly secretHash: Uint8Array;
}

const pattern = /^trib_([0-9A-Za-z]{1,32})_([0-9A-Za-z]{1,32})_[0-9A-Za-z]{43}$/;
const patternCharactersMax = 5 + 32 + 1 + 32 + 1 + 43;

/** The parts of a presented key, or null for a text that cannot be a key: such a text never reaches the store. */
export function parseApiKey(presented: string): PresentedKey | null {
  if (presented.length > patternCharactersMax) return null;
  const match = pattern.exec(presented);
  const [, account, key] = match ?? [];
  if (account === undefined || key === undefined) return null;
  return { accountId: `acct_${account}`, keyId: `key_${key}`, secretHash: hashApiKey(presented) };
}

/** SHA-256 without salt or rounds: the secret has 256 bits of its own, and every request pays for this. */
export function hashApiKey(key: string): Uint8Array {
  return new Uint8Array(hash("sha256", key, "buffer"));
}
