import { randomBytes } from "node:crypto";

const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const idCharacters = 24;
const poolBytes = 4_096;
// Values from here on would favour the first letters.
const byteEnd = 256 - (256 % alphabet.length);

let pool = new Uint8Array(0);
let next = 0;

/** A fresh id: `prefix` followed by 24 random letters and digits (142 bits). */
export function newId(prefix: string): string {
  let id = prefix;
  for (let length = 0; length < idCharacters;) {
    if (next >= pool.length) {
      pool = randomBytes(poolBytes);
      next = 0;
    }
    const byte = pool[next] ?? byteEnd;
    next += 1;
    if (byte >= byteEnd) continue;
    id += alphabet.charAt(byte % alphabet.length);
    length += 1;
  }
  return id;
}
