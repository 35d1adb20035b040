import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseEnv } from "node:util";
import { limits } from "../limits.ts";
import {
  choice,
  credits,
  integer,
  type KindValue,
  secretFile,
  some,
  text,
  type Variable,
} from "./variable-kinds.ts";

/** Names and texts, as a process gets them. */
export type Environment = Readonly<Record<string, string | undefined>>;

const dayMs = 86_400_000;

/** Every setting of the service. `docs/configuration.md` is compared with this table by a test. */
export const variables = {
  TRIBUTARY_HOST: {
    kind: text("a host name or an IP address, without scheme and port, or `unix:` and a path"),
    default: "127.0.0.1",
    meaning:
      "where to listen; `0.0.0.0` or `::` for every interface; `unix:/run/tributary/callers` for a socket, which has no port",
  },
  TRIBUTARY_PORT: {
    kind: integer(0, 65_535),
    default: "8080",
    meaning: "where to listen; 0 picks a free port and prints it",
  },
  TRIBUTARY_TLS_CERTIFICATE_FILE: {
    kind: text("a path of a file with certificates as PEM, the service's own first"),
    default: null,
    otherwise: "no TLS",
    meaning:
      "callers are listened to under TLS, with this certificate; a new one in the file is taken without a restart",
  },
  TRIBUTARY_TLS_KEY_FILE: {
    kind: text("a path of a file with a private key as PEM, without a passphrase"),
    default: null,
    otherwise: "no TLS",
    meaning: "the key of that certificate",
  },
  TRIBUTARY_TRUSTED_PROXIES: {
    kind: text(
      "addresses and networks such as `10.0.0.0/8` with commas between them, and `unix` for the socket",
    ),
    default: null,
    otherwise: "none",
    meaning:
      "proxies whose word is taken for the address that a request comes from, in log lines and in limits; for operators too",
  },
  TRIBUTARY_FORWARDED_HEADER: {
    kind: choice("x-forwarded-for", "forwarded"),
    default: "x-forwarded-for",
    meaning: "the header that those proxies set; the other one is not looked at",
  },
  TRIBUTARY_DATA_DIR: {
    kind: text("a path of a folder"),
    default: "./data",
    meaning:
      "folder of the ledger file; weights in its `models` folder are used too; made when missing",
  },
  TRIBUTARY_RECEIPT_DAYS: {
    kind: integer(limits.receiptDaysMin, 36_500),
    default: null,
    otherwise: "for ever",
    meaning: "days that receipts stay; older ones are archived, and their sums are kept",
  },
  TRIBUTARY_ARCHIVE_DIR: {
    kind: text("a path of a folder"),
    default: null,
    otherwise: "`archive` in the data folder",
    meaning: "folder of the files of archived receipts; made when the first is",
  },
  TRIBUTARY_CACHE_DIR: {
    kind: text("a path of a folder"),
    default: null,
    otherwise: "`tributary` in the user's cache folder",
    meaning:
      "folder of downloaded weights, shared by every service of this user; made when missing",
  },
  TRIBUTARY_DATABASE_URL: {
    kind: text("`sqlite:PATH` or `postgres://USER:PASSWORD@HOST:PORT/DATABASE`"),
    default: null,
    otherwise: "`ledger.sqlite` in the data folder",
    meaning: "where the ledger is kept; several replicas share one PostgreSQL",
  },
  TRIBUTARY_DATABASE_URL_FILE: {
    kind: secretFile("TRIBUTARY_DATABASE_URL"),
    default: null,
    otherwise: "no file",
    meaning: "the same from a file, for an address with a password; not both",
  },
  TRIBUTARY_DATABASE_CONNECTIONS: {
    kind: integer(1, 1_000),
    default: String(limits.ledgerConnections),
    meaning: "PostgreSQL: connections of this process for requests at most",
  },
  TRIBUTARY_SQLITE_SYNCHRONOUS: {
    kind: choice("full", "normal"),
    default: "full",
    meaning:
      "`full`: what was admitted or settled survives a power cut; `normal`: it survives a crash of the process only, and commits are cheaper",
  },
  TRIBUTARY_DEPLOYMENT_URL: {
    kind: text("an `http://` or `https://` address, with or without `/v1`"),
    default: null,
    otherwise: "the embedded engine",
    meaning: "base address of an OpenAI-compatible deployment",
  },
  TRIBUTARY_DEPLOYMENT_API_KEY: {
    kind: text("visible ASCII characters"),
    default: null,
    otherwise: "no key is sent",
    meaning: "key for the deployment",
    secret: true,
  },
  TRIBUTARY_DEPLOYMENT_API_KEY_FILE: {
    kind: secretFile("TRIBUTARY_DEPLOYMENT_API_KEY"),
    default: null,
    otherwise: "no file",
    meaning: "the same from a file; not both",
  },
  TRIBUTARY_DEPLOYMENT_TLS_CA_FILE: {
    kind: text("a path of a file with certificates as PEM"),
    default: null,
    otherwise: "the authorities that Node knows",
    meaning: "authorities, one of which has signed the certificate of the deployment",
  },
  TRIBUTARY_DEPLOYMENT_TLS_CERTIFICATE_FILE: {
    kind: text("a path of a file with certificates as PEM, the service's own first"),
    default: null,
    otherwise: "no certificate is shown",
    meaning: "the certificate by which the deployment knows this service",
  },
  TRIBUTARY_DEPLOYMENT_TLS_KEY_FILE: {
    kind: text("a path of a file with a private key as PEM, without a passphrase"),
    default: null,
    otherwise: "no certificate is shown",
    meaning: "the key of that certificate",
  },
  TRIBUTARY_DEPLOYMENT_MODEL: {
    kind: text("a model name"),
    default: null,
    otherwise: "the first one that the deployment lists",
    meaning: "the deployment's name of the model",
  },
  TRIBUTARY_DEPLOYMENT_CONTEXT_TOKENS: {
    kind: integer(16, 100_000_000),
    default: null,
    otherwise: "asked from the deployment where it tells",
    meaning: "context length in tokens",
  },
  TRIBUTARY_DEPLOYMENT_DIALECT: {
    kind: choice("auto", "vllm", "sglang", "llama-cpp", "ollama", "generic"),
    default: "auto",
    meaning: "which engine the deployment is; `auto` asks it",
  },
  TRIBUTARY_DEPLOYMENT_EXTRA_FIELDS: {
    kind: some("continuous_usage_stats", "strict", "top_k"),
    default: null,
    otherwise: "what the dialect is known to take",
    meaning:
      "fields beyond the standard that the deployment takes although its dialect does not say so",
  },
  TRIBUTARY_DEPLOYMENT_REASONING_FIELD: {
    kind: choice("reasoning_content", "reasoning"),
    default: "reasoning_content",
    meaning: "field in which earlier reasoning is given back to the deployment",
  },
  TRIBUTARY_DEPLOYMENT_CONNECT_MS: {
    kind: integer(1, dayMs),
    default: "5000",
    meaning: "how long a connection to the deployment may take",
  },
  TRIBUTARY_DEPLOYMENT_FIRST_EVENT_MS: {
    kind: integer(1, dayMs),
    default: "600000",
    meaning: "how long the deployment may take to its first event, whatever comments it sends",
  },
  TRIBUTARY_DEPLOYMENT_SILENCE_MS: {
    kind: integer(1, dayMs),
    default: "120000",
    meaning: "how long the deployment may be silent between two events",
  },
  TRIBUTARY_MODEL: {
    kind: text(
      "a name of `tributary model list`, a path of a `.gguf` file, `hf:OWNER/REPOSITORY/FILE`, or an `https://` address",
    ),
    default: null,
    otherwise: "the catalog's default",
    meaning: "weights of the embedded engine",
  },
  TRIBUTARY_ACCEPT_LICENSE: {
    kind: some("gemma"),
    default: null,
    otherwise: "none is accepted",
    meaning: "licenses whose terms you read and accept; some weights are downloaded only then",
  },
  TRIBUTARY_INPUT_PRICE: {
    kind: credits(1_000_000),
    default: "1",
    meaning: "credits for a million input tokens",
  },
  TRIBUTARY_OUTPUT_PRICE: {
    kind: credits(1_000_000),
    default: "4",
    meaning: "credits for a million output tokens",
  },
  TRIBUTARY_STARTING_CREDIT: {
    kind: credits(1_000_000_000),
    default: "10",
    meaning: "credit of the account that the first start makes",
  },
  TRIBUTARY_FIRST_ACCOUNT: {
    kind: choice("make", "none"),
    default: null,
    otherwise: "`make` on SQLite, `none` on PostgreSQL",
    meaning:
      "`make`: a start on an empty ledger makes an account and a key, shown on a terminal, else written to `first-key` in the data folder",
  },
  TRIBUTARY_LEGACY_ALIASES: {
    kind: text("two different names with a comma between them"),
    default: "service-llm-legacy,service-llm-compat",
    meaning: "the two entries of the model list",
  },
  TRIBUTARY_KEEPALIVE_MS: {
    kind: integer(10, 3_600_000),
    default: "10000",
    meaning: "silence on a stream before a keepalive",
  },
  TRIBUTARY_DRAIN_DELAY_SECONDS: {
    kind: integer(0, 3_600),
    default: "0",
    meaning:
      "how long after SIGTERM or Ctrl-C requests are still served while `/readyz` fails, for balancers to see it; a second signal ends it",
  },
  TRIBUTARY_DRAIN_SECONDS: {
    kind: integer(0, 86_400),
    default: "30",
    meaning: "how long running generations may go on after that",
  },
  TRIBUTARY_DRAIN_LISTENER: {
    kind: choice("open", "closed"),
    default: "open",
    meaning:
      "meanwhile: `open` answers new requests with `503` (`529` for Messages); `closed` takes no new connections, and serves what comes on those that exist",
  },
  TRIBUTARY_LOG_LEVEL: {
    kind: choice("trace", "debug", "info", "warn", "error", "silent"),
    default: "info",
    meaning: "the least severe line that is written; `debug` may quote what a deployment said",
  },
  TRIBUTARY_LOG_FORMAT: {
    kind: choice("auto", "json", "pretty"),
    default: "auto",
    meaning: "`auto`: pretty on a terminal, JSON lines otherwise",
  },
  TRIBUTARY_CONCURRENCY_PER_ACCOUNT: {
    kind: integer(1, limits.concurrencyMax),
    default: "4",
    meaning: "generations of one account at a time",
  },
  TRIBUTARY_REQUESTS_PER_MINUTE: {
    kind: integer(1, limits.requestsPerMinuteMax),
    default: "600",
    meaning: "requests of one key in any 60 seconds",
  },
  TRIBUTARY_LEASE_SECONDS: {
    kind: integer(1, 86_400),
    default: String(limits.leaseSecondsDefault),
    meaning: "how long a reservation outlives a dead process",
  },
  TRIBUTARY_CORS_ORIGINS: {
    kind: text("origins such as `https://chat.example.org` with commas between them"),
    default: null,
    otherwise: "no browser",
    meaning: "origins that browsers may call from",
  },
  TRIBUTARY_LABEL_FROM: {
    kind: some("user", "safety_identifier", "metadata.user_id"),
    default: null,
    otherwise: "only the header `x-tributary-label`",
    meaning:
      "fields of a request that say for whom it is where the header does not, in this order; on receipts and in usage",
  },
  TRIBUTARY_GENERATIONS_MAX: {
    kind: integer(1, 1_000_000),
    default: "1000",
    meaning: "running generations of this process; one more is answered `503`",
  },
  TRIBUTARY_PROCESSES: {
    kind: text("a whole number from 1 to 256, or `auto`"),
    default: "1",
    meaning:
      "processes that serve; `auto`: one for each core. Limits of a process are those of each: docs/processes.md",
  },
  TRIBUTARY_SEND_BUFFER_BYTES: {
    kind: integer(16_384, 16_777_216),
    default: null,
    otherwise: "what the system sees fit",
    meaning:
      "how much of an answer the kernel may hold for a reader that has stopped; needs `node:ffi`, an experimental part of Node 26",
  },
  TRIBUTARY_OPERATOR_HOST: {
    kind: text("a host name or an IP address, without scheme and port, or `unix:` and a path"),
    default: "127.0.0.1",
    meaning: "where to listen for operators",
  },
  TRIBUTARY_OPERATOR_PORT: {
    kind: text("a whole number from 0 to 65535, or `off`"),
    default: null,
    otherwise: "8081, or a free port where that is taken or `TRIBUTARY_PORT` is 0",
    meaning: "where to listen for operators; `off`: nowhere",
  },
  TRIBUTARY_OPERATOR_URL: {
    kind: text("an `http://` or `https://` address"),
    default: null,
    otherwise: "operators come by an address or `localhost`",
    meaning:
      "the address by which operators come through a proxy; requests for other names are refused",
  },
  TRIBUTARY_OPERATOR_TLS_CERTIFICATE_FILE: {
    kind: text("a path of a file with certificates as PEM, the service's own first"),
    default: null,
    otherwise: "no TLS",
    meaning: "the same for operators",
  },
  TRIBUTARY_OPERATOR_TLS_KEY_FILE: {
    kind: text("a path of a file with a private key as PEM, without a passphrase"),
    default: null,
    otherwise: "no TLS",
    meaning: "the key of that certificate",
  },
  TRIBUTARY_METRICS: {
    kind: choice("operators", "both"),
    default: "operators",
    meaning:
      "where `/metrics` is: for operators alone, or also where callers come; where operators are listened to nowhere it is there in any case",
  },
  TRIBUTARY_OPERATOR_TOKEN: {
    kind: text("a token of `tributary operator create`"),
    default: null,
    otherwise: "no token",
    meaning: "token with which commands ask a service from afar: `tributary api`",
    secret: true,
  },
  TRIBUTARY_WEBHOOK_PRIVATE: {
    kind: choice("refuse", "allow"),
    default: "refuse",
    meaning:
      "whether webhooks may lead to this machine and into private networks, and by `http://` too; refused, an operator's token reaches nothing behind your firewall",
  },
  TRIBUTARY_API_KEY: {
    kind: text("a key of `tributary key create`"),
    default: null,
    otherwise: "no key",
    meaning: "key with which `doctor --url` asks a running service, and which `connect` writes",
    secret: true,
  },
} as const satisfies Record<`TRIBUTARY_${string}`, Variable>;

/** The name of a setting. */
export type VariableName = keyof typeof variables;

/** What a setting is read as; null: it is not set and has no default. */
export type ValueOf<Name extends VariableName> =
  | KindValue<(typeof variables)[Name]["kind"]>
  | ((typeof variables)[Name]["default"] extends string ? never : null);

/** The process's variables with those of `.env` in the folder beneath them. */
export function readEnvironment(folder: string): Environment {
  const file = readOptional(join(folder, ".env"));
  return { ...(file === null ? {} : parseEnv(file)), ...processEnvironment() };
}

/** The text of a small file that holds a secret, without the newline at its end. Throws what the system says. */
export function readSecretFile(path: string): string {
  return readFileSync(path, "utf8").replace(/\r?\n$/, "");
}

/** The process's variables alone, for what a start needs before it reads a file. The only reader of process.env. */
export function processEnvironment(): Environment {
  return process.env;
}

function readOptional(path: string): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    // A folder named .env is a virtual environment of Python, not settings.
    const code = error instanceof Error && "code" in error ? error.code : null;
    if (code === "ENOENT" || code === "EISDIR") return null;
    throw error;
  }
}
