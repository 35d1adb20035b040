import { once } from "node:events";
import { createServer } from "node:net";
import type { Config } from "../config/config.ts";
import { ledgerRules } from "../config/ledger-rules.ts";
import type { Deployment } from "../deployment/deployment.ts";
import {
  type EngineNote,
  type EngineRelay,
  openEngineRelay,
} from "../deployment/embedded/engine-relay.ts";
import { type Gateway, type GatewayParts, openDeployment } from "../gateway.ts";
import { relayCalls } from "../ledger/sqlite/channel-line.ts";
import { openSqliteWriter, type SqliteWriter } from "../ledger/sqlite/sqlite-ledger.ts";
import { openStoreLedger } from "../ledger/store-ledger.ts";
import { limits } from "../limits.ts";
import { socketPathOf } from "../network/http-server.ts";
import { addFigures } from "../telemetry/process-figures.ts";
import { systemTimers, type Timers } from "../timers.ts";
import type { ServingOrder, ServingStart } from "./calls.ts";
import { openPoolMetrics } from "./pool-metrics.ts";
import {
  type ForkServing,
  openServingPool,
  type Serving,
  type ServingPool,
  type ServingPoolParts,
} from "./serving-pool.ts";

/** What the process that starts the others works with. */
export interface ProcessesParts extends Pick<GatewayParts, "telemetry" | "onProgress" | "signal"> {
  /** How the others write lines of the log, and what writes them here. */
  readonly log: ServingOrder["log"] & { readonly write: (text: string) => void };
  readonly fork: ForkServing;
  readonly timers?: Timers;
}

/** What all processes of a service have in common. */
interface Shared {
  readonly writer: SqliteWriter | null;
  readonly engine: EngineRelay | null;
}

/**
 * A service of `config.processes` processes, as one. This process starts, watches and ends them, writes the ledger where it
 * is a SQLite file, and has the embedded engine; it serves no request. Disposing it drains first.
 */
export async function openProcesses(config: Config, parts: ProcessesParts): Promise<Gateway> {
  await using opened = new AsyncDisposableStack();
  const { telemetry } = parts;
  let pool: ServingPool | null = null;
  const serving = (): readonly Serving[] => pool?.serving ?? [];
  const state: State = { first: null, leaving: false, started: new Set() };
  const writer = await openWriter(config, telemetry);
  if (writer !== null) opened.use(writer);
  const engine = openEngine(config, (note) => {
    for (const { channel } of state.started) channel.tell("engine", note);
  });
  if (engine !== null) opened.use(await openEngineHere(config, engine, parts));
  const metrics = openPoolMetrics(telemetry, serving, parts.timers ?? systemTimers);
  // A port of its own choice each would have.
  const picksPort = config.port === 0 && socketPathOf(config.host) === null;
  const port = picksPort ? await findFreePort(config.host) : config.port;
  pool = await openServingPool({
    processes: config.processes,
    fork: parts.fork,
    answers: (tell) => ({
      log: parts.log.write,
      metrics: () => metrics.text(),
      ledger:
        writer === null ? () => {} : relayCalls(writer.client, (said) => tell("ledger", said)),
    }),
    start: (one) =>
      startServing(one, { config: { ...config, port }, parts, state, writer, engine }),
    ...tellEnds({ writer, telemetry, forget: (process) => metrics.forget(process) }),
    timers: parts.timers ?? systemTimers,
    monotonicMs: () => performance.now(),
    ...(parts.signal === undefined ? {} : { signal: parts.signal }),
  });
  opened.use(pool);
  const service = asOne(pool, state, parts.timers ?? systemTimers);
  opened.defer(service.end);
  const owned = opened.move();
  return {
    ...service.gateway,
    ledger: writer === null ? null : openStoreLedger(writer.client, { wallMs: Date.now }),
    metrics: async () => Buffer.from(await metrics.text()),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

interface State {
  /** What the first process said when it began; null: none has begun. */
  first: ServingStart | null;
  leaving: boolean;
  /** Processes that have their order, whether they serve yet or not: what comes after it they miss otherwise. */
  readonly started: Set<Serving>;
}

async function startServing(
  one: Serving,
  {
    config,
    engine,
    parts,
    state,
    writer,
  }: Shared & { readonly config: Config; readonly parts: ProcessesParts; readonly state: State },
): Promise<void> {
  const { first } = state;
  const { channel, process, processId } = one;
  const { format, terminal } = parts.log;
  state.started.add(one);
  void one.exited.then(() => state.started.delete(one));
  const start = await channel.ask("start", {
    process,
    // The first account is made once.
    config: first === null ? config : { ...config, firstAccount: "none" },
    log: { format, terminal },
    family: writer?.family ?? null,
    engine: engine === null ? null : { apiKey: engine.apiKey, notes: engine.notes },
  });
  state.first ??= start;
  parts.telemetry.lifecycle("serving process started", { process, processId });
  if (state.leaving) channel.tell("leave", null);
}

function tellEnds({
  forget,
  telemetry,
  writer,
}: {
  readonly writer: SqliteWriter | null;
  readonly telemetry: ProcessesParts["telemetry"];
  readonly forget: (process: number) => void;
}): Pick<ServingPoolParts, "ended" | "notStarted"> {
  return {
    ended({ process }, { code, signal }, restartMs) {
      forget(process);
      telemetry.lifecycle("serving process ended", { process, code, signal, restartMs });
      writer?.client.call("giveBackDead", null).then(
        ({ count }) => telemetry.reservationsExpired({ count }),
        // The processes that are left ask for it again and again.
        () => undefined,
      );
    },
    notStarted({ process }, error, retryMs) {
      const reason = error instanceof Error ? error.message : String(error);
      telemetry.lifecycle("serving process not started", { process, reason, retryMs });
    },
  };
}

/** What a service does, done by all of its processes. */
function asOne(
  pool: ServingPool,
  state: State,
  timers: Timers,
): {
  readonly gateway: Omit<Gateway, "ledger" | "metrics" | typeof Symbol.asyncDispose>;
  readonly end: () => Promise<void>;
} {
  const { first } = state;
  if (first === null) throw new Error("no process serves");
  let { description } = first;
  let drained: Promise<void> | null = null;
  const drain = async (): Promise<void> => {
    pool.settle();
    // One that dies meanwhile has nothing left to drain.
    await Promise.allSettled(pool.serving.map(({ channel }) => channel.ask("drain", null)));
  };
  const gateway = {
    address: first.address,
    first: first.first,
    failed: pool.failed,
    describe() {
      pool.serving[0]?.channel.ask("describe", null).then(
        (known) => (description = known),
        () => undefined,
      );
      return description;
    },
    ...looksOf(pool),
    leave() {
      state.leaving = true;
      for (const { channel } of pool.serving) channel.tell("leave", null);
    },
    drain: () => (drained ??= drain()),
  };
  return {
    gateway,
    async end() {
      await gateway.drain();
      await Promise.all(pool.serving.map((one) => endServing(one, timers)));
    },
  };
}

/** What operators see of all processes together. One that dies meanwhile has nothing to say. */
function looksOf(
  pool: ServingPool,
): Pick<Gateway, "running" | "figures" | "refusals" | "reasons" | "lookForCancelled"> {
  const gather = async <Answer>(
    ask: (channel: Serving["channel"]) => Promise<Answer>,
  ): Promise<readonly Answer[]> => {
    const answers = await Promise.allSettled(pool.serving.map(({ channel }) => ask(channel)));
    return answers.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
  };
  return {
    running: async () => (await gather((channel) => channel.ask("running", null))).flat(),
    figures: async () => addFigures(await gather((channel) => channel.ask("figures", null))),
    refusals: async () =>
      (await gather((channel) => channel.ask("refusals", null)))
        .flat()
        .toSorted((one, other) => other.atMs - one.atMs)
        .slice(0, limits.refusalsKept),
    reasons: async () =>
      Object.assign({}, ...(await gather((channel) => channel.ask("reasons", null)))) as Awaited<
        ReturnType<Gateway["reasons"]>
      >,
    lookForCancelled() {
      for (const { channel } of pool.serving) channel.tell("lookForCancelled", null);
    },
  };
}

/** Ends a process in order; one that does not end in time is killed, and what it holds is given back as after a crash. */
async function endServing({ channel, exited, kill }: Serving, timers: Timers): Promise<void> {
  const timer = timers.set(kill, limits.processEndMs);
  channel.ask("end", null).catch(() => undefined);
  await exited;
  timers.clear(timer);
}

/** The processes listen one after another, and again when one was replaced, on a port that is the same each time. */
async function findFreePort(host: string): Promise<number> {
  const server = createServer().listen(0, host);
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  if (address === null || typeof address === "string") throw new Error("no port is free");
  return address.port;
}

/** null: each process has connections of its own. */
function openWriter(
  config: Config,
  telemetry: ProcessesParts["telemetry"],
): Promise<SqliteWriter | null> {
  const { database } = config;
  if (database.kind !== "sqlite") return Promise.resolve(null);
  return openSqliteWriter(
    { path: database.path, synchronous: config.sqliteSynchronous, ...ledgerRules(config) },
    { now: Date.now, onGroup: (group) => telemetry.ledgerCommitted(group) },
  );
}

/** null: the deployment has an address, which each process asks by itself. */
function openEngine(config: Config, tell: (note: EngineNote) => void): EngineRelay | null {
  return config.deployment === null ? openEngineRelay(tell) : null;
}

function openEngineHere(
  config: Config,
  engine: EngineRelay,
  { onProgress, telemetry }: ProcessesParts,
): Promise<Deployment> {
  const metricsText = (): Promise<string> => telemetry.metricsText();
  return openDeployment(config, { telemetry, onProgress, whole: { engine, metricsText } });
}
