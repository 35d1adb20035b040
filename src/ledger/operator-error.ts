/** What kind of mistake an operator made, for `--json`. */
export type OperatorErrorCode =
  | "not_found"
  | "invalid_value"
  | "not_possible"
  | "ledger_unusable"
  | "idempotency_conflict"
  | "idempotency_in_progress"
  | "reference_conflict"
  | "version_conflict";

/** Something that the operator can put right; the message says what to change. Never sent to a caller. */
export class OperatorError extends Error {
  override readonly name = "OperatorError";
  readonly code: OperatorErrorCode;
  /** The field at fault, as the API names it; null: none, or more than one. */
  readonly param: string | null;

  constructor(
    code: OperatorErrorCode,
    message: string,
    { cause, param = null }: { readonly cause?: unknown; readonly param?: string | null } = {},
  ) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.param = param;
  }
}
