import type { IncomingMessage, ServerResponse } from "node:http";
import type { WireFormatName } from "../formats/wire-format.ts";
import type { ServedGeneration } from "../generation/generation-control.ts";
import type { GenerationParts } from "../generation/serve-generation.ts";
import type { Ledger, LedgerForCallers } from "../ledger/ledger.ts";
import type { SealKey } from "../seal/reasoning-seal.ts";
import type { Timers } from "../timers.ts";
import type { ClientAddressOf } from "../network/client-address.ts";
import type { AccountBounds } from "./account-bounds.ts";
import type { TokenBuckets } from "./token-buckets.ts";
import type { LabelField } from "./label.ts";
import type { BodyWorkers } from "./body-workers.ts";
import type { Readiness } from "./readiness.ts";
import type { WrongKeys } from "./wrong-keys.ts";

/** What the handlers work with; made once by gateway.ts. */
export interface Service extends GenerationParts {
  readonly ledger: Ledger & LedgerForCallers;
  /** The ledger that reports are read from: what they read holds up no request. */
  readonly reports: () => Promise<LedgerForCallers>;
  readonly workers: BodyWorkers;
  /** The keys of this moment: a rotation reaches a running service. */
  readonly sealKeys: readonly SealKey[];
  readonly settings: ServiceSettings;
  readonly timers: Timers;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly newId: (prefix: string, atMs?: number) => string;
  /** What /metrics answers, in the Prometheus text format. */
  readonly metrics: () => Promise<Uint8Array>;
  /** Answers what a browser asks for: the page for callers at `/`, and its files. */
  readonly page: (request: IncomingMessage, response: ServerResponse) => Promise<void>;
  readonly readiness: Readiness;
  readonly bounds: AccountBounds;
  readonly looks: TokenBuckets;
  readonly wrongKeys: WrongKeys;
  readonly clientOf: ClientAddressOf;
  readonly state: ServiceState;
}

/** The settings that handlers read. */
export interface ServiceSettings {
  /** Whether /metrics is here; else it says where it is. */
  readonly servesMetrics: boolean;
  readonly legacyAliases: readonly string[];
  readonly keepaliveMs: number;
  readonly generationsMax: number;
  readonly corsOrigins: readonly string[];
  /** Fields of a body that may say for whom a request is, where no header does. */
  readonly labelFrom: readonly LabelField[];
  /** What the kernel may hold of each connection's answers; null: what it sees fit. */
  readonly sendBufferBytes: number | null;
}

/** What changes while the process runs. */
export interface ServiceState {
  /** The process is about to stop: `/readyz` fails, and requests are still served until balancers have seen it. */
  leaving: boolean;
  /** New requests are refused. */
  draining: boolean;
  /** The time of the drain is over: a request whose body is still being read is not admitted any more. */
  closing: boolean;
  /** Generation requests from after authorization until their clients have the answer or are gone. */
  requests: number;
  /** Of these requests, those that hold one of the `generationsMax` places. */
  places: number;
  /** The generations that are being served. */
  readonly generations: Set<ServedGeneration>;
  /** Of the generations that have ended. */
  outputTokens: number;
}

/** The format that a generation route speaks, with the header that wins when a caller presents two keys. */
export interface GenerationRoute {
  readonly format: WireFormatName;
  readonly preferredKey: "x-api-key" | "bearer";
}
