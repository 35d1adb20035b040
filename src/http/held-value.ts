/** Makes a value at most once in a while, however often it is asked for. */
export function holdValue<Value>(
  make: () => Value,
  parts: { readonly heldMs: number; readonly monotonicMs: () => number },
): () => Value {
  let held: { readonly value: Value; readonly atMs: number } | null = null;
  return () => {
    const nowMs = parts.monotonicMs();
    if (held === null || nowMs - held.atMs >= parts.heldMs) held = { value: make(), atMs: nowMs };
    return held.value;
  };
}
