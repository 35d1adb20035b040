/** Raised for a TRIBUTARY_MODEL that names no model; the message says what is allowed. */
export class ModelSettingError extends Error {
  override readonly name = "ModelSettingError";
  readonly variable = "TRIBUTARY_MODEL";
}
