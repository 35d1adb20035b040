/** Whether both stores keep this text as it is: PostgreSQL has no U+0000, and half of a surrogate pair has no UTF-8. */
export function isStorable(text: string): boolean {
  return !text.includes("\0") && text.isWellFormed();
}

/** What is wrong with a text that is not storable, behind the name of its place. */
export const unstorableWords =
  "has U+0000 or half of a surrogate pair, which no text may have here";

// Nothing that an operator may send is nested as deep: a schema refuses what is, and the stack holds.
const deepest = 10;

/** The place of a text that is not storable in a value of JSON, with dots between names; null: there is none. */
export function findUnstorable(value: unknown, at: readonly string[] = []): string | null {
  if (typeof value === "string") return isStorable(value) ? null : at.join(".");
  if (typeof value !== "object" || value === null || at.length === deepest) return null;
  for (const [name, member] of Object.entries(value)) {
    if (!isStorable(name)) return at.join(".");
    const found = findUnstorable(member, [...at, name]);
    if (found !== null) return found;
  }
  return null;
}
