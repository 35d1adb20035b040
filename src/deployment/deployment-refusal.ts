/** The fields of an answer with which a deployment refuses; `words` may quote the prompt: for the log at `debug` only. */
export interface RefusalFields {
  readonly status: number;
  readonly type: string | null;
  readonly code: string | null;
  readonly param: string | null;
  readonly words: string;
}

/** What a deployment said when it refused: the cause of the Failure, for the log alone. */
export class DeploymentRefusal extends Error {
  override readonly name = "DeploymentRefusal";
  readonly fields: RefusalFields;
  /** An output limit, below the one it was given, with which it may take the same request; null: nothing speaks for that. */
  readonly outputTokensFitting: number | null;
  /** The context length that it spoke of. */
  readonly contextTokens: number | null;

  constructor(
    fields: RefusalFields,
    outputTokensFitting: number | null = null,
    contextTokens: number | null = null,
  ) {
    const { status, type, code } = fields;
    super(`the deployment answered ${String(status)} ${type ?? ""} ${code ?? ""}`.trim());
    this.fields = fields;
    this.outputTokensFitting = outputTokensFitting;
    this.contextTokens = contextTokens;
  }
}
