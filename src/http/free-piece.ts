/** Frees the memory of a piece that nothing else looks at; one that is part of a pool stays. */
export function freePiece({ buffer, byteLength }: Buffer): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength) buffer.transfer(0);
}
