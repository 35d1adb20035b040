import { customAlphabet } from "nanoid";

/** So many random letters and digits, 5.95 bits each. */
export const randomLetters: (count: number) => string = customAlphabet(
  "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
);

/** A fresh id: `prefix` followed by 24 random letters and digits (142 bits). */
export function newId(prefix: string): string {
  return prefix + randomLetters(24);
}
