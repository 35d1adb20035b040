import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Config, parseConfig } from "../config/config.ts";
import type { Gateway } from "../gateway.ts";
import { openLog } from "../telemetry/log.ts";
import { openTelemetry } from "../telemetry/telemetry.ts";
import { counted } from "./counted.ts";
import { type Command, type CommandLine, misuse, type Outcome, type Shell } from "./command.ts";
import { describeEngine, findEngineReason, isGivenUp, trySpeed } from "./engine-trial.ts";
import {
  type FormatTrial,
  formatTrials,
  recordOf,
  type TrialAccess,
  type TrialResult,
  tryBody,
  tryStream,
} from "./format-trial.ts";
import { openLedger, placeOf } from "./open-ledger.ts";
import { openProgress, type ProgressDisplay } from "./progress.ts";
import { engineOrigin, ledgerOrigin } from "./settings.ts";
import { spellCommands } from "./spell-commands.ts";

const help = `Checks the settings, the ledger, and the deployment with a tiny generation in each of the three formats; of the
embedded engine it tells what it runs on, and its tokens per second.

  tributary doctor                          tries the deployment through a service of its own, which leaves the
                                            ledger alone; weights that are missing are downloaded
  tributary doctor --url URL --key KEY      tries a service that runs; the account pays for six tiny answers

  --timeout SECONDS   how long to wait for the deployment and for each answer (default 600 for the embedded
                      engine, else 30)
  --json              print {"ok","checks":[{"name","ok","message","fix"}]}; exit 1 when a check fails
`;

/** One thing that was looked at. */
interface Check {
  readonly name: string;
  readonly ok: boolean;
  readonly message: string;
  /** What to do; null when it is well. */
  readonly fix: string | null;
}

const warningFix = "correct or remove it: as it is, it changes nothing";

/** `doctor` */
export const doctorCommand: Command = {
  help,
  operands: [],
  options: { url: { type: "string" }, key: { type: "string" }, timeout: { type: "string" } },
  run: async (line, shell) => {
    const running = readAccess(line);
    const timeout = readTimeout(line);
    const parsed = parseConfig(shell.environment, shell.folder);
    if (!parsed.ok) {
      const problems = parsed.problems.map((problem) =>
        failed("settings", problem.wrong, problem.remedy),
      );
      const warnings = parsed.warnings.map((warning) => failed("settings", warning, warningFix));
      return report([...problems, ...warnings], shell);
    }
    const { config, warnings } = parsed;
    const timeoutMs =
      timeout ?? (config.deployment === null && running === null ? 600_000 : 30_000);
    const checks = [
      passed("looks at", describeTargets(config, shell)),
      settingsCheck(warnings),
      await checkLedger(config, shell),
    ];
    const trials =
      running === null
        ? await checkOwnService(config, { shell, timeoutMs })
        : await checkFormats(running, { advice: adviseOnService, timeoutMs });
    return report([...checks, ...trials], shell);
  },
};

/** The shell's settings may be other ones than those of the service that its caller has in mind. */
function describeTargets(config: Config, shell: Shell): string {
  const engine = config.deployment?.url ?? `the embedded engine`;
  return `ledger ${placeOf(config)} (${ledgerOrigin(shell)}), engine ${engine} (${engineOrigin(shell)})`;
}

function readAccess(line: CommandLine): TrialAccess | null {
  const { key, url } = line.texts;
  if (url === undefined && key === undefined) return null;
  if (url === undefined || key === undefined)
    throw misuse("--url and --key belong together: the address of a service and a key of it.");
  if (!/^https?:\/\//.test(url) || URL.parse(url) === null)
    throw misuse(`--url ${JSON.stringify(url)} is no address: write it as http://127.0.0.1:8080.`);
  return { url: url.replace(/\/+(?:v1\/*)?$/, ""), key };
}

function readTimeout(line: CommandLine): number | null {
  const { timeout } = line.texts;
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
  try {
    await using ledger = await openLedger(config);
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
    const none = "no account yet: the first start makes one with a key";
    const all = counted(accounts.length, "account", "accounts");
    const some = disabled === 0 ? all : `${all}, ${String(disabled)} of them disabled`;
    return passed("ledger", `${path}: ${accounts.length === 0 ? none : some}`);
  } catch (error) {
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

interface OwnService {
  readonly shell: Shell;
  readonly timeoutMs: number;
}

/** A service of its own over a ledger that is thrown away, so that no account pays and no key is needed. */
async function checkOwnService(
  config: Config,
  { shell, timeoutMs }: OwnService,
): Promise<readonly Check[]> {
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
    const ready = await waitUntilReady(gateway, { lines, config, progress, timeoutMs });
    if (!ready.ok || gateway.first === null) return [ready];
    const access = { url: gateway.address.url, key: gateway.first.secret };
    const formats = await checkFormats(access, {
      advice: () => adviseOnDeployment(config),
      timeoutMs,
    });
    const engine = await checkEngine(access, { lines, config, timeoutMs });
    return [ready, ...formats, ...engine];
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    const { ModelSettingError } = await import("../deployment/embedded/model-setting.ts");
    const fix =
      error instanceof ModelSettingError
        ? "correct TRIBUTARY_MODEL, or remove it to get the catalog's default"
        : adviseOnDeployment(config);
    return [failed("deployment", message, fix)];
  } finally {
    progress.pause();
    await rm(folder, { recursive: true, force: true });
  }
}

interface EngineTrying {
  readonly lines: readonly string[];
  readonly config: Config;
  readonly timeoutMs: number;
}

/** What the embedded engine runs on and how fast it writes; nothing for another deployment. */
async function checkEngine(
  access: TrialAccess,
  { config, lines, timeoutMs }: EngineTrying,
): Promise<readonly Check[]> {
  const engine = describeEngine(lines);
  if (engine === null) return [];
  const signal = AbortSignal.timeout(timeoutMs);
  const speed = await trySpeed(access, signal, () => performance.now());
  if (!speed.ok)
    return [failed("engine", `${engine}; ${speed.message}`, adviseOnDeployment(config))];
  const { tokens, tokensPerSecond } = speed;
  return [
    passed(
      "engine",
      `${engine}; ${tokensPerSecond.toFixed(1)} tokens per second over ${String(tokens)} tokens`,
    ),
  ];
}

function trialConfig(config: Config, folder: string): Config {
  return {
    ...config,
    host: "127.0.0.1",
    port: 0,
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
}

async function waitUntilReady(gateway: Gateway, waiting: Waiting): Promise<Check> {
  const until = performance.now() + waiting.timeoutMs;
  let message = "it gave no answer";
  while (performance.now() < until && !isGivenUp(waiting.lines)) {
    const response = await fetch(`${gateway.address.url}/readyz?deployment=1`, {
      signal: AbortSignal.timeout(waiting.timeoutMs),
    });
    const text = await response.text();
    if (response.ok) {
      waiting.progress.pause();
      return passed("deployment", describeDeployment(gateway));
    }
    message = readyMessage(text) ?? message;
    await sleep(250);
  }
  const cause = lastCause(waiting.lines);
  // The log's words often begin with those that callers are told.
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

interface Trying {
  readonly advice: (status: number | null) => string;
  readonly timeoutMs: number;
}

async function checkFormats(access: TrialAccess, trying: Trying): Promise<readonly Check[]> {
  const checks: Check[] = [];
  // One after another: an account may run only so many at a time.
  for (const trial of formatTrials) checks.push(await checkFormat(trial, access, trying));
  return checks;
}

async function checkFormat(
  trial: FormatTrial,
  access: TrialAccess,
  trying: Trying,
): Promise<Check> {
  const startedAt = performance.now();
  const bodyResult = await tryBody(trial, access, AbortSignal.timeout(trying.timeoutMs));
  const bodyMs = performance.now() - startedAt;
  if (!bodyResult.ok) return formatFailed(trial.name, bodyResult, trying);
  const streamResult = await tryStream(trial, access, AbortSignal.timeout(trying.timeoutMs));
  const streamMs = performance.now() - startedAt - bodyMs;
  if (!streamResult.ok) return formatFailed(`${trial.name} streamed`, streamResult, trying);
  const tokens = `${String(bodyResult.inputTokens)} tokens in, ${String(bodyResult.outputTokens)} out`;
  return passed(
    trial.name,
    `${tokens}, ${bodyMs.toFixed(0)} ms; streamed ${streamMs.toFixed(0)} ms`,
  );
}

function formatFailed(
  name: string,
  result: TrialResult & { readonly ok: false },
  trying: Trying,
): Check {
  const status = result.status === null ? "" : `${String(result.status)} `;
  return failed(name, `${status}${result.message}`, trying.advice(result.status));
}

function adviseOnService(status: number | null): string {
  if (status === null) return "see that the service runs at this address: tributary serve";
  if (status === 401) return "make a key: tributary key create ACCOUNT";
  if (status === 402) return "give the account credit: tributary account credit ID AMOUNT";
  if (status === 403) return "enable the account: tributary account enable ID";
  if (status === 429) return "wait until other requests of the account have ended";
  return "run doctor without --url beside the service, with its settings, to try the deployment alone";
}

function adviseOnDeployment(config: Config): string {
  if (config.deployment === null)
    return "tributary model pull reads the weights again and replaces damaged ones, tributary model list names others; with no network put a .gguf file on this machine and set TRIBUTARY_MODEL to its path";
  return `see that the deployment at TRIBUTARY_DEPLOYMENT_URL runs and lists its model (GET .../v1/models), and that TRIBUTARY_DEPLOYMENT_API_KEY and TRIBUTARY_DEPLOYMENT_MODEL are right; TRIBUTARY_LOG_LEVEL=debug with tributary serve shows its own words`;
}

function passed(name: string, message: string): Check {
  return { name, ok: true, message, fix: null };
}

function failed(name: string, message: string, fix: string): Check {
  return { name, ok: false, message, fix };
}

function report(found: readonly Check[], { programName }: Shell): Outcome {
  const checks = found.map((check) => ({
    ...check,
    fix: check.fix === null ? null : spellCommands(check.fix, programName),
  }));
  const ok = checks.every((check) => check.ok);
  const width = Math.max(...checks.map(({ name }) => name.length));
  const lines = checks.map((check) => {
    const head = `${check.ok ? "ok  " : "FAIL"}  ${check.name.padEnd(width)}  ${check.message}`;
    return check.fix === null ? head : `${head}\n      ${" ".repeat(width)}  fix: ${check.fix}`;
  });
  return { json: { ok, checks }, text: `${lines.join("\n")}\n`, exitCode: ok ? 0 : 1 };
}
