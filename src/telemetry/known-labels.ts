import { failureKinds } from "../failure.ts";

/** Values that labels take, whatever happens: their series begin at 0, as the first event would else be hidden from rate(). */
export const knownLabels = {
  code: Object.keys(failureKinds),
  format: ["chat-completions", "responses", "messages"],
  streamed: ["false", "true"],
  outcome: ["completed", "cancelled", "cancelled-before-output", "refused", "failed", "lease-lost"],
  operation: ["settle", "renew", "expire"],
  /** What engines refuse with. */
  refusalStatus: ["400", "401", "403", "404", "413", "422", "429"],
} as const satisfies Record<string, readonly string[]>;

/** Every combination of a value from each list. */
export function combineLabels(
  ...lists: readonly (readonly string[])[]
): readonly (readonly string[])[] {
  return lists.reduce<readonly (readonly string[])[]>(
    (combined, values) => combined.flatMap((row) => values.map((value) => [...row, value])),
    [[]],
  );
}
