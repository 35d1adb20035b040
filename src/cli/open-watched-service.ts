import { hostname } from "node:os";
import { Worker } from "node:worker_threads";
import type { Config } from "../config/config.ts";
import type { Gateway } from "../gateway.ts";
import type { ReplicaFacts } from "../ledger/administration/replica-administration.ts";
import type { StoreLedger } from "../ledger/store-ledger.ts";
import type { VerifyReport } from "../ledger/verify-journal.ts";
import { limits } from "../limits.ts";
import { randomLetters } from "../new-id.ts";
import type { WatchedService } from "../operators/watched-service.ts";
import type { Timers } from "../timers.ts";
import { entryUrl } from "../worker-url.ts";
import type { Shell } from "./command.ts";
import { hashSettings, showSettings } from "./shown-settings.ts";
import { version } from "./version.ts";

/** What a replica that watches itself works with. */
export interface WatchedServiceParts {
  readonly config: Config;
  readonly shell: Pick<Shell, "environment" | "isFromFile">;
  readonly gateway: Pick<
    Gateway,
    "describe" | "figures" | "lookForCancelled" | "reasons" | "refusals" | "running"
  >;
  readonly ledger: () => Promise<Pick<StoreLedger, "reportReplica" | "forgetReplica">>;
  /** Begins to drain, as SIGTERM does. */
  readonly stop: () => void;
  readonly timers: Timers;
}

/** The service as operators see it. Until it is disposed it says again and again, to all replicas, that it lives. */
export interface OpenWatchedService extends WatchedService, AsyncDisposable {
  /** What it says from now on of where operators reach it, and of whether it drains. */
  tell(what: Partial<Pick<ReplicaFacts, "operators" | "draining">>): void;
}

/** Begins to say that the service lives. */
export function openWatchedService(parts: WatchedServiceParts): OpenWatchedService {
  const { config, gateway, ledger, timers } = parts;
  const id = randomLetters(15);
  const settings = showSettings(parts.shell);
  const hashes = hashSettings(settings);
  let said: Pick<ReplicaFacts, "operators" | "draining"> = { operators: null, draining: false };

  const facts = async (): Promise<ReplicaFacts> => {
    const [running, reasons] = await Promise.all([gateway.running(), gateway.reasons()]);
    return {
      version,
      host: hostname(),
      processId: process.pid,
      ...said,
      running: running.length,
      reasons,
      settings: hashes,
    };
  };
  const reporter = openReporter(async () => {
    const { drainAskedBy } = await (await ledger()).reportReplica(id, await facts());
    if (drainAskedBy !== null) parts.stop();
  }, timers);
  return {
    id,
    startedAtMs: Date.now(),
    facts,
    running: () => gateway.running(),
    figures: () => gateway.figures(),
    refusals: () => gateway.refusals(),
    deployment: () => describeDeployment(config, gateway),
    settings: () => settings,
    look() {
      gateway.lookForCancelled();
      reporter.report();
    },
    verify: () => verifyInThread(config),
    tell(what) {
      said = { ...said, ...what };
      reporter.report();
    },
    async [Symbol.asyncDispose]() {
      await reporter[Symbol.asyncDispose]();
      await ledger()
        .then((opened) => opened.forgetReplica(id))
        .catch(ignore);
    },
  };
}

/** Reports now and every `limits.replicaReportMs`, one report at a time. */
function openReporter(
  send: () => Promise<void>,
  timers: Timers,
): AsyncDisposable & { report(): void } {
  let closed = false;
  let timer: unknown = null;
  let sending: Promise<void> | null = null;
  let again = false;

  async function run(): Promise<void> {
    again = false;
    // A ledger that is away gets the next report; `/readyz` and the log say that it is.
    await send().catch(ignore);
    sending = null;
    if (closed) return;
    if (again) report();
    else timer = timers.set(report, limits.replicaReportMs);
  }
  function report(): void {
    again = true;
    if (closed || sending !== null) return;
    timers.clear(timer);
    sending = run();
  }
  report();
  return {
    report,
    async [Symbol.asyncDispose]() {
      closed = true;
      timers.clear(timer);
      await sending;
    },
  };
}

function describeDeployment(
  config: Config,
  gateway: Pick<Gateway, "describe">,
): ReturnType<WatchedService["deployment"]> {
  const { contextTokens, model, takesTools } = gateway.describe();
  const known = { model, contextTokens, takesTools };
  if (config.deployment === null) return { kind: "embedded", url: null, ...known };
  const url = new URL(config.deployment.url);
  return { kind: "openai-compatible", url: url.origin + url.pathname, ...known };
}

/** Adding up a large ledger takes seconds of the processor, which belong to no event loop and no writer. */
async function verifyInThread(config: Config): Promise<VerifyReport> {
  const worker = new Worker(entryUrl("verify-thread", import.meta.url), { workerData: config });
  try {
    return await new Promise<VerifyReport>((resolve, reject) => {
      worker.once("message", resolve);
      worker.once("error", reject);
      worker.once("exit", () => reject(new Error("the thread that verifies has ended")));
    });
  } finally {
    await worker.terminate();
  }
}

function ignore(): void {}
