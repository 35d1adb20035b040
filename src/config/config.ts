import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { parseCredit, type Prices } from "../admission/price.ts";
import { cacheFolder } from "./cache-folder.ts";
import { type Environment, type VariableName, variables } from "./environment.ts";
import { type ReadText, SettingReader, type SettingProblem } from "./setting-reader.ts";
import { findUnknownSettings, isServiceAddress } from "./unknown-settings.ts";

/** How an OpenAI-compatible deployment is reached. Times in milliseconds. */
export interface DeploymentConfig {
  /** Without a slash at the end; `/v1` may or may not be there. */
  readonly url: string;
  readonly apiKey: string | null;
  /** null: the first model that the deployment lists. */
  readonly model: string | null;
  readonly contextTokens: number | null;
  readonly dialect: "auto" | "vllm" | "sglang" | "llama-cpp" | "ollama" | "generic";
  /** Fields that the deployment takes beside those of its dialect. */
  readonly extraFields: readonly DeploymentExtraField[];
  readonly reasoningField: "reasoning_content" | "reasoning";
  readonly connectMs: number;
  readonly firstEventMs: number;
  readonly silenceMs: number;
}

/** A field beyond the standard. */
export type DeploymentExtraField = (typeof extraFields)[number];

const extraFields = ["continuous_usage_stats", "strict", "top_k"] as const;

/** Where the ledger is kept. Paths are absolute. */
export type DatabaseConfig =
  | { readonly kind: "sqlite"; readonly path: string }
  | { readonly kind: "postgres"; readonly url: string; readonly connections: number };

/** Every setting, checked. */
export interface Config {
  readonly host: string;
  readonly port: number;
  /** Absolute. */
  readonly dataDir: string;
  /** Folder of downloaded weights. Absolute. */
  readonly cacheDir: string;
  readonly database: DatabaseConfig;
  readonly sqliteSynchronous: "full" | "normal";
  /** null: the embedded engine. */
  readonly deployment: DeploymentConfig | null;
  /** Weights of the embedded engine; null: the catalog's default. */
  readonly model: string | null;
  /** Names of licenses that the operator accepts, in small letters. */
  readonly acceptedLicenses: readonly string[];
  /** Context length in tokens as the operator gave it, for either kind of deployment. */
  readonly contextTokens: number | null;
  /** The variables of the embedded engine's process: all but the service's own. */
  readonly environment: Environment;
  readonly prices: Prices;
  readonly startingCreditNanos: bigint;
  /** Whether a start on an empty ledger makes an account and a key. */
  readonly firstAccount: "make" | "none";
  /** A client's key, for commands that ask a running service. */
  readonly clientKey: string | null;
  readonly legacyAliases: readonly [string, string];
  readonly keepaliveMs: number;
  readonly drainDelaySeconds: number;
  readonly drainSeconds: number;
  /** What becomes of it during a drain. */
  readonly drainListener: "open" | "closed";
  readonly logLevel: LogLevel;
  readonly logFormat: "auto" | "json" | "pretty";
  readonly concurrencyPerAccount: number;
  readonly requestsPerMinute: number;
  readonly leaseSeconds: number;
  readonly corsOrigins: readonly string[];
  readonly generationsMax: number;
}

/** The least severe line that is written. */
export type LogLevel = "trace" | "debug" | "info" | "warn" | "error" | "silent";

/** A Config, or all that is wrong at once. Warnings do not stop the start. */
export type ParsedConfig = { readonly warnings: readonly string[] } & (
  | { readonly ok: true; readonly config: Config }
  | { readonly ok: false; readonly problems: readonly SettingProblem[] }
);

/** Checks every setting. Relative paths are meant from `folder`. */
export function parseConfig(environment: Environment, folder: string): ParsedConfig {
  const read = new SettingReader(environment, folder);
  const dataDir = resolve(folder, read.text("TRIBUTARY_DATA_DIR") ?? ".");
  const contextTokens = read.integer("TRIBUTARY_DEPLOYMENT_CONTEXT_TOKENS");
  const database = readDatabase(read, dataDir, folder);
  const config: Config = {
    host: readHost(read),
    port: readPort(read),
    dataDir,
    cacheDir: readCacheDir(read, environment, folder),
    database,
    sqliteSynchronous: read.choice("TRIBUTARY_SQLITE_SYNCHRONOUS", ["full", "normal"]),
    deployment: readDeployment(read, contextTokens),
    model: read.text("TRIBUTARY_MODEL"),
    acceptedLicenses: readLicenses(read),
    contextTokens,
    environment: pickEngineVariables(environment),
    prices: {
      inputNanosPerMillion: readCredits(read, "TRIBUTARY_INPUT_PRICE"),
      outputNanosPerMillion: readCredits(read, "TRIBUTARY_OUTPUT_PRICE"),
    },
    startingCreditNanos: readCredits(read, "TRIBUTARY_STARTING_CREDIT"),
    firstAccount: readFirstAccount(read, database),
    clientKey: read.text("TRIBUTARY_API_KEY"),
    legacyAliases: readAliases(read),
    keepaliveMs: read.integer("TRIBUTARY_KEEPALIVE_MS") ?? 0,
    drainDelaySeconds: read.integer("TRIBUTARY_DRAIN_DELAY_SECONDS") ?? 0,
    drainSeconds: read.integer("TRIBUTARY_DRAIN_SECONDS") ?? 0,
    drainListener: read.choice("TRIBUTARY_DRAIN_LISTENER", ["open", "closed"]),
    logLevel: read.choice("TRIBUTARY_LOG_LEVEL", logLevels),
    logFormat: read.choice("TRIBUTARY_LOG_FORMAT", ["auto", "json", "pretty"]),
    concurrencyPerAccount: read.integer("TRIBUTARY_CONCURRENCY_PER_ACCOUNT") ?? 0,
    requestsPerMinute: read.integer("TRIBUTARY_REQUESTS_PER_MINUTE") ?? 0,
    leaseSeconds: read.integer("TRIBUTARY_LEASE_SECONDS") ?? 0,
    corsOrigins: readOrigins(read),
    generationsMax: read.integer("TRIBUTARY_GENERATIONS_MAX") ?? 0,
  };
  const warnings = [
    ...readUnknown(read, environment),
    ...settingsWithoutEffect(environment, config),
  ];
  const { problems } = read;
  return problems.length === 0 ? { ok: true, config, warnings } : { ok: false, problems, warnings };
}

const logLevels = ["trace", "debug", "info", "warn", "error", "silent"] as const;

function readCacheDir(read: SettingReader, environment: Environment, folder: string): string {
  const given = read.text("TRIBUTARY_CACHE_DIR");
  if (given !== null) return resolve(folder, given);
  return cacheFolder({ environment, platform: process.platform, home: homedir() });
}

function readHost(read: SettingReader): string {
  const host = read.text("TRIBUTARY_HOST") ?? "";
  if (!/^(?:[\w.-]+|\[?[0-9a-fA-F:.]+(?:%\w+)?\]?)$/.test(host))
    read.problem("TRIBUTARY_HOST", "give the port in TRIBUTARY_PORT");
  return host.replace(/^\[|\]$/g, "");
}

function readPort(read: SettingReader): number {
  const name = "TRIBUTARY_PORT";
  if (!isServiceAddress(read.text(name) ?? "")) return read.integer(name) ?? 0;
  read.problem(
    name,
    "Kubernetes sets it in every pod for a Service named tributary: set enableServiceLinks: false in the pod, or TRIBUTARY_PORT itself",
  );
  return 0;
}

function readFirstAccount(read: SettingReader, { kind }: DatabaseConfig): "make" | "none" {
  const name = "TRIBUTARY_FIRST_ACCOUNT";
  if (read.text(name) !== null) return read.choice(name, ["make", "none"]);
  // Of several replicas on one database each could be the first, so that its key would be in one of many logs.
  return kind === "sqlite" ? "make" : "none";
}

function readDatabase(read: SettingReader, dataDir: string, folder: string): DatabaseConfig {
  const given = read.textOrFile("TRIBUTARY_DATABASE_URL", "TRIBUTARY_DATABASE_URL_FILE");
  const connections = read.integer("TRIBUTARY_DATABASE_CONNECTIONS") ?? 0;
  if (given === null) return { kind: "sqlite", path: join(dataDir, "ledger.sqlite") };
  const { name, text: url } = given;
  if (/^postgres(?:ql)?:/i.test(url)) {
    ensurePostgresUrl(read, given);
    return { kind: "postgres", url, connections };
  }
  const path = /^sqlite:(?:\/\/)?(.+)$/i.exec(url)?.[1];
  if (path === undefined)
    read.problem(name, "begin it with sqlite: and a path, or with postgres://");
  else if (path === ":memory:")
    read.problem(
      name,
      "name a file: the account and key commands open the same ledger from another process",
    );
  return { kind: "sqlite", path: resolve(folder, path ?? "") };
}

function ensurePostgresUrl(read: SettingReader, { name, text: url }: ReadText): void {
  // The driver takes an empty host for a socket; the standard's parser takes no user beside one.
  const parsed = URL.parse(
    url.replace(/^(postgres(?:ql)?:\/\/(?:[^/?#]*@)?)(?=[/:])/i, "$1socket"),
  );
  // A second @ is a part of the password; what is behind the first one would be taken for the host, and be logged.
  if (parsed === null || parsed.host === "" || /^[^/]*\/\/[^/?#]*@[^/?#]*@/.test(url))
    read.problem(
      name,
      "write it as postgres://user:password@host:5432/database, with the special characters of a password percent-encoded (@ as %40, / as %2F), or leave the password out and set PGPASSWORD",
    );
  else if (parsed.pathname.length < 2)
    read.problem(name, "name the database after the host and a /");
}

function readDeployment(
  read: SettingReader,
  contextTokens: number | null,
): DeploymentConfig | null {
  const url = read.text("TRIBUTARY_DEPLOYMENT_URL");
  const rest = {
    apiKey: readApiKey(read),
    model: read.text("TRIBUTARY_DEPLOYMENT_MODEL"),
    contextTokens,
    dialect: read.choice("TRIBUTARY_DEPLOYMENT_DIALECT", dialects),
    extraFields: readExtraFields(read),
    reasoningField: read.choice("TRIBUTARY_DEPLOYMENT_REASONING_FIELD", [
      "reasoning_content",
      "reasoning",
    ]),
    connectMs: read.integer("TRIBUTARY_DEPLOYMENT_CONNECT_MS") ?? 0,
    firstEventMs: read.integer("TRIBUTARY_DEPLOYMENT_FIRST_EVENT_MS") ?? 0,
    silenceMs: read.integer("TRIBUTARY_DEPLOYMENT_SILENCE_MS") ?? 0,
  };
  if (url === null) return null;
  return { url: readDeploymentUrl(read, url), ...rest };
}

function readExtraFields(read: SettingReader): readonly DeploymentExtraField[] {
  const name = "TRIBUTARY_DEPLOYMENT_EXTRA_FIELDS";
  const names = read.list(name);
  const unknown = names.find((field) => !extraFields.some((known) => known === field));
  if (unknown !== undefined)
    read.problem(name, `${unknown} is none of them: write some of ${extraFields.join(", ")}`);
  return extraFields.filter((field) => names.includes(field));
}

const dialects = ["auto", "vllm", "sglang", "llama-cpp", "ollama", "generic"] as const;

function readDeploymentUrl(read: SettingReader, url: string): string {
  const name = "TRIBUTARY_DEPLOYMENT_URL";
  const parsed = URL.parse(url);
  if (parsed === null || !/^https?:$/.test(parsed.protocol))
    read.problem(name, "write it as http://127.0.0.1:8000");
  else if (parsed.username !== "" || parsed.password !== "")
    read.problem(
      name,
      "take the name and password out; a key goes into TRIBUTARY_DEPLOYMENT_API_KEY",
    );
  else if (parsed.search !== "" || parsed.hash !== "")
    read.problem(name, "leave out what follows the ? or #");
  else if (
    /\/(?:chat\/completions|completions|responses|messages|models)\/?$/.test(parsed.pathname)
  )
    read.problem(name, "give the base address only, not the path of one route");
  return url.replace(/\/+$/, "");
}

function readApiKey(read: SettingReader): string | null {
  const key = read.textOrFile("TRIBUTARY_DEPLOYMENT_API_KEY", "TRIBUTARY_DEPLOYMENT_API_KEY_FILE");
  // It becomes a header, in which anything else could not be sent.
  if (key !== null && !/^[\x21-\x7e]+$/.test(key.text))
    read.problem(key.name, "copy the key again, without spaces and line breaks");
  return key?.text ?? null;
}

function readCredits(read: SettingReader, name: CreditVariableName): bigint {
  const nanos = parseCredit(read.text(name) ?? "");
  const most = parseCredit(String(variables[name].kind.maximum));
  if (nanos !== null && most !== null && nanos >= 0n && nanos <= most) return nanos;
  read.problem(name, `write it as ${variables[name].default} or 0.25`);
  return 0n;
}

type CreditVariableName = {
  [Name in VariableName]: (typeof variables)[Name]["kind"] extends { readonly type: "credits" }
    ? Name
    : never;
}[VariableName];

function readAliases(read: SettingReader): readonly [string, string] {
  const names = read.list("TRIBUTARY_LEGACY_ALIASES");
  const [first, second] = names;
  if (names.length === 2 && first !== undefined && second !== undefined && first !== second)
    return [first, second];
  read.problem("TRIBUTARY_LEGACY_ALIASES", "write it as old-name,other-name");
  return ["", ""];
}

/** Licenses of the catalog with terms that somebody must accept. */
export const licenseNames: readonly string[] = ["gemma"];

function readLicenses(read: SettingReader): readonly string[] {
  const names = read.list("TRIBUTARY_ACCEPT_LICENSE").map((name) => name.toLowerCase());
  const unknown = names.find((name) => !licenseNames.includes(name));
  if (unknown !== undefined)
    read.problem("TRIBUTARY_ACCEPT_LICENSE", `there is no license ${JSON.stringify(unknown)}`);
  return names;
}

function readOrigins(read: SettingReader): readonly string[] {
  const origins = read.list("TRIBUTARY_CORS_ORIGINS");
  const wrong = origins.find(
    (origin) => !/^https?:\/\//.test(origin) || URL.parse(origin)?.origin !== origin,
  );
  if (wrong !== undefined)
    read.problem(
      "TRIBUTARY_CORS_ORIGINS",
      `${wrong} is no origin: write scheme, host and port, without a path or a slash at the end; a star is not offered`,
    );
  return origins;
}

/** Python, pip, proxies, certificates and GPU drivers have variables of their own; the service's hold its secrets. */
function pickEngineVariables(environment: Environment): Environment {
  return Object.fromEntries(
    Object.entries(environment).filter(([name]) => !/^(?:TRIBUTARY_|PG)/u.test(name)),
  );
}

/** Notes those that were meant for a setting; returns a warning for each that was not. */
function readUnknown(read: SettingReader, environment: Environment): readonly string[] {
  return findUnknownSettings(environment).flatMap(({ meant, name }) => {
    if (meant === null)
      return [`${name} is no setting of Tributary and has no effect; see docs/configuration.md`];
    read.noSetting(name, `did you mean ${meant}? Rename or remove it`);
    return [];
  });
}

function settingsWithoutEffect(environment: Environment, config: Config): readonly string[] {
  const elsewhere = config.deployment !== null;
  const postgres = config.database.kind === "postgres";
  const unused: Readonly<Record<string, readonly VariableName[]>> = {
    "while TRIBUTARY_DEPLOYMENT_URL is set": elsewhere
      ? ["TRIBUTARY_MODEL", "TRIBUTARY_ACCEPT_LICENSE"]
      : [],
    "without TRIBUTARY_DEPLOYMENT_URL": elsewhere
      ? []
      : [
          "TRIBUTARY_DEPLOYMENT_API_KEY",
          "TRIBUTARY_DEPLOYMENT_API_KEY_FILE",
          "TRIBUTARY_DEPLOYMENT_MODEL",
        ],
    "while TRIBUTARY_DATABASE_URL names PostgreSQL": postgres
      ? ["TRIBUTARY_SQLITE_SYNCHRONOUS"]
      : [],
    "without PostgreSQL in TRIBUTARY_DATABASE_URL": postgres
      ? []
      : ["TRIBUTARY_DATABASE_CONNECTIONS"],
  };
  return Object.entries(unused).flatMap(([reason, names]) =>
    names
      .filter((name) => (environment[name] ?? "").trim() !== "")
      .map((name) => `${name} has no effect ${reason}`),
  );
}
