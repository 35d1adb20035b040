import type { Config } from "../config/config.ts";
import type { DeploymentDescription } from "../deployment/deployment.ts";
import type { EngineNote } from "../deployment/embedded/engine-relay.ts";
import type { FromWriter } from "../ledger/sqlite/channel-line.ts";
import type { ToWorker } from "../ledger/sqlite/thread-messages.ts";
import type { Gateway } from "../gateway.ts";
import type { LogOptions } from "../telemetry/log.ts";
import type { MetricsSnapshot } from "../telemetry/whole-metrics.ts";

/** How a process is to serve. */
export interface ServingOrder {
  /** The number that its lines of the log name. */
  readonly process: number;
  readonly config: Config;
  readonly log: Pick<LogOptions, "format" | "terminal">;
  /** Where the ledger is a SQLite file: what its name begins with by which it says that it lives. */
  readonly family: string | null;
  /** Where the engine is the embedded one. */
  readonly engine: { readonly apiKey: string; readonly notes: readonly EngineNote[] } | null;
}

/** A process that serves has begun to. */
export interface ServingStart {
  readonly address: Gateway["address"];
  readonly first: Gateway["first"];
  readonly description: DeploymentDescription;
}

/** What a process that serves may be asked by the one that started it. */
export interface ServingCalls {
  start(order: ServingOrder): Promise<ServingStart>;
  describe(argument: null): Promise<DeploymentDescription>;
  metrics(argument: null): Promise<MetricsSnapshot>;
  running(argument: null): ReturnType<Gateway["running"]>;
  figures(argument: null): ReturnType<Gateway["figures"]>;
  refusals(argument: null): ReturnType<Gateway["refusals"]>;
  reasons(argument: null): ReturnType<Gateway["reasons"]>;
  lookForCancelled(argument: null): Promise<void>;
  leave(argument: null): Promise<void>;
  drain(argument: null): Promise<void>;
  /** Ends what is still under way, and then the process. */
  end(argument: null): Promise<void>;
  ledger(message: FromWriter): void;
  engine(note: EngineNote): void;
}

/** What the process that started the others may be asked by them. */
export interface StarterCalls {
  log(text: string): void;
  /** Of all processes together. */
  metrics(argument: null): Promise<string>;
  ledger(message: ToWorker): void;
}
