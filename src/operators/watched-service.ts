import type { ReplicaFacts } from "../ledger/administration/replica-administration.ts";
import type { VerifyReport } from "../ledger/verify-journal.ts";

/** The replica whose operators' listener is asked, as it is now. */
export interface WatchedService {
  /** Its id among the replicas, and since when it runs, in milliseconds since 1970. */
  readonly id: string;
  readonly startedAtMs: number;
  facts(): Promise<ReplicaFacts>;
  /** The generations that it serves. */
  running(): Promise<readonly { readonly requestId: string; readonly outputTokens: number }[]>;
  /** What it counts of its requests, since it runs. */
  figures(): Promise<WatchedFigures>;
  /** The requests that it refused or failed last, newest first. */
  refusals(): Promise<readonly WatchedRefusal[]>;
  deployment(): WatchedDeployment;
  settings(): readonly WatchedSetting[];
  /** Learns now what was cancelled, and what was asked of it. */
  look(): void;
  /** Adds up the whole ledger again, in a thread of its own. */
  verify(): Promise<VerifyReport>;
}

/** What a replica counts of its requests, in memory. */
export interface WatchedFigures {
  /** Of all its generations, those under way included. */
  readonly outputTokens: number;
  /** How many requests failed, by the code of the failure. */
  readonly failures: Readonly<Record<string, number>>;
  /** Milliseconds to the first output, of the requests that ended in the last `limits.firstOutputsMs`. */
  readonly firstOutputsMs: readonly number[];
}

/** A request that was refused or failed. */
export interface WatchedRefusal {
  readonly atMs: number;
  readonly requestId: string;
  readonly status: number;
  readonly code: string;
  readonly route: string;
  readonly keyId: string | null;
}

/** Where tokens come from. */
export interface WatchedDeployment {
  readonly kind: "embedded" | "openai-compatible";
  /** Without credentials; null: the embedded engine. */
  readonly url: string | null;
  readonly model: string;
  readonly contextTokens: number | null;
  readonly takesTools: boolean;
}

/** A setting, what it is and where that is from. */
export interface WatchedSetting {
  readonly name: string;
  /** null: it is a secret, or it is not set and has no default. */
  readonly value: string | null;
  readonly source: "environment" | ".env" | "default";
  readonly secret: boolean;
  readonly meaning: string;
  readonly allowed: string;
}
