/** What kind of mistake an operator made, for `--json`. */
export type OperatorErrorCode =
  | "not_found"
  | "invalid_value"
  | "not_possible"
  | "ledger_unusable"
  | "idempotency_conflict"
  | "idempotency_in_progress";

/** Something that the operator can put right; the message says what to change. Never sent to a caller. */
export class OperatorError extends Error {
  override readonly name = "OperatorError";
  readonly code: OperatorErrorCode;

  constructor(code: OperatorErrorCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
  }
}
