import type { Config } from "../config/config.ts";
import type { Gateway } from "../gateway.ts";
import type { ProcessesParts } from "../processes/open-processes.ts";
import { openLog, openStandardOutput } from "../telemetry/log.ts";
import type { ServiceTelemetry } from "../telemetry/telemetry.ts";
import { quietTimers } from "../timers.ts";
import type { OperatorServer } from "../operators/operator-server.ts";
import { openOperatorPages } from "../pages/caller-relay.ts";
import { openPageFiles } from "../pages/page-files.ts";
import type { WatchedService } from "../operators/watched-service.ts";
import type { StoreLedger } from "../ledger/store-ledger.ts";
import { openLedger, thisUser } from "./open-ledger.ts";
import { openWatchedService } from "./open-watched-service.ts";
import { openOnce } from "../open-once.ts";
import { version } from "./version.ts";
import { announce } from "./announce.ts";
import { openProcessTelemetry } from "./process-telemetry.ts";
import { tellLaxFolder } from "./lax-folder.ts";
import { CommandError, type Shell } from "./command.ts";
import { openProgress, type Progress, type ProgressDisplay } from "./progress.ts";
import { entryUrl } from "../worker-url.ts";
import { ensureConfig } from "./settings.ts";
import { CertificateError, readCertificate } from "../network/certificate.ts";
import { openClientAddresses } from "../network/client-address.ts";
import { socketPathOf } from "../network/http-server.ts";
import { watchStopSignals } from "./stop-signals.ts";
import { heldYoungSpace, holdYoungSpace, tuneHeap } from "./heap-spaces.ts";

/** `serve` */
export async function serve(shell: Shell): Promise<null> {
  const config = ensureConfig(shell);
  const progress = openProgress(shell.stderr, () => performance.now());
  await using output = openStandardOutput();
  const write = (text: string): void => {
    // A line of its own: the bar of a download may be open on the same terminal.
    progress.pause();
    output.write(text);
  };
  const log = openLog({
    level: config.logLevel,
    format: shell.json ? "json" : config.logFormat,
    terminal: shell.stdout.terminal,
    destination: { write, flush: () => output.flush() },
  });
  using telemetry = await openProcessTelemetry(config, { log });
  const exitNow = (): void => {
    log.flush();
    shell.exit(0);
  };
  const stop = watchStopSignals(shell, exitNow);
  {
    const childLog = {
      format: shell.json ? "json" : config.logFormat,
      terminal: shell.stdout.terminal,
      write,
    } as const;
    await using gateway = await open(config, {
      telemetry,
      progress,
      signal: stop.signal,
      log: childLog,
    });
    if (gateway !== null) {
      tellLaxFolder(config.dataDir, telemetry);
      tuneHeap(quietTimers);
      await using ledger = openOnce(() => openLedger(config, { creates: false }));
      const opened = (): Promise<StoreLedger> => ledger.open();
      const given = { config, shell, gateway, stop: () => stop.stop(), timers: quietTimers };
      const own = openOwnWords(gateway, opened);
      await using service = openWatchedService({ ...given, ledger: own });
      const opening = openOperators(config, { gateway, ledger: opened, service, telemetry });
      // Waited for also where operators cannot be listened to: the first key is shown this once.
      await announce(gateway, {
        config,
        log,
        shell,
        telemetry,
        stop: stop.first,
        isDownloading: () => progress.begun,
        loginLink: async () => (await opening)?.firstLoginLink(await own()) ?? null,
      });
      await using operators = await opening;
      service.tell({ operators: operators?.url ?? null });
      await Promise.race([stop.first, ...(gateway.failed === undefined ? [] : [gateway.failed])]);
      if (config.drainDelaySeconds > 0) {
        gateway.leave();
        telemetry.lifecycle("leaving", { seconds: config.drainDelaySeconds });
        await stop.pause(config.drainDelaySeconds * 1_000);
      }
      service.tell({ draining: true });
      telemetry.lifecycle("draining", { seconds: config.drainSeconds });
      await gateway.drain();
    }
  }
  telemetry.lifecycle("stopped", {});
  // A connection to a collector that does not answer would keep the process for as long as its own time limits.
  if (!(await telemetry.flush())) exitNow();
  return null;
}

/**
 * The ledger for what the service says of itself. That of requests, where there is one: a second one is a thread of its own
 * with a heap of its own on SQLite, a connection on PostgreSQL, and is opened with the first question of an operator.
 */
function openOwnWords(
  { ledger }: Gateway,
  opened: () => Promise<StoreLedger>,
): () => Promise<OwnWords> {
  if (ledger === null) return opened;
  const administration = ledger.administer({ actor: thisUser(), once: null });
  return () => Promise.resolve(administration);
}

type OwnWords = Pick<StoreLedger, "createFirstOperator" | "forgetReplica" | "reportReplica">;

/** Before anything is opened, and with several processes before each of them would fail by itself. */
async function ensureCertificates({ operator, tls }: Config): Promise<void> {
  const pairs = [
    { prefix: "TRIBUTARY", files: tls },
    { prefix: "TRIBUTARY_OPERATOR", files: operator?.tls ?? null },
  ];
  for (const { files, prefix } of pairs) {
    if (files === null) continue;
    await readCertificate(files).catch((error: unknown) => {
      if (!(error instanceof CertificateError)) throw error;
      const words = `${prefix}_TLS_CERTIFICATE_FILE, ${prefix}_TLS_KEY_FILE: ${error.message}`;
      throw new CommandError("cannot_listen", 2, words);
    });
  }
}

/** The listener of operators, over a ledger of its own: what they read and change holds up no request. */
async function openOperators(
  config: Config,
  parts: {
    readonly gateway: Gateway;
    readonly ledger: () => Promise<StoreLedger>;
    readonly service: WatchedService;
    readonly telemetry: ServiceTelemetry;
  },
): Promise<OperatorServer | null> {
  const { gateway, ledger, service, telemetry } = parts;
  if (config.operator === null) return null;
  const { listenForOperators } = await loadOperators();
  const page = openPageFiles("operators");
  if (!(await page.isBuilt())) telemetry.lifecycle("console not built", {});
  try {
    const operators = await listenForOperators(config.operator, {
      ledger,
      service,
      metrics: () => gateway.metrics(),
      page: openOperatorPages(page, gateway.address),
      version,
      prices: config.prices,
      privateAddresses: config.webhookPrivate,
      clientOf: openClientAddresses({ ...config, host: config.operator.host }),
      telemetry,
      onFailure: ({ cause, requestId }) => telemetry.failed({ requestId, code: "internal", cause }),
    });
    telemetry.lifecycle("operators listening", { address: operators.url });
    return operators;
  } catch (error) {
    const { host, port } = config.operator;
    throw cannotListen(error, { prefix: "TRIBUTARY_OPERATOR", host, port, exitCode: 2 });
  }
}

// With an operator's first request, this code would hold up every stream for 0.1 s; behind the start, requests for 0.2 s.
const loadOperators = () => import("../operators/operator-server.ts");

/** null: it was stopped before it could start. */
async function open(
  config: Config,
  parts: {
    readonly telemetry: ServiceTelemetry;
    readonly progress: ProgressDisplay;
    readonly signal: AbortSignal;
    readonly log: ProcessesParts["log"];
  },
): Promise<Gateway | null> {
  const { log, progress, signal, telemetry } = parts;
  const given = { telemetry, signal, onProgress: (now: Progress) => progress.report(now) };
  try {
    holdYoungSpace();
    await ensureCertificates(config);
    // Loaded here, so that neither --help nor a bad setting waits for all of the service.
    if (config.processes === 1) {
      const { openGateway } = await import("../gateway.ts");
      const [gateway] = await Promise.all([
        openGateway(config, given),
        config.operator === null ? null : loadOperators(),
      ]);
      return gateway;
    }
    const { openProcesses } = await import("../processes/open-processes.ts");
    const { forkServing } = await import("../processes/fork-serving.ts");
    const fork = forkServing(entryUrl("serving-process", import.meta.url), [heldYoungSpace]);
    return await openProcesses(config, { ...given, log, fork });
  } catch (error) {
    if (signal.aborted && error instanceof Error && error.name === "AbortError") return null;
    const { host, port } = config;
    throw cannotListen(error, { prefix: "TRIBUTARY", host, port, exitCode: 1 });
  }
}

/** What a start ends with where it cannot listen; any other error as it is. */
function cannotListen(
  error: unknown,
  address: {
    /** Of the names of the two settings. */
    readonly prefix: string;
    readonly host: string;
    readonly port: number;
    readonly exitCode: 1 | 2;
  },
): unknown {
  const code = error instanceof Error && "code" in error ? error.code : null;
  const { exitCode, host, port, prefix } = address;
  const isPath = socketPathOf(host) !== null;
  const remedies = isPath ? socketRemedies : listenRemedies;
  const remedy = remedies[String(code)]?.replace("TRIBUTARY", prefix);
  if (remedy === undefined) return error;
  const where = isPath ? "" : ` ${prefix}_PORT=${String(port)}`;
  const words = `${prefix}_HOST=${host}${where}: ${remedy}`;
  return new CommandError("cannot_listen", exitCode, words);
}

const listenRemedies: Readonly<Record<string, string>> = {
  EADDRINUSE:
    "another program listens there already; end it, or set TRIBUTARY_PORT to another port (0 picks a free one)",
  EACCES: "this user may not listen there; set TRIBUTARY_PORT to a port above 1023",
  EADDRNOTAVAIL:
    "this machine has no such address; set TRIBUTARY_HOST to one that it has, or to 0.0.0.0",
  ENOTFOUND: "the host name has no address; set TRIBUTARY_HOST to an IP address",
};

const socketRemedies: Readonly<Record<string, string>> = {
  EADDRINUSE:
    "another program listens there already, or a file of another kind is there; end it, or name another path",
  // Also where the folder is missing, as Node words it.
  EACCES: "there is no such folder, or this user may make no file in it; make it, or name another",
  EINVAL: "the system takes no path as long; name one of less than 100 characters",
};
