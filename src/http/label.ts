import { createHash } from "node:crypto";
import { isObject } from "../formats/read-fields.ts";
import { limits } from "../limits.ts";

/** A field of a body that may say for whom a request is. */
export type LabelField = "user" | "safety_identifier" | "metadata.user_id";

// Control and format characters, lone surrogates, separators of lines: what a line of a report cannot show as it is.
const unprintable = /[\p{C}\p{Zl}\p{Zp}]/u;

/** What is kept of a name of an account's user: a long or unprintable one by its hash, as no name is refused; null: an empty one. */
export function labelOf(text: string): string | null {
  const name = text.trim();
  if (name === "") return null;
  // A character has at most two units, so that a long text is not taken apart to be counted.
  const isShort =
    name.length <= 2 * limits.labelCharactersMax &&
    Array.from(name).length <= limits.labelCharactersMax;
  if (isShort && !unprintable.test(name)) return name;
  return `sha256:${createHash("sha256").update(name).digest("hex")}`;
}

/** The label in a header, which Node gives as Latin-1 though most clients send UTF-8. */
export function labelOfHeader(value: string | readonly string[] | undefined): string | null {
  if (typeof value !== "string") return null;
  const bytes = Buffer.from(value, "latin1");
  try {
    return labelOf(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    return labelOf(value);
  }
}

/** The label in the first of these fields that has one. What is no text is left alone, as any field that is not known. */
export function labelOfBody(
  body: Readonly<Record<string, unknown>>,
  fields: readonly LabelField[],
): string | null {
  for (const field of fields) {
    const value = valueOf(body, field);
    const label = typeof value === "string" ? labelOf(value) : null;
    if (label !== null) return label;
  }
  return null;
}

function valueOf(body: Readonly<Record<string, unknown>>, field: LabelField): unknown {
  if (field !== "metadata.user_id") return body[field];
  const { metadata } = body;
  return isObject(metadata) ? metadata["user_id"] : undefined;
}
