/** Traces of requests, where they are on. */
export interface Traces {
  /** Begins the trace of a request, or goes on with the one that its caller sent; null: of this path there is none. */
  begin(request: {
    readonly requestId: string;
    readonly path: string;
    readonly traceparent: string | readonly string[] | undefined;
  }): RequestTrace | null;
}

/** The trace of one request. */
export interface RequestTrace {
  /** A step of the ledger, from now until the promise has settled; the promise is the caller's to await. */
  follow(step: "authorize" | "admit" | "settle", asked: Promise<unknown>): void;
  /** The deployment is asked from now on. */
  ask(asked: { readonly model: string; readonly outputTokensMax: number }): AskedTrace;
}

/** One question to the deployment. */
export interface AskedTrace {
  /** What of the trace goes to the deployment; null: nothing does. */
  readonly traceparent: string | null;
  end(answered: AskedEnding): void;
}

/** How it was answered. Tokens; never a text. */
export interface AskedEnding {
  /** A failure code, or why there is no whole answer; null: there is. */
  readonly errorType: string | null;
  readonly finishReason: string | null;
  readonly firstOutputMs: number | null;
  readonly usage: {
    readonly inputTokens: number;
    readonly cachedInputTokens: number;
    readonly outputTokens: number;
    readonly reasoningTokens: number;
  } | null;
}
