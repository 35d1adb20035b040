import { customAlphabet } from "nanoid";

// In the order of their bytes, so that a number in these digits sorts as it counts.
const letters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/** So many random letters and digits, 5.95 bits each. */
export const randomLetters: (count: number) => string = customAlphabet(letters);

/**
 * A fresh id: `prefix` followed by 24 random letters and digits (142 bits). With a time, in milliseconds since 1970, the
 * first eight of them are that time, so that ids sort by it: rows that are made together are then beside each other in
 * an index, where random ids touch a page each.
 */
export function newId(prefix: string, atMs: number | null = null): string {
  return atMs === null
    ? prefix + randomLetters(24)
    : prefix + timeLetters(atMs) + randomLetters(16);
}

/** Enough until the year 8889. */
function timeLetters(atMs: number): string {
  let text = "";
  for (let rest = atMs; text.length < 8; rest = Math.floor(rest / letters.length))
    text = letters.charAt(rest % letters.length) + text;
  return text;
}
