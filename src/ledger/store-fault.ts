/** Whether the same step may succeed later, with nothing changed in the program or in the data. */
export type FaultKind = "busy" | "unavailable" | "bug";

/** The store could not do it: others hold what it needs, it cannot be reached or written, or there is a bug. */
export class StoreFault extends Error {
  override readonly name = "StoreFault";
  readonly kind: FaultKind;

  constructor(kind: FaultKind, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.kind = kind;
  }
}
