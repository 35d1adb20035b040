import { hash } from "node:crypto";
import { randomLetters } from "../new-id.ts";
import type { NewOperatorToken, PresentedToken } from "./administration/operator-administration.ts";

// 62^43 is the first power of 62 above 2^256.
const secretCharacters = 43;
const idCharacters = 15;

const pattern = /^trop_([0-9A-Za-z]{1,32})_[0-9A-Za-z]{43}$/;
const patternCharactersMax = 5 + 32 + 1 + 43;

/** A new token of an operator, `trop_<id>_<secret>`: the whole of it is shown once, the store gets the hash. */
export function newOperatorToken(expiresAtMs: number | null): {
  readonly token: NewOperatorToken;
  readonly secret: string;
} {
  const id = randomLetters(idCharacters);
  const secret = `trop_${id}_${randomLetters(secretCharacters)}`;
  return { token: { id, secretHash: hashToken(secret), expiresAtMs }, secret };
}

/** The parts of a presented token, or null for a text that cannot be one: such a text never reaches the store. */
export function parseOperatorToken(presented: string): PresentedToken | null {
  if (presented.length > patternCharactersMax) return null;
  const [, id] = pattern.exec(presented) ?? [];
  return id === undefined ? null : { id, secretHash: hashToken(presented) };
}

/** SHA-256 without salt or rounds: the secret has 256 bits of its own. */
function hashToken(token: string): Uint8Array {
  return new Uint8Array(hash("sha256", token, "buffer"));
}
