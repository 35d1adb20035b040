import { availableParallelism } from "node:os";
import { join, resolve } from "node:path";
import type { CertificateFiles } from "../network/certificate.ts";
import { isProxyName } from "../network/client-address.ts";
import { cacheFolder, homeFolder } from "./cache-folder.cjs";
import { type Environment, type VariableName } from "./environment.ts";
import { type ReadText, type SettingProblem, SettingReader } from "./setting-reader.ts";
import { findUnknownSettings, isServiceAddress } from "./unknown-settings.ts";

/** Every setting, checked: its types are those of the table of variables. */
export type Config = Readonly<ReturnType<typeof readConfig>>;

/** Where the ledger is kept. Paths are absolute. */
type DatabaseConfig =
  | { readonly kind: "sqlite"; readonly path: string }
  | { readonly kind: "postgres"; readonly url: string; readonly connections: number };

/** Where operators are listened to. */
interface OperatorConfig {
  readonly host: string;
  readonly port: number;
  /** Whether another port is taken where this one is in use. */
  readonly spare: boolean;
  /** The address by which operators come through a proxy; null: by an address, or by `localhost`. */
  readonly publicUrl: string | null;
  readonly tls: CertificateFiles | null;
}

const operatorPortDefault = 8_081;

/** A Config, or all that is wrong at once. Warnings do not stop the start. */
export type ParsedConfig = { readonly warnings: readonly string[] } & (
  | { readonly ok: true; readonly config: Config }
  | { readonly ok: false; readonly problems: readonly SettingProblem[] }
);

/** Checks every setting. Relative paths are meant from `folder`. */
export function parseConfig(environment: Environment, folder: string): ParsedConfig {
  const read = new SettingReader(environment, folder);
  const config = readConfig(read, environment, folder);
  const warnings = [
    ...readUnknown(read, environment),
    ...settingsWithoutEffect(environment, config),
  ];
  const { problems } = read;
  return problems.length === 0 ? { ok: true, config, warnings } : { ok: false, problems, warnings };
}

function readConfig(read: SettingReader, environment: Environment, folder: string) {
  const dataDir = resolve(folder, read.value("TRIBUTARY_DATA_DIR"));
  const contextTokens = read.value("TRIBUTARY_DEPLOYMENT_CONTEXT_TOKENS");
  const database = readDatabase(read, dataDir, folder);
  const operator = readOperator(read, folder);
  return {
    /** A name, an address, or `unix:` and an absolute path. */
    host: readHost(read, "TRIBUTARY_HOST", folder),
    port: readPort(read),
    /** null: callers are listened to without TLS. */
    tls: readCertificateFiles(
      read,
      { certificate: "TRIBUTARY_TLS_CERTIFICATE_FILE", key: "TRIBUTARY_TLS_KEY_FILE" },
      folder,
    ),
    trustedProxies: readProxies(read),
    forwardedHeader: read.value("TRIBUTARY_FORWARDED_HEADER"),
    /** Where operators are listened to; null: nowhere. */
    operator,
    /** Whether the listener of callers has /metrics. */
    servesMetrics: read.value("TRIBUTARY_METRICS") === "both" || operator === null,
    /** Whether webhooks may lead into private networks. */
    webhookPrivate: read.value("TRIBUTARY_WEBHOOK_PRIVATE"),
    /** Absolute. */
    dataDir,
    /** Folder of downloaded weights. Absolute. */
    cacheDir: readCacheDir(read, environment, folder),
    database,
    /** How many days receipts stay (null: for ever), and then the folder of their files. Absolute. */
    receiptDays: read.value("TRIBUTARY_RECEIPT_DAYS"),
    archiveDir: resolve(folder, read.value("TRIBUTARY_ARCHIVE_DIR") ?? join(dataDir, "archive")),
    sqliteSynchronous: read.value("TRIBUTARY_SQLITE_SYNCHRONOUS"),
    /** null: the embedded engine. */
    deployment: readDeployment(read, contextTokens, folder),
    /** Weights of the embedded engine; null: the catalog's default. */
    model: read.value("TRIBUTARY_MODEL"),
    acceptedLicenses: read.value("TRIBUTARY_ACCEPT_LICENSE") ?? [],
    /** Context length in tokens as the operator gave it, for either kind of deployment. */
    contextTokens,
    /** The variables of the embedded engine's process: all but the service's own. */
    environment: pickEngineVariables(environment),
    prices: {
      inputNanosPerMillion: read.value("TRIBUTARY_INPUT_PRICE"),
      outputNanosPerMillion: read.value("TRIBUTARY_OUTPUT_PRICE"),
    },
    startingCreditNanos: read.value("TRIBUTARY_STARTING_CREDIT"),
    // Of several replicas on one database each could be the first, so that its key would be in one of many logs.
    firstAccount:
      read.value("TRIBUTARY_FIRST_ACCOUNT") ?? (database.kind === "sqlite" ? "make" : "none"),
    /** A client's key, for commands that ask a running service. */
    clientKey: read.value("TRIBUTARY_API_KEY"),
    legacyAliases: readAliases(read),
    keepaliveMs: read.value("TRIBUTARY_KEEPALIVE_MS"),
    drainDelaySeconds: read.value("TRIBUTARY_DRAIN_DELAY_SECONDS"),
    drainSeconds: read.value("TRIBUTARY_DRAIN_SECONDS"),
    /** What becomes of it during a drain. */
    drainListener: read.value("TRIBUTARY_DRAIN_LISTENER"),
    logLevel: read.value("TRIBUTARY_LOG_LEVEL"),
    logFormat: read.value("TRIBUTARY_LOG_FORMAT"),
    concurrencyPerAccount: read.value("TRIBUTARY_CONCURRENCY_PER_ACCOUNT"),
    requestsPerMinute: read.value("TRIBUTARY_REQUESTS_PER_MINUTE"),
    leaseSeconds: read.value("TRIBUTARY_LEASE_SECONDS"),
    corsOrigins: readOrigins(read),
    labelFrom: read.value("TRIBUTARY_LABEL_FROM") ?? [],
    generationsMax: read.value("TRIBUTARY_GENERATIONS_MAX"),
    /** Processes that serve. */
    processes: readProcesses(read),
    sendBufferBytes: read.value("TRIBUTARY_SEND_BUFFER_BYTES"),
  };
}

function readCacheDir(read: SettingReader, environment: Environment, folder: string): string {
  const given = read.value("TRIBUTARY_CACHE_DIR");
  if (given !== null) return resolve(folder, given);
  return cacheFolder({ environment, platform: process.platform, home: homeFolder() });
}

function readProcesses(read: SettingReader): number {
  const text = read.value("TRIBUTARY_PROCESSES").toLowerCase();
  if (text === "auto") return availableParallelism();
  const number = /^\d{1,3}$/.test(text) ? Number(text) : 0;
  if (number >= 1 && number <= 256) return number;
  read.problem("TRIBUTARY_PROCESSES", "write it as 4 or auto, or remove it to get 1");
  return 1;
}

function readHost(
  read: SettingReader,
  name: "TRIBUTARY_HOST" | "TRIBUTARY_OPERATOR_HOST",
  folder: string,
): string {
  const host = read.value(name);
  if (host.startsWith("unix:")) {
    const path = host.slice("unix:".length);
    if (path === "") read.problem(name, "write it as unix:/run/tributary/callers");
    return `unix:${resolve(folder, path)}`;
  }
  if (!/^(?:[\w.-]+|\[?[0-9a-fA-F:.]+(?:%\w+)?\]?)$/.test(host))
    read.problem(name, `give the port in ${name.replace("HOST", "PORT")}`);
  return host.replace(/^\[|\]$/g, "");
}

/** null: neither is set, or there is a problem. */
function readCertificateFiles(
  read: SettingReader,
  names: { readonly certificate: VariableName; readonly key: VariableName },
  folder: string,
): CertificateFiles | null {
  const [certificateFile, keyFile] = [read.text(names.certificate), read.text(names.key)];
  if (certificateFile === null && keyFile === null) return null;
  for (const [name, path, other] of [
    [names.certificate, certificateFile, names.key],
    [names.key, keyFile, names.certificate],
  ] as const) {
    if (path === null) read.problem(name, `${other} is set: set both, or remove that`);
    else if (path.includes("-----BEGIN"))
      read.problem(name, "write the text into a file, and its path here");
  }
  if (certificateFile === null || keyFile === null) return null;
  return { certificateFile: resolve(folder, certificateFile), keyFile: resolve(folder, keyFile) };
}

function readProxies(read: SettingReader): readonly string[] {
  const proxies = read.list("TRIBUTARY_TRUSTED_PROXIES");
  const wrong = proxies.find((proxy) => !isProxyName(proxy));
  if (wrong !== undefined)
    read.problem(
      "TRIBUTARY_TRUSTED_PROXIES",
      `${wrong} is none: write addresses as 10.0.0.7, fd00::/8 or unix; a name could lead elsewhere tomorrow`,
    );
  return proxies;
}

function readPort(read: SettingReader): number {
  const name = "TRIBUTARY_PORT";
  if (!isServiceAddress(read.text(name) ?? "")) return read.value(name);
  read.problem(
    name,
    "Kubernetes sets it in every pod for a Service named tributary: set enableServiceLinks: false in the pod, or TRIBUTARY_PORT itself",
  );
  return 0;
}

function readOperator(read: SettingReader, folder: string): OperatorConfig | null {
  const host = readHost(read, "TRIBUTARY_OPERATOR_HOST", folder);
  const text = read.value("TRIBUTARY_OPERATOR_PORT");
  const publicUrl = read.value("TRIBUTARY_OPERATOR_URL");
  if (publicUrl !== null && !/^https?:$/.test(URL.parse(publicUrl)?.protocol ?? ""))
    read.problem("TRIBUTARY_OPERATOR_URL", "write it as https://operators.example.org");
  const tls = readCertificateFiles(
    read,
    {
      certificate: "TRIBUTARY_OPERATOR_TLS_CERTIFICATE_FILE",
      key: "TRIBUTARY_OPERATOR_TLS_KEY_FILE",
    },
    folder,
  );
  if (text === "off") return null;
  // A port that was not asked for gives way to a program that is there already.
  if (text === null) {
    const port = read.text("TRIBUTARY_PORT") === "0" ? 0 : operatorPortDefault;
    return { host, port, spare: !host.startsWith("unix:"), publicUrl, tls };
  }
  const port = /^\d{1,5}$/.test(text) ? Number(text) : -1;
  if (port < 0 || port > 65_535)
    read.problem("TRIBUTARY_OPERATOR_PORT", "write a port such as 8081, or off");
  return { host, port, spare: false, publicUrl, tls };
}

function readDatabase(read: SettingReader, dataDir: string, folder: string): DatabaseConfig {
  const given = read.textOrFile("TRIBUTARY_DATABASE_URL", "TRIBUTARY_DATABASE_URL_FILE");
  const connections = read.value("TRIBUTARY_DATABASE_CONNECTIONS");
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
  else
    for (const parameter of ["sslrootcert", "sslcert", "sslkey"])
      read.ensureReadable(name, parsed.searchParams.get(parameter), parameter);
}

/** How an OpenAI-compatible deployment is reached. Times in milliseconds. */
function readDeployment(read: SettingReader, contextTokens: number | null, folder: string) {
  const url = read.value("TRIBUTARY_DEPLOYMENT_URL");
  const rest = {
    apiKey: readApiKey(read),
    /** null: the first model that the deployment lists. */
    model: read.value("TRIBUTARY_DEPLOYMENT_MODEL"),
    contextTokens,
    dialect: read.value("TRIBUTARY_DEPLOYMENT_DIALECT"),
    /** Fields that the deployment takes beside those of its dialect. */
    extraFields: read.value("TRIBUTARY_DEPLOYMENT_EXTRA_FIELDS") ?? [],
    reasoningField: read.value("TRIBUTARY_DEPLOYMENT_REASONING_FIELD"),
    connectMs: read.value("TRIBUTARY_DEPLOYMENT_CONNECT_MS"),
    firstEventMs: read.value("TRIBUTARY_DEPLOYMENT_FIRST_EVENT_MS"),
    silenceMs: read.value("TRIBUTARY_DEPLOYMENT_SILENCE_MS"),
    tls: readDeploymentTls(read, folder),
  };
  /** Without a slash at the end; `/v1` may or may not be there. */
  return url === null ? null : { url: readDeploymentUrl(read, url), ...rest };
}

/** Read at the start already, as no connection could be made without them. */
function readDeploymentTls(read: SettingReader, folder: string) {
  const pair = readCertificateFiles(
    read,
    {
      certificate: "TRIBUTARY_DEPLOYMENT_TLS_CERTIFICATE_FILE",
      key: "TRIBUTARY_DEPLOYMENT_TLS_KEY_FILE",
    },
    folder,
  );
  const ca = read.text("TRIBUTARY_DEPLOYMENT_TLS_CA_FILE");
  const files = {
    caFile: ca === null ? null : resolve(folder, ca),
    certificateFile: pair?.certificateFile ?? null,
    keyFile: pair?.keyFile ?? null,
  };
  read.ensureReadable("TRIBUTARY_DEPLOYMENT_TLS_CA_FILE", files.caFile);
  read.ensureReadable("TRIBUTARY_DEPLOYMENT_TLS_CERTIFICATE_FILE", files.certificateFile);
  read.ensureReadable("TRIBUTARY_DEPLOYMENT_TLS_KEY_FILE", files.keyFile);
  return files;
}

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

function readAliases(read: SettingReader): readonly [string, string] {
  const names = read.list("TRIBUTARY_LEGACY_ALIASES");
  const [first, second] = names;
  if (names.length === 2 && first !== undefined && second !== undefined && first !== second)
    return [first, second];
  read.problem("TRIBUTARY_LEGACY_ALIASES", "write it as old-name,other-name");
  return ["", ""];
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
    "while TRIBUTARY_PROCESSES is above 1":
      config.processes > 1 ? ["TRIBUTARY_SEND_BUFFER_BYTES"] : [],
    "without TRIBUTARY_DEPLOYMENT_URL": elsewhere
      ? []
      : [
          "TRIBUTARY_DEPLOYMENT_API_KEY",
          "TRIBUTARY_DEPLOYMENT_API_KEY_FILE",
          "TRIBUTARY_DEPLOYMENT_TLS_CA_FILE",
          "TRIBUTARY_DEPLOYMENT_TLS_CERTIFICATE_FILE",
          "TRIBUTARY_DEPLOYMENT_TLS_KEY_FILE",
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
