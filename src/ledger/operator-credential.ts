import { hash } from "node:crypto";
import { randomLetters } from "../new-id.ts";
import type { PresentedToken } from "./administration/operator-administration.ts";

const idCharacters = 15;

/** What operators show: a token of theirs, a session of the console, a code that opens one. */
export type CredentialKind = "token" | "session" | "code";

interface Shape {
  readonly prefix: string;
  readonly secretCharacters: number;
}

const shapes: Readonly<Record<CredentialKind, Shape>> = {
  // 62^43 is the first power of 62 above 2^256.
  token: { prefix: "trop", secretCharacters: 43 },
  session: { prefix: "trse", secretCharacters: 43 },
  // 131 bits, for a quarter of an hour: a link with it fits a line of 80 columns.
  code: { prefix: "trlo", secretCharacters: 22 },
};

/** A new credential, `trop_<id>_<secret>`: the whole of it is shown once, the store gets the hash. */
export function newOperatorCredential(kind: CredentialKind): {
  readonly stored: PresentedToken;
  readonly secret: string;
} {
  const id = randomLetters(idCharacters);
  const { prefix, secretCharacters } = shapes[kind];
  const secret = `${prefix}_${id}_${randomLetters(secretCharacters)}`;
  return { stored: { id, secretHash: hashToken(secret) }, secret };
}

/** The parts of a presented credential, or null for a text that cannot be one: such a text never reaches the store. */
export function parseOperatorCredential(
  kind: CredentialKind,
  presented: string,
): PresentedToken | null {
  const [prefix, id = "", secret = "", ...rest] = presented.split("_", 4);
  const shape = shapes[kind];
  const fits = prefix === shape.prefix && rest.length === 0 && letters.test(id);
  return fits && secret.length === shape.secretCharacters && letters.test(secret)
    ? { id, secretHash: hashToken(presented) }
    : null;
}

const letters = /^[0-9A-Za-z]{1,64}$/;

/** SHA-256 without salt or rounds: the secret has 256 bits of its own. */
function hashToken(token: string): Uint8Array {
  return new Uint8Array(hash("sha256", token, "buffer"));
}
