import type { Traces } from "./request-trace.ts";

/** What is known of one HTTP request when it has ended. Never a prompt, an answer or a secret. */
export interface RequestFacts {
  readonly requestId: string;
  readonly method: string;
  /** The route's pattern, such as `/v1/models/:id`; "" for no route. */
  readonly route: string;
  /** What was asked for instead of a route, cut, without its query; null: there is a route. */
  readonly path: string | null;
  readonly status: number;
  /** A code of failure.ts, also when it came after the status; null: it went well. */
  readonly failureCode: string | null;
  /** The address that it came from: behind a trusted proxy the one that the proxy names. */
  readonly client: string;
  readonly accountId: string | null;
  readonly keyId: string | null;
  readonly totalMs: number;
  readonly generation: GenerationFacts | null;
}

/** The generation inside a request. Times in milliseconds since admission. */
export interface GenerationFacts {
  readonly format: string;
  readonly streamed: boolean;
  readonly outcome: string;
  readonly allowance: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cachedInputTokens: number;
  readonly chargedNanos: bigint;
  readonly firstOutputMs: number | null;
  /** Between two pieces of the answer, as they came from the deployment; null: there were no two. */
  readonly longestSilenceMs: number | null;
  readonly totalMs: number;
}

/** One function a business event: it writes the log line and moves the metrics together. */
export interface Telemetry {
  /** Absent: there are no traces. */
  readonly traces?: Traces | null;
  requestEnded(facts: RequestFacts): void;
  /** A failure of ours or of the deployment: the cause is for the log alone. */
  failed(facts: {
    readonly requestId: string;
    readonly code: string;
    readonly cause: unknown;
  }): void;
  /** The deployment refused a request: `words` may quote the prompt and appear at `debug` only. */
  deploymentRefused(facts: {
    readonly requestId: string;
    readonly status: number;
    readonly type: string | null;
    readonly code: string | null;
    readonly param: string | null;
    readonly words: string;
  }): void;
  /** A settlement was not committed in time for its terminal frame. */
  settlementLate(facts: { readonly requestId: string }): void;
  /** Leases could not be renewed; their generations were cancelled. */
  leasesLost(facts: { readonly count: number }): void;
  reservationsExpired(facts: { readonly count: number }): void;
  ledgerRetry(facts: { readonly operation: string; readonly cause: unknown }): void;
  /** The ledger cannot be written: `/readyz` fails. One line, until it can be written again. */
  notReady(facts: { readonly reason: string; readonly cause: unknown }): void;
  /** A listener shows this certificate from now on. */
  certificateUsed(facts: { readonly file: string; readonly validTo: string }): void;
  /** A change of the service's own state, such as "listening", "draining", "model loaded". */
  lifecycle(
    event: string,
    fields: Readonly<Record<string, string | number | boolean | null>>,
  ): void;
}
