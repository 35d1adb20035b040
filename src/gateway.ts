import type { Config } from "./config/config.ts";
import { ledgerRules } from "./config/ledger-rules.ts";
import type { Deployment, DeploymentDescription } from "./deployment/deployment.ts";
import type { EngineAddress, SharedEngine } from "./deployment/embedded/embedded-deployment.ts";
import { openOpenaiCompatibleDeployment } from "./deployment/openai-compatible/openai-deployment.ts";
import type { Progress } from "./generation/generation-control.ts";
import { openAccountBounds } from "./http/account-bounds.ts";
import { holdValue } from "./http/held-value.ts";
import { openTokenBuckets } from "./http/token-buckets.ts";
import { openBodyWorkers } from "./http/body-workers.ts";
import { openClientAddresses } from "./network/client-address.ts";
import { newId } from "./new-id.ts";
import { openRefusals, type Refusal, type Refusals } from "./http/refusal-log.ts";
import { type NotReadyReasons, openReadiness } from "./http/readiness.ts";
import { openWrongKeys } from "./http/wrong-keys.ts";
import {
  type CountedRequests,
  openCountedRequests,
  type ProcessFigures,
} from "./telemetry/process-figures.ts";
import { knownRequests } from "./http/routes.ts";
import { listen } from "./http/server.ts";
import type { Service } from "./http/service.ts";
import { beginOfDefault } from "./ledger/administration/price-administration.ts";
import { type LeaseKeeper, openLeaseKeeper } from "./ledger/lease-keeper.ts";
import type { FirstAccount } from "./ledger/records.ts";
import { openSealRing } from "./ledger/seal-ring.ts";
import { openSqliteLedger, type SqliteLedgerParts } from "./ledger/sqlite/sqlite-ledger.ts";
import type { StoreLedger } from "./ledger/store-ledger.ts";
import type { StoreGroup } from "./ledger/store-operations.ts";
import { openArchiver } from "./ledger/archive/archiver.ts";
import { openUsageKeeper } from "./ledger/usage-keeper.ts";
import { limits } from "./limits.ts";
import { openOnce } from "./open-once.ts";
import { openPageFiles } from "./pages/page-files.ts";
import type { GaugeReadings } from "./telemetry/gauges.ts";
import type { ServiceTelemetry } from "./telemetry/telemetry.ts";
import { systemTimers, type Timers } from "./timers.ts";
import { openDeliverer } from "./webhooks/deliverer.ts";
import { openPostEvent } from "./webhooks/post-event.ts";

/** A service that listens. Disposing it drains first. */
export interface Gateway extends AsyncDisposable {
  readonly address: { readonly host: string; readonly port: number; readonly url: string };
  /** The account and key made because the ledger was empty; the secret is shown nowhere else. */
  readonly first: FirstAccount | null;
  /** Its ledger, for what the process says there of itself: no other is opened for that. null: its processes have one each. */
  readonly ledger: Pick<StoreLedger, "administer"> | null;
  /** Metrics in the Prometheus text format. */
  metrics(): Promise<Uint8Array>;
  describe(): DeploymentDescription;
  /** The generations that it serves. */
  running(): Promise<readonly Progress[]>;
  /** What it counts of its requests, in memory. */
  figures(): Promise<ProcessFigures>;
  /** The requests that it refused or failed last, newest first. */
  refusals(): Promise<readonly Refusal[]>;
  /** Why a request would not be served now; {} when it would. */
  reasons(): Promise<NotReadyReasons>;
  /** Learns now what operators have cancelled, and ends it. */
  lookForCancelled(): void;
  /** Fails `/readyz` from now on, and serves on: balancers turn to other replicas. */
  leave(): void;
  /** Refuses new requests, lets running ones finish up to the configured time, fails and settles the rest. */
  drain(): Promise<void>;
  /** Rejects where the service cannot go on; absent: it always can. */
  readonly failed?: Promise<never>;
}

/** What the process gives its gateway. */
export interface GatewayParts {
  readonly telemetry: ServiceTelemetry;
  /** Bytes of weights on their way in; `totalBytes` is null while unknown. */
  readonly onProgress: (progress: {
    readonly bytes: number;
    readonly totalBytes: number | null;
  }) => void;
  /** Ends a start that waits for its database. */
  readonly signal?: AbortSignal;
  /** Timers and clock of requests, their answers and their leases; those of the process where they are left out. */
  readonly clock?: Pick<Service, "timers" | "monotonicMs">;
  /** What one of several processes has of the others; absent: this process is the whole service. */
  readonly whole?: WholeParts;
}

/** What a process that serves beside others has of the service as a whole. */
export interface WholeParts {
  /** Where the ledger is a SQLite file: who writes it. */
  readonly writer?: NonNullable<SqliteLedgerParts["writer"]>;
  /** Where the engine is the embedded one. */
  readonly engine?: SharedEngine;
  readonly metricsText: () => Promise<string>;
}

/** Builds the service from its settings and listens. What is opened here is disposed in reverse order. */
export async function openGateway(config: Config, parts: GatewayParts): Promise<Gateway> {
  await using opened = new AsyncDisposableStack();
  const { telemetry, clock = { timers: systemTimers, monotonicMs } } = parts;
  const ledger = opened.use(await openLedger(config, parts));
  const leases = opened.use(
    openLeaseKeeper(ledger, { leaseMs: config.leaseSeconds * 1_000, telemetry, ...clock }),
  );
  opened.use(openKeepers(config, ledger, { telemetry, ...clock }));
  const reports = opened.use(openReports(config, ledger));
  const deployment = opened.use(await openDeployment(config, parts));
  const refusals = openRefusals(Date.now);
  const counted = openCountedRequests(clock.monotonicMs);
  const sealRing = opened.use(await openSealRing(ledger, { telemetry }));
  const service: Service = {
    ledger,
    reports: () => reports.open(),
    deployment,
    leases,
    telemetry: counted.watch(refusals.watch(telemetry)),
    workers: opened.use(openBodyWorkers(() => sealRing.keys, clock.timers)),
    get sealKeys() {
      return sealRing.keys;
    },
    settings: config,
    ...clock,
    bounds: openAccountBounds(),
    looks: openTokenBuckets(() => performance.now()),
    wrongKeys: opened.use(openWrongKeys({ ...clock, telemetry })),
    clientOf: openClientAddresses(config),
    now: Date.now,
    newId,
    // Bytes, so that what many ask for at once is one piece of memory.
    metrics: holdValue(
      async () => Buffer.from(await (parts.whole?.metricsText() ?? telemetry.metricsText())),
      { heldMs: limits.metricsHeldMs, monotonicMs: clock.monotonicMs },
    ),
    page: openPageFiles("callers").answer,
    readiness: openReadiness({ ledger, deployment, telemetry, ...clock }),
    state: newState(),
  };
  const events = opened.use(openEvents(config, ledger, { service, telemetry }));
  telemetry.beginRequests(knownRequests());
  telemetry.watch({ ...gaugesOf(service, ledger), ...events.gauges });
  const server = await listen(service, config);
  opened.defer(() => server.close());
  // After listening: a start that fails there must not use up the one showing of the first key.
  const first =
    config.firstAccount === "make"
      ? await ledger.ensureFirstAccount(config.startingCreditNanos)
      : null;
  await logOwnPrices(ledger, config, telemetry);
  const drain = (): Promise<void> =>
    server.drain({ withinMs: config.drainSeconds * 1_000, listener: config.drainListener });
  opened.defer(drain);
  const owned = opened.move();
  return {
    address: { host: server.host, port: server.port, url: server.url },
    first,
    ledger,
    metrics: () => service.metrics(),
    describe: () => deployment.describe(),
    ...looksOf(service, leases, { refusals, counted }),
    leave: () => void (service.state.leaving = true),
    drain,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

function gaugesOf({ settings, state, workers }: Service, ledger: StoreLedger): GaugeReadings {
  return {
    runningGenerations: () => state.generations.size,
    generationPlaces: () => settings.generationsMax,
    generationPlacesTaken: () => state.places,
    bodyTasksWaiting: () => workers.load.waiting,
    bodyThreadsBusy: () => workers.load.busy,
    ledgerCallsWaiting: () => ledger.waiting(),
  };
}

function newState(): Service["state"] {
  return {
    leaving: false,
    draining: false,
    closing: false,
    requests: 0,
    places: 0,
    generations: new Set(),
    outputTokens: 0,
  };
}

/** What is done with the ledger beside requests: sums are kept, and old receipts archived where the settings say so. */
function openKeepers(
  { archiveDir: folder, receiptDays: days }: Config,
  ledger: StoreLedger,
  parts: { readonly telemetry: ServiceTelemetry; readonly timers: Timers },
): AsyncDisposable {
  const opened = new AsyncDisposableStack();
  opened.use(openUsageKeeper(ledger, parts));
  if (days !== null) opened.use(openArchiver(ledger, { ...parts, days, folder, now: Date.now }));
  return opened;
}

/** What operators see of this process. */
function looksOf(
  { readiness, state }: Service,
  leases: LeaseKeeper,
  { counted, refusals }: { readonly counted: CountedRequests; readonly refusals: Refusals },
): Pick<Gateway, "running" | "figures" | "refusals" | "reasons" | "lookForCancelled"> {
  const running = () => [...state.generations].map(({ progress }) => progress);
  return {
    running: () => Promise.resolve(running()),
    figures() {
      const runningTokens = running().reduce((sum, { outputTokens }) => sum + outputTokens, 0);
      return Promise.resolve({
        ...counted.read(),
        outputTokens: state.outputTokens + runningTokens,
      });
    },
    refusals: () => Promise.resolve(refusals.list()),
    reasons: () => readiness.generations(),
    lookForCancelled: () => leases.look(),
  };
}

/** An operator who changes prices in the settings has to learn that the ledger's are used. */
async function logOwnPrices(
  ledger: StoreLedger,
  { prices }: Config,
  telemetry: ServiceTelemetry,
): Promise<void> {
  const fromMs = beginOfDefault(await ledger.showPriceList({ name: "default", settings: prices }));
  if (fromMs === null) return;
  const from = new Date(fromMs).toISOString();
  telemetry.lifecycle("prices of the ledger", { list: "default", from });
}

/**
 * A second way to a SQLite ledger, opened with the first report: a thread of its own reads it, beside the one that writes.
 * What PostgreSQL reads for reports has connections of its own anyway.
 */
function openReports(
  config: Config,
  ledger: StoreLedger,
): AsyncDisposable & { open(): Promise<StoreLedger> } {
  const { database, sqliteSynchronous: synchronous } = config;
  if (database.kind !== "sqlite")
    return { open: () => Promise.resolve(ledger), [Symbol.asyncDispose]: () => Promise.resolve() };
  const settings = {
    path: database.path,
    synchronous,
    ...ledgerRules(config),
    yields: true,
  } as const;
  const parts = { now: Date.now, telemetry: { ledgerRetry: () => {} } };
  return openOnce(() => openSqliteLedger(settings, parts));
}

async function openLedger(
  config: Config,
  { signal, telemetry, whole }: GatewayParts,
): Promise<StoreLedger> {
  const { database } = config;
  const rules = ledgerRules(config);
  if (database.kind === "sqlite") {
    const { path } = database;
    const settings = { path, synchronous: config.sqliteSynchronous, ...rules };
    const writer = whole?.writer === undefined ? {} : { writer: whole.writer };
    const parts = {
      now: Date.now,
      telemetry,
      onGroup: (group: StoreGroup) => telemetry.ledgerCommitted(group),
    };
    return openSqliteLedger(settings, { ...parts, serves: true, ...writer });
  }
  // Loaded only when it is wanted: a service with a file starts without the driver.
  const { openPostgresLedger } = await import("./ledger/postgres/postgres-ledger.ts");
  return openPostgresLedger(
    { url: database.url, connections: database.connections, ...rules },
    {
      telemetry,
      serves: true,
      onGroup: (group) => telemetry.ledgerCommitted(group),
      onPooled: () => telemetry.lifecycle("database pooler", { mode: "transaction" }),
      startWait: {
        ms: limits.ledgerStartWaitMs,
        ...(signal === undefined ? {} : { signal }),
        onWaiting: ({ reason, leftMs }) =>
          telemetry.lifecycle("waiting for the ledger", {
            reason,
            secondsLeft: Math.ceil(leftMs / 1_000),
          }),
      },
      onMigrated: ({ from, names, to }) =>
        telemetry.lifecycle("ledger migrated", { from, to, names: names.join(", ") }),
    },
  );
}

/** Events and their deliveries, beside everything that requests wait for; and what their looks have found. */
function openEvents(
  config: Config,
  ledger: StoreLedger,
  { service, telemetry }: { readonly service: Service; readonly telemetry: ServiceTelemetry },
): AsyncDisposable & { readonly gauges: GaugeReadings } {
  const { webhookPrivate: privateAddresses } = config;
  const { timers } = service;
  let up: boolean | null = null;
  const deliverer = openDeliverer({
    ledger,
    post: openPostEvent({ privateAddresses, now: Date.now, timers }),
    holder: newId("desk_"),
    timers,
    monotonicMs: service.monotonicMs,
    async isDeploymentUp() {
      up = (await service.readiness.generations()).deployment === undefined;
      return up;
    },
    telemetry,
  });
  return {
    gauges: {
      deploymentUp: () => ((up ?? service.deployment.describe().ready) ? 1 : 0),
      webhookDeliveriesPending: () => deliverer.backlog?.pending ?? null,
      webhooksFailing: () => deliverer.backlog?.failing ?? null,
    },
    [Symbol.asyncDispose]: () => deliverer[Symbol.asyncDispose](),
  };
}

/** Opens the deployment that the settings name. */
export async function openDeployment(
  config: Config,
  parts: Pick<GatewayParts, "onProgress" | "whole"> & {
    readonly telemetry: Pick<ServiceTelemetry, "lifecycle">;
  },
): Promise<Deployment> {
  const { telemetry, whole } = parts;
  if (config.deployment !== null)
    return openOpenaiCompatibleDeployment(config.deployment, {
      now: Date.now,
      newId,
      onLifecycle: (event, fields) => telemetry.lifecycle(event, fields),
    });
  // Loaded only when it is wanted: a service in front of another deployment starts without it.
  const { openEmbeddedDeployment } = await import("./deployment/embedded/embedded-deployment.ts");
  return openEmbeddedDeployment(config, {
    now: () => performance.now(),
    onProgress: parts.onProgress,
    onLifecycle: (event, fields) => {
      if (whole?.engine?.followed !== true) telemetry.lifecycle(event, fields);
    },
    connect: connectEngine,
    ...(whole?.engine === undefined ? {} : { shared: whole.engine }),
  });
}

function monotonicMs(): number {
  return performance.now();
}

/** Generations wait in the engine for a slot as long as it takes: whether the engine hangs, its supervisor finds out. */
export function connectEngine({ apiKey, contextTokens, url }: EngineAddress): Deployment {
  return openOpenaiCompatibleDeployment(
    {
      url,
      apiKey,
      model: "embedded",
      contextTokens,
      dialect: "embedded",
      extraFields: [],
      reasoningField: "reasoning_content",
      connectMs: limits.engineConnectMs,
      firstEventMs: limits.engineWaitMs,
      silenceMs: limits.engineWaitMs,
      tls: { caFile: null, certificateFile: null, keyFile: null },
    },
    { now: Date.now, newId },
  );
}
