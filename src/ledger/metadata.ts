import { limits } from "../limits.ts";
import { OperatorError } from "./operator-error.ts";
import type { Metadata } from "./records.ts";
import { isStorable } from "./storable-text.ts";

/** Pairs to set; null takes one away, and null for all of them takes all away. */
export type MetadataPatch = Readonly<Record<string, string | null>> | null;

/** The pairs after a patch; throws an OperatorError where they are too many or too long. */
export function mergeMetadata(before: Metadata, patch: MetadataPatch | undefined): Metadata {
  if (patch === undefined) return before;
  const merged = new Map(patch === null ? [] : Object.entries(before));
  for (const [name, value] of Object.entries(patch ?? {})) {
    if (value === null) merged.delete(name);
    else merged.set(name, value);
  }
  if (merged.size > limits.metadataPairsMax)
    throw wrong(`has ${String(limits.metadataPairsMax)} pairs at most. Take others away first`);
  for (const [name, value] of merged) {
    if (name === "" || name.length > limits.metadataNameCharactersMax)
      throw wrong(`has names of 1 to ${String(limits.metadataNameCharactersMax)} characters`);
    if (value.length > limits.metadataValueCharactersMax)
      throw wrong(`has values of ${String(limits.metadataValueCharactersMax)} characters at most`);
    if (![name, value].every(isStorable))
      throw wrong("has text that can be stored: no zero bytes and no half of a pair");
  }
  // An object made of entries keeps a name such as __proto__ as any other.
  return Object.fromEntries([...merged].toSorted(([one], [other]) => (one < other ? -1 : 1)));
}

function wrong(words: string): OperatorError {
  return new OperatorError("invalid_value", `metadata ${words}.`, { param: "metadata" });
}
