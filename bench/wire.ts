// What the mock deployment and the load generator agree on.

/** What a request asks of the mock deployment, as JSON text in its only message. */
export interface MockOrder {
  readonly chunks: number;
  /** Milliseconds between chunks; 0: as fast as they are read. */
  readonly intervalMs: number;
}

/** Nanoseconds of a clock that all processes of this machine share. */
export function stampNanos(): bigint {
  return process.hrtime.bigint();
}

/** How many digits a stamp has in a chunk, so that all chunks have one length. */
export const stampDigits = 19;

/** A stamp between marks that no frame of a gateway cuts or escapes. */
export const stampPattern = /<(\d{19})>/g;
