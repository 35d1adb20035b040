import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Config, parseConfig } from "../config/config.ts";
import type { Gateway } from "../gateway.ts";
import { openLog } from "../telemetry/log.ts";
import { openTelemetry } from "../telemetry/telemetry.ts";
import { type Check, failed, formatCheck, passed } from "./check.ts";
import { counted } from "./counted.ts";
import { misuse, type Outcome, type Shell, spellCommands } from "./command.ts";
import {
  describeEngine,
  findEngineReason,
  isGivenUp,
  isNothingListening,
  trySpeed,
} from "./engine-trial.ts";
import { checkFormats } from "./format-checks.ts";
import { recordOf, type TrialAccess } from "./format-trial.ts";
import { OperatorError } from "../ledger/operator-error.ts";
import { beginOfDefault } from "../ledger/administration/price-administration.ts";
import type { StoreLedger } from "../ledger/store-ledger.ts";
import { isThere, openLedger, placeOf } from "./open-ledger.ts";
import { openProgress, type ProgressDisplay } from "./progress.ts";
import { checkRunningService, readRunningService } from "./running-service.ts";
import { engineOrigin, ledgerOrigin } from "./settings.ts";

const warningFix = "correct or remove it: as it is, it changes nothing";

interface DoctorOptions {
  readonly url?: string | undefined;
  readonly key?: string | undefined;
  readonly timeout?: string | undefined;
}

/** `doctor` */
export async function doctor(shell: Shell, options: DoctorOptions): Promise<Outcome> {
  const running = readRunningService(options, shell);
  const timeoutMs = readTimeout(options.timeout);
  const found =
    running === null
      ? checkSettings(shell, timeoutMs)
      : checkRunningService(running, timeoutMs ?? patience.elsewhereMs);
  return report(found, shell);
}

/** Milliseconds: weights may load for minutes, a server elsewhere may be loading its own, and where none is none will be. */
const patience = { embeddedMs: 600_000, elsewhereMs: 30_000, noListenerMs: 1_000 };

async function* checkSettings(shell: Shell, timeoutMs: number | null): AsyncGenerator<Check> {
  const parsed = parseConfig(shell.environment(), shell.folder);
  const warnings = parsed.warnings.map((warning) => failed("settings", warning, warningFix));
  if (!parsed.ok) {
    yield* parsed.problems.map(({ remedy, wrong }) => failed("settings", wrong, remedy));
    yield* warnings;
    return;
  }
  const { config } = parsed;
  yield passed("looks at", describeTargets(config, shell));
  yield settingsCheck(parsed.warnings);
  yield await checkLedger(config, shell);
  const { elsewhereMs, embeddedMs, noListenerMs } = patience;
  const usual =
    config.deployment === null
      ? // A source of weights that is not there is followed by the next.
        { timeoutMs: embeddedMs, noListenerMs: embeddedMs }
      : { timeoutMs: elsewhereMs, noListenerMs };
  const asked = timeoutMs === null ? usual : { timeoutMs, noListenerMs: timeoutMs };
  yield* checkOwnService(config, { shell, ...asked });
}

/** The shell's settings may be other ones than those of the service that its caller has in mind. */
function describeTargets(config: Config, shell: Shell): string {
  const engine = config.deployment?.url ?? `the embedded engine`;
  return `ledger ${placeOf(config)} (${ledgerOrigin(shell)}), engine ${engine} (${engineOrigin(shell)})`;
}

function readTimeout(timeout: string | undefined): number | null {
  if (timeout === undefined) return null;
  const seconds = /^\d{1,6}$/.test(timeout) ? Number(timeout) : 0;
  if (seconds < 1) throw misuse("--timeout takes a whole number of seconds from 1.");
  return seconds * 1000;
}

function settingsCheck(warnings: readonly string[]): Check {
  if (warnings.length === 0) return passed("settings", "every setting is valid");
  return passed("settings", `valid, but: ${warnings.join("; ")}`);
}

async function checkLedger(config: Config, shell: Shell): Promise<Check> {
  const { database } = config;
  const path = placeOf(config);
  const none =
    config.firstAccount === "make"
      ? "no account yet: the first start makes one with a key"
      : `no account yet: ${shell.programName} account create NAME makes one`;
  const missing = `${path}: not there yet, the first start of the service makes it; ${none}`;
  if (!isThere(config)) return passed("ledger", missing);
  try {
    await using ledger = await openLedger(config, { creates: false });
    await ledger.check();
    const accounts = await ledger.listAccounts();
    const disabled = accounts.filter(({ status }) => status === "disabled").length;
    const below = accounts.filter(
      ({ heldNanos, balanceNanos }) => heldNanos < 0n || heldNanos > balanceNanos,
    );
    if (below.length > 0)
      return failed(
        "ledger",
        `${path}: accounts hold what they do not have: ${below.map(({ id }) => id).join(", ")}`,
        "keep a copy of the file and restore the last backup; this must not happen",
      );
    const all = counted(accounts.length, "account", "accounts");
    const some = disabled === 0 ? all : `${all}, ${String(disabled)} of them disabled`;
    const prices = await describePrices(ledger, config);
    return passed("ledger", `${path}: ${accounts.length === 0 ? none : some}${prices}`);
  } catch (error) {
    if (error instanceof OperatorError && error.code === "not_found")
      return passed("ledger", missing);
    const message = error instanceof Error ? error.message : String(error);
    return failed(
      "ledger",
      message,
      database.kind === "sqlite"
        ? `see that ${path} can be written by this user, or set TRIBUTARY_DATA_DIR (try: ${shell.programName} account list)`
        : `see that the server of TRIBUTARY_DATABASE_URL answers (try: ${shell.programName} account list)`,
    );
  }
}

/** What the settings would make an operator believe who does not know of the ledger's own prices. */
async function describePrices(ledger: StoreLedger, { prices }: Config): Promise<string> {
  const fromMs = beginOfDefault(await ledger.showPriceList({ name: "default", settings: prices }));
  if (fromMs === null) return "";
  const ours = "prices are those of its list `default`";
  const settings = "TRIBUTARY_INPUT_PRICE and TRIBUTARY_OUTPUT_PRICE";
  return fromMs <= Date.now()
    ? `; ${ours}, not ${settings}`
    : `; from ${new Date(fromMs).toISOString()} on ${ours}, until then ${settings}`;
}

interface OwnService {
  readonly shell: Shell;
  readonly timeoutMs: number;
  /** How long it waits where nothing listens. */
  readonly noListenerMs: number;
}

/** A service of its own over a ledger that is thrown away, so that no account pays and no key is needed. */
async function* checkOwnService(
  config: Config,
  { noListenerMs, shell, timeoutMs }: OwnService,
): AsyncGenerator<Check> {
  const missing = config.deployment === null ? await findMissingWeights(config, timeoutMs) : null;
  if (missing !== null) {
    yield missing;
    return;
  }
  const folder = await mkdtemp(join(tmpdir(), "tributary-doctor-"));
  const lines: string[] = [];
  const log = openLog({
    level: config.logLevel === "debug" ? "debug" : "info",
    format: "json",
    terminal: false,
    destination: { write: (text) => void lines.push(text), flush: () => {} },
  });
  using telemetry = openTelemetry({ log, secrets: [config.deployment?.apiKey ?? ""] });
  const { openGateway } = await import("../gateway.ts");
  const progress = openProgress(shell.stderr, () => performance.now());
  try {
    await using gateway = await openGateway(trialConfig(config, folder), {
      telemetry,
      onProgress: (now) => progress.report(now),
    });
    const ready = await waitUntilReady(gateway, {
      lines,
      config,
      progress,
      timeoutMs,
      noListenerMs,
    });
    yield ready;
    if (!ready.ok || gateway.first === null) return;
    const access = { url: gateway.address.url, key: gateway.first.secret };
    yield* checkFormats(access, { advice: () => adviseOnDeployment(config), timeoutMs });
    const engine = await checkEngine(access, { lines, config, timeoutMs });
    if (engine !== null) yield engine;
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    const fix = (await isModelSettingError(error)) ? modelSettingFix : adviseOnDeployment(config);
    yield failed("deployment", message, fix);
  } finally {
    progress.pause();
    await rm(folder, { recursive: true, force: true });
  }
}

const modelSettingFix = "correct TRIBUTARY_MODEL, or remove it to get the catalog's default";

async function isModelSettingError(error: unknown): Promise<boolean> {
  const { ModelSettingError } = await import("../deployment/embedded/model-setting-error.ts");
  return error instanceof ModelSettingError;
}

/** A check that fails where weights are missing: `doctor` never downloads. */
async function findMissingWeights(config: Config, timeoutMs: number): Promise<Check | null> {
  const { runEngine } = await import("../deployment/embedded/run-engine.ts");
  let missing: Check | null = null;
  await runEngine({
    command: "list",
    settings: config,
    onEvent: ({ event, ...fields }) => {
      if (event === "settings refused")
        missing = failed("deployment", String(fields["reason"]), modelSettingFix);
      if (event === "chosen model" && fields["isHere"] === false)
        missing = failed(
          "deployment",
          `the weights of ${String(fields["name"])} are not on this machine, and doctor downloads nothing`,
          "`tributary model pull` fetches them, or the first `tributary serve`; for another engine set TRIBUTARY_DEPLOYMENT_URL",
        );
    },
    signal: AbortSignal.timeout(timeoutMs),
  });
  return missing;
}

interface EngineTrying {
  readonly lines: readonly string[];
  readonly config: Config;
  readonly timeoutMs: number;
}

/** What the embedded engine runs on and how fast it writes; null for another deployment. */
async function checkEngine(
  access: TrialAccess,
  { config, lines, timeoutMs }: EngineTrying,
): Promise<Check | null> {
  const engine = describeEngine(lines);
  if (engine === null) return null;
  const signal = AbortSignal.timeout(timeoutMs);
  const speed = await trySpeed(access, signal, () => performance.now());
  if (!speed.ok) return failed("engine", `${engine}; ${speed.message}`, adviseOnDeployment(config));
  const { tokens, tokensPerSecond } = speed;
  return passed(
    "engine",
    `${engine}; ${tokensPerSecond.toFixed(1)} tokens per second over ${String(tokens)} tokens`,
  );
}

function trialConfig(config: Config, folder: string): Config {
  return {
    ...config,
    host: "127.0.0.1",
    port: 0,
    tls: null,
    database: { kind: "sqlite", path: join(folder, "ledger.sqlite") },
    sqliteSynchronous: "normal",
    firstAccount: "make",
    startingCreditNanos: 1_000_000_000_000n,
    prices: { inputNanosPerMillion: 1_000_000_000n, outputNanosPerMillion: 1_000_000_000n },
    drainSeconds: 1,
  };
}

interface Waiting {
  readonly config: Config;
  readonly lines: readonly string[];
  readonly progress: ProgressDisplay;
  readonly timeoutMs: number;
  readonly noListenerMs: number;
}

async function waitUntilReady(gateway: Gateway, waiting: Waiting): Promise<Check> {
  const { lines, noListenerMs, timeoutMs } = waiting;
  const beganMs = performance.now();
  const waitMs = (): number => (isNothingListening(lines) ? noListenerMs : timeoutMs);
  let message = "it gave no answer";
  while (performance.now() - beganMs < waitMs() && !isGivenUp(lines)) {
    const response = await fetch(`${gateway.address.url}/readyz?deployment=1`, {
      signal: AbortSignal.timeout(timeoutMs),
    });
    const text = await response.text();
    if (response.ok) {
      waiting.progress.pause();
      return passed("deployment", describeDeployment(gateway));
    }
    message = readyMessage(text) ?? message;
    await sleep(250);
  }
  const cause = lastCause(lines);
  // The cause in the log often begins with the message of `/readyz`.
  const words =
    cause === null ? message : cause.startsWith(message) ? cause : `${message} (${cause})`;
  return failed("deployment", `not ready: ${words}`, adviseOnDeployment(waiting.config));
}

function readyMessage(text: string): string | null {
  try {
    const reasons = Object.values(recordOf(recordOf(JSON.parse(text))["reasons"]));
    return reasons.length === 0 ? null : reasons.join(" ");
  } catch {
    return null;
  }
}

function describeDeployment(gateway: Gateway): string {
  const { contextTokens, model, takesTools } = gateway.describe();
  const context =
    contextTokens === null
      ? "context length not known"
      : `${String(contextTokens)} tokens of context`;
  return `${model}, ${context}, ${takesTools ? "takes tools" : "takes no tools"}`;
}

/** What the log knows of the last thing that went wrong. */
function lastCause(lines: readonly string[]): string | null {
  const reason = findEngineReason(lines);
  if (reason !== null) return reason;
  const causes = lines.map((line) => recordOf(recordOf(JSON.parse(line))["cause"]));
  const last = causes.findLast((cause) => typeof cause["name"] === "string");
  if (last === undefined) return null;
  const deepest =
    typeof recordOf(last["cause"])["name"] === "string" ? recordOf(last["cause"]) : last;
  const words = [deepest["code"], deepest["message"]].filter((word) => typeof word === "string");
  return words.length === 0 ? null : words.join(": ");
}

function adviseOnDeployment(config: Config): string {
  if (config.deployment === null)
    return "`tributary model pull` reads the weights again and replaces damaged ones, `tributary model list` names others; with no network put a .gguf file on this machine and set TRIBUTARY_MODEL to its path";
  return `see that the deployment at TRIBUTARY_DEPLOYMENT_URL runs and lists its model (GET .../v1/models), and that TRIBUTARY_DEPLOYMENT_API_KEY and TRIBUTARY_DEPLOYMENT_MODEL are right; TRIBUTARY_LOG_LEVEL=debug with \`tributary serve\` shows its own words; --timeout waits for one that is about to start`;
}

/** On a terminal each check is shown as soon as it is known: some take minutes. */
async function report(
  found: AsyncGenerator<Check>,
  { json, programName, stdout }: Shell,
): Promise<Outcome> {
  const checks: Check[] = [];
  for await (const { fix, ...check } of found) {
    const spelled = { ...check, fix: fix === null ? null : spellCommands(fix, programName) };
    checks.push(spelled);
    if (!json) stdout.write(formatCheck(spelled));
  }
  const ok = checks.every((check) => check.ok);
  return { json: { ok, checks }, text: "", exitCode: ok ? 0 : 1 };
}
