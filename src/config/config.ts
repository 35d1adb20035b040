import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { parseCredit, type Prices } from "../admission/price.ts";
import { cacheFolder } from "./cache-folder.ts";
import { type Environment, type VariableName, variables } from "./environment.ts";
import { nearestName } from "./nearest-name.ts";
import { SettingReader, type SettingProblem } from "./setting-reader.ts";

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
  /** The variables by which weights are found, pip's among them, and no others. */
  readonly environment: Environment;
  readonly prices: Prices;
  readonly startingCreditNanos: bigint;
  readonly legacyAliases: readonly [string, string];
  readonly keepaliveMs: number;
  readonly drainSeconds: number;
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
  const read = new SettingReader(environment);
  const dataDir = resolve(folder, read.text("TRIBUTARY_DATA_DIR") ?? ".");
  const contextTokens = read.integer("TRIBUTARY_DEPLOYMENT_CONTEXT_TOKENS");
  const config: Config = {
    host: readHost(read),
    port: read.integer("TRIBUTARY_PORT") ?? 0,
    dataDir,
    cacheDir: readCacheDir(read, environment, folder),
    database: readDatabase(read, dataDir, folder),
    sqliteSynchronous: read.choice("TRIBUTARY_SQLITE_SYNCHRONOUS", ["full", "normal"]),
    deployment: readDeployment(read, contextTokens),
    model: read.text("TRIBUTARY_MODEL"),
    acceptedLicenses: readLicenses(read),
    contextTokens,
    environment: pickWeightsVariables(environment),
    prices: {
      inputNanosPerMillion: readCredits(read, "TRIBUTARY_INPUT_PRICE"),
      outputNanosPerMillion: readCredits(read, "TRIBUTARY_OUTPUT_PRICE"),
    },
    startingCreditNanos: readCredits(read, "TRIBUTARY_STARTING_CREDIT"),
    legacyAliases: readAliases(read),
    keepaliveMs: read.integer("TRIBUTARY_KEEPALIVE_MS") ?? 0,
    drainSeconds: read.integer("TRIBUTARY_DRAIN_SECONDS") ?? 0,
    logLevel: read.choice("TRIBUTARY_LOG_LEVEL", logLevels),
    logFormat: read.choice("TRIBUTARY_LOG_FORMAT", ["auto", "json", "pretty"]),
    concurrencyPerAccount: read.integer("TRIBUTARY_CONCURRENCY_PER_ACCOUNT") ?? 0,
    requestsPerMinute: read.integer("TRIBUTARY_REQUESTS_PER_MINUTE") ?? 0,
    leaseSeconds: read.integer("TRIBUTARY_LEASE_SECONDS") ?? 0,
    corsOrigins: readOrigins(read),
    generationsMax: read.integer("TRIBUTARY_GENERATIONS_MAX") ?? 0,
  };
  const warnings = [...unknownVariables(environment), ...settingsWithoutEffect(environment)];
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

function readDatabase(read: SettingReader, dataDir: string, folder: string): DatabaseConfig {
  const url = read.text("TRIBUTARY_DATABASE_URL");
  const connections = read.integer("TRIBUTARY_DATABASE_CONNECTIONS") ?? 0;
  if (url === null) return { kind: "sqlite", path: join(dataDir, "ledger.sqlite") };
  if (isPostgres(url)) {
    ensurePostgresUrl(read, url);
    return { kind: "postgres", url, connections };
  }
  const path = /^sqlite:(?:\/\/)?(.+)$/i.exec(url)?.[1];
  if (path === undefined)
    read.problem("TRIBUTARY_DATABASE_URL", "begin it with sqlite: and a path, or with postgres://");
  else if (path === ":memory:")
    read.problem(
      "TRIBUTARY_DATABASE_URL",
      "name a file: the account and key commands open the same ledger from another process",
    );
  return { kind: "sqlite", path: resolve(folder, path ?? "") };
}

function ensurePostgresUrl(read: SettingReader, url: string): void {
  // The driver takes an empty host for a socket; the standard's parser takes no user beside one.
  const parsed = URL.parse(
    url.replace(/^(postgres(?:ql)?:\/\/(?:[^/?#]*@)?)(?=[/:])/i, "$1socket"),
  );
  const name = "TRIBUTARY_DATABASE_URL";
  if (parsed === null || parsed.host === "")
    read.problem(
      name,
      "write it as postgres://user:password@host:5432/database, with the special characters of a password percent-encoded",
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
  const key = read.text("TRIBUTARY_DEPLOYMENT_API_KEY");
  // It becomes a header, in which anything else could not be sent.
  if (key !== null && !/^[\x21-\x7e]+$/.test(key))
    read.problem(
      "TRIBUTARY_DEPLOYMENT_API_KEY",
      "copy the key again, without spaces and line breaks",
    );
  return key;
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

/** Not the whole environment: nothing that is not needed travels with the settings. */
function pickWeightsVariables(environment: Environment): Environment {
  const pattern =
    /^(?:PIP_.*|XDG_CONFIG_(?:HOME|DIRS)|VIRTUAL_ENV|APPDATA|ProgramData|HF_(?:TOKEN|ENDPOINT))$/;
  return Object.fromEntries(Object.entries(environment).filter(([name]) => pattern.test(name)));
}

function unknownVariables(environment: Environment): readonly string[] {
  const prefix = "TRIBUTARY_";
  const known = Object.keys(variables);
  const knownEnds = known.map((name) => name.slice(prefix.length));
  return Object.keys(environment)
    .filter((name) => name.startsWith(prefix) && !known.includes(name))
    .toSorted()
    .map((name) => {
      const near = nearestName(name.slice(prefix.length), knownEnds);
      const advice = near === null ? "see docs/configuration.md" : `did you mean ${prefix}${near}?`;
      return `${name} is no setting of Tributary and has no effect; ${advice}`;
    });
}

function settingsWithoutEffect(environment: Environment): readonly string[] {
  const valueOf = (name: VariableName): string => (environment[name] ?? "").trim();
  const elsewhere = valueOf("TRIBUTARY_DEPLOYMENT_URL") !== "";
  const postgres = isPostgres(valueOf("TRIBUTARY_DATABASE_URL"));
  const unused: Readonly<Record<string, readonly VariableName[]>> = {
    "while TRIBUTARY_DEPLOYMENT_URL is set": elsewhere
      ? ["TRIBUTARY_MODEL", "TRIBUTARY_ACCEPT_LICENSE"]
      : [],
    "without TRIBUTARY_DEPLOYMENT_URL": elsewhere
      ? []
      : ["TRIBUTARY_DEPLOYMENT_API_KEY", "TRIBUTARY_DEPLOYMENT_MODEL"],
    "while TRIBUTARY_DATABASE_URL names PostgreSQL": postgres
      ? ["TRIBUTARY_SQLITE_SYNCHRONOUS"]
      : [],
    "without PostgreSQL in TRIBUTARY_DATABASE_URL": postgres
      ? []
      : ["TRIBUTARY_DATABASE_CONNECTIONS"],
  };
  return Object.entries(unused).flatMap(([reason, names]) =>
    names.filter((name) => valueOf(name) !== "").map((name) => `${name} has no effect ${reason}`),
  );
}

function isPostgres(url: string): boolean {
  return /^postgres(?:ql)?:/i.test(url);
}
