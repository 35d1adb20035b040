import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Config, parseConfig } from "../../src/config/config.ts";
import type { Environment } from "../../src/config/environment.ts";
import { formatProblem } from "../../src/config/setting-reader.ts";

const folder = "/srv/tributary";

function configOf(environment: Environment): Config {
  const parsed = parseConfig(environment, folder);
  if (!parsed.ok) throw new Error(parsed.problems.map(formatProblem).join("\n"));
  return parsed.config;
}

function linesOf(environment: Environment): readonly string[] {
  const parsed = parseConfig(environment, folder);
  return parsed.ok ? [] : parsed.problems.map(formatProblem);
}

describe("settings", () => {
  it("have the documented defaults when nothing is set", () => {
    expect(parseConfig({}, folder)).toEqual({
      ok: true,
      warnings: [],
      config: {
        host: "127.0.0.1",
        port: 8080,
        tls: null,
        trustedProxies: [],
        forwardedHeader: "x-forwarded-for",
        operator: { host: "127.0.0.1", port: 8081, spare: true, publicUrl: null, tls: null },
        servesMetrics: false,
        webhookPrivate: "refuse",
        dataDir: "/srv/tributary/data",
        cacheDir: expect.stringContaining("tributary") as string,
        database: { kind: "sqlite", path: "/srv/tributary/data/ledger.sqlite" },
        receiptDays: null,
        archiveDir: "/srv/tributary/data/archive",
        sqliteSynchronous: "full",
        deployment: null,
        model: null,
        acceptedLicenses: [],
        contextTokens: null,
        environment: {},
        prices: { inputNanosPerMillion: 1_000_000_000n, outputNanosPerMillion: 4_000_000_000n },
        startingCreditNanos: 10_000_000_000n,
        firstAccount: "make",
        clientKey: null,
        legacyAliases: ["service-llm-legacy", "service-llm-compat"],
        keepaliveMs: 10_000,
        drainDelaySeconds: 0,
        drainSeconds: 30,
        drainListener: "open",
        logLevel: "info",
        logFormat: "auto",
        concurrencyPerAccount: 4,
        requestsPerMinute: 600,
        leaseSeconds: 60,
        corsOrigins: [],
        labelFrom: [],
        generationsMax: 1000,
        processes: 1,
        sendBufferBytes: null,
      } satisfies Config,
    });
  });

  it("take every value that is given", () => {
    const config = configOf({
      TRIBUTARY_HOST: "0.0.0.0",
      TRIBUTARY_PORT: "0",
      TRIBUTARY_DATA_DIR: "/var/lib/tributary",
      TRIBUTARY_DATABASE_URL: "sqlite:books/ledger.db",
      TRIBUTARY_SQLITE_SYNCHRONOUS: "normal",
      TRIBUTARY_DEPLOYMENT_URL: " http://127.0.0.1:8000/v1/ ",
      TRIBUTARY_DEPLOYMENT_API_KEY: "sk-abc",
      TRIBUTARY_DEPLOYMENT_MODEL: "meta/llama",
      TRIBUTARY_DEPLOYMENT_CONTEXT_TOKENS: "131072",
      TRIBUTARY_DEPLOYMENT_DIALECT: "vLLM",
      TRIBUTARY_DEPLOYMENT_EXTRA_FIELDS: "top_k, strict",
      TRIBUTARY_DEPLOYMENT_REASONING_FIELD: "reasoning",
      TRIBUTARY_DEPLOYMENT_CONNECT_MS: "1",
      TRIBUTARY_DEPLOYMENT_FIRST_EVENT_MS: "2",
      TRIBUTARY_DEPLOYMENT_SILENCE_MS: "3",
      TRIBUTARY_INPUT_PRICE: "0.25",
      TRIBUTARY_OUTPUT_PRICE: "0",
      TRIBUTARY_STARTING_CREDIT: "0.000000001",
      TRIBUTARY_LEGACY_ALIASES: "one, two",
      TRIBUTARY_CORS_ORIGINS: "https://a.example, http://localhost:3000",
      TRIBUTARY_LOG_LEVEL: "debug",
      TRIBUTARY_LOG_FORMAT: "json",
      PIP_INDEX_URL: "http://index.internal/simple",
      TRIBUTARY_CACHE_DIR: "cache",
      HOME: "elsewhere",
    });
    expect(config).toMatchObject({
      host: "0.0.0.0",
      port: 0,
      dataDir: "/var/lib/tributary",
      cacheDir: "/srv/tributary/cache",
      database: { kind: "sqlite", path: "/srv/tributary/books/ledger.db" },
      sqliteSynchronous: "normal",
      deployment: {
        url: "http://127.0.0.1:8000/v1",
        apiKey: "sk-abc",
        model: "meta/llama",
        contextTokens: 131_072,
        dialect: "vllm",
        extraFields: ["strict", "top_k"],
        reasoningField: "reasoning",
        connectMs: 1,
        firstEventMs: 2,
        silenceMs: 3,
      },
      contextTokens: 131_072,
      environment: { PIP_INDEX_URL: "http://index.internal/simple" },
      prices: { inputNanosPerMillion: 250_000_000n, outputNanosPerMillion: 0n },
      startingCreditNanos: 1n,
      legacyAliases: ["one", "two"],
      corsOrigins: ["https://a.example", "http://localhost:3000"],
      logLevel: "debug",
      logFormat: "json",
    });
  });

  it("name certificates and sockets by paths from the working folder", () => {
    const config = configOf({
      TRIBUTARY_HOST: "unix:run/callers",
      TRIBUTARY_OPERATOR_HOST: "unix:/run/operators",
      TRIBUTARY_TLS_CERTIFICATE_FILE: "tls/cert.pem",
      TRIBUTARY_TLS_KEY_FILE: "/etc/key.pem",
      TRIBUTARY_OPERATOR_TLS_CERTIFICATE_FILE: "/a",
      TRIBUTARY_OPERATOR_TLS_KEY_FILE: "/b",
    });
    expect(config).toMatchObject({
      host: "unix:/srv/tributary/run/callers",
      tls: { certificateFile: "/srv/tributary/tls/cert.pem", keyFile: "/etc/key.pem" },
      operator: {
        host: "unix:/run/operators",
        spare: false,
        tls: { certificateFile: "/a", keyFile: "/b" },
      },
    });
  });

  it("stop where a file for TLS towards the deployment or PostgreSQL cannot be read", () => {
    const lines = linesOf({
      TRIBUTARY_DEPLOYMENT_URL: "https://engine.example",
      TRIBUTARY_DEPLOYMENT_TLS_CA_FILE: "ca.pem",
      TRIBUTARY_DATABASE_URL:
        "postgres://me:MARKER@db/ledger?sslmode=verify-full&sslkey=/no/key.pem",
    });
    expect(lines).toHaveLength(2);
    expect(lines.join("\n")).toMatch(
      /TRIBUTARY_DEPLOYMENT_TLS_CA_FILE=.*the file cannot be read \(ENOENT\)/,
    );
    expect(lines.join("\n")).toMatch(/TRIBUTARY_DATABASE_URL=.*sslkey cannot be read \(ENOENT\)/);
    expect(lines.join("\n")).not.toContain("MARKER");
  });

  it("want a certificate and its key, both by their paths", () => {
    const [alone] = linesOf({ TRIBUTARY_TLS_KEY_FILE: "/b" });
    expect(alone).toContain("TRIBUTARY_TLS_CERTIFICATE_FILE=");
    expect(alone).toContain("TRIBUTARY_TLS_KEY_FILE is set: set both, or remove that");
    const lines = linesOf({
      TRIBUTARY_OPERATOR_TLS_CERTIFICATE_FILE: "/a",
      TRIBUTARY_OPERATOR_TLS_KEY_FILE: "-----BEGIN PRIVATE KEY-----\nMARKER",
    });
    expect(lines.join("\n")).toContain("write the text into a file, and its path here");
    expect(lines.join("\n")).not.toContain("MARKER");
  });

  it("say how many processes serve", () => {
    expect(configOf({ TRIBUTARY_PROCESSES: "16" }).processes).toBe(16);
    expect(configOf({ TRIBUTARY_PROCESSES: "AUTO" }).processes).toBe(availableParallelism());
    const several = { TRIBUTARY_PROCESSES: "2", TRIBUTARY_SEND_BUFFER_BYTES: "65536" };
    expect(parseConfig(several, folder).warnings.join()).toContain("TRIBUTARY_SEND_BUFFER_BYTES");
  });

  it("count an empty value as none", () => {
    const config = configOf({
      TRIBUTARY_PORT: "",
      TRIBUTARY_DEPLOYMENT_URL: "  ",
      TRIBUTARY_MODEL: "",
    });
    expect([config.port, config.deployment, config.model]).toEqual([8080, null, null]);
  });

  it.each([
    ["sqlite:///var/lib/l.db", "/var/lib/l.db"],
    ["sqlite:/var/lib/l.db", "/var/lib/l.db"],
    ["sqlite://l.db", "/srv/tributary/l.db"],
  ])("read %s as a path", (url, path) => {
    expect(configOf({ TRIBUTARY_DATABASE_URL: url }).database).toEqual({ kind: "sqlite", path });
  });

  it.each([
    "postgres://me:p%40ss@db:5432/ledger?sslmode=require",
    "postgresql://db/ledger",
    "postgres://me@/ledger?host=/run/postgresql",
    "postgres:///ledger?host=/run/postgresql",
  ])("take %s as it is", (url) => {
    const database = { kind: "postgres", url, connections: 10 };
    expect(configOf({ TRIBUTARY_DATABASE_URL: url }).database).toEqual(database);
    const named = { TRIBUTARY_DATABASE_URL: url, TRIBUTARY_DATABASE_CONNECTIONS: "3" };
    expect(configOf(named).database).toEqual({ ...database, connections: 3 });
  });

  it.each(["::1", "[::1]", "0.0.0.0", "tributary.internal", "localhost"])(
    "take %s as a host",
    (host) => {
      expect(configOf({ TRIBUTARY_HOST: host }).host).toBe(host.replaceAll(/[[\]]/g, ""));
    },
  );
});

describe("a bad setting", () => {
  it.each([
    ["TRIBUTARY_PROCESSES", "0", "a whole number from 1 to 256, or auto; write it as 4 or auto"],
    ["TRIBUTARY_PROCESSES", "257", "a whole number from 1 to 256"],
    ["TRIBUTARY_PROCESSES", "all", "a whole number from 1 to 256"],
    ["TRIBUTARY_PORT", "65536", "a whole number from 0 to 65535"],
    ["TRIBUTARY_PORT", "80 80", "a whole number from 0 to 65535"],
    ["TRIBUTARY_PORT", "1e3", "a whole number"],
    ["TRIBUTARY_PORT", "-1", "a whole number"],
    ["TRIBUTARY_HOST", "http://0.0.0.0", "without scheme and port"],
    ["TRIBUTARY_HOST", "0.0.0.0/24", "without scheme and port"],
    ["TRIBUTARY_KEEPALIVE_MS", "0", "a whole number from 10"],
    ["TRIBUTARY_LEASE_SECONDS", "0", "a whole number from 1"],
    ["TRIBUTARY_LOG_LEVEL", "loud", "trace, debug, info, warn, error, silent"],
    ["TRIBUTARY_LOG_FORMAT", "xml", "auto, json, pretty"],
    ["TRIBUTARY_INPUT_PRICE", "-1", "credits from 0 to 1000000"],
    ["TRIBUTARY_OUTPUT_PRICE", "1,5", "at most 9 decimals"],
    ["TRIBUTARY_OUTPUT_PRICE", "0.0000000001", "at most 9 decimals"],
    ["TRIBUTARY_STARTING_CREDIT", "ten", "credits from 0"],
    ["TRIBUTARY_STARTING_CREDIT", "1000000000.1", "to 1000000000,"],
    ["TRIBUTARY_INPUT_PRICE", "1000001", "to 1000000,"],
    ["TRIBUTARY_LEGACY_ALIASES", "one", "two different names"],
    ["TRIBUTARY_LEGACY_ALIASES", "one,one", "two different names"],
    ["TRIBUTARY_LEGACY_ALIASES", "one,two,three", "two different names"],
    ["TRIBUTARY_CORS_ORIGINS", "https://a.example/", "origins such as"],
    ["TRIBUTARY_CORS_ORIGINS", "*", "a star is not offered"],
    ["TRIBUTARY_TRUSTED_PROXIES", "10.0.0.1, proxy.example", "proxy.example is none"],
    ["TRIBUTARY_TRUSTED_PROXIES", "10.0.0.0/33", "10.0.0.0/33 is none"],
    [
      "TRIBUTARY_FORWARDED_HEADER",
      "x-real-ip",
      "`x-forwarded-for`, `forwarded`".replaceAll("`", ""),
    ],
    ["TRIBUTARY_HOST", "unix:", "write it as unix:/run/tributary/callers"],
    ["TRIBUTARY_OPERATOR_HOST", "http://a", "give the port in TRIBUTARY_OPERATOR_PORT"],
    ["TRIBUTARY_DATABASE_URL", "ledger.db", "sqlite:PATH"],
    ["TRIBUTARY_DATABASE_URL", "sqlite:", "sqlite:PATH"],
    ["TRIBUTARY_DATABASE_URL", "sqlite::memory:", "name a file"],
    ["TRIBUTARY_DATABASE_URL", "postgres://db:port/ledger", "postgres://user:password@host"],
    ["TRIBUTARY_DATABASE_URL", "postgres:ledger", "postgres://user:password@host"],
    ["TRIBUTARY_DATABASE_URL", "postgres://db/", "name the database"],
    ["TRIBUTARY_FIRST_ACCOUNT", "yes", "make, none"],
    ["TRIBUTARY_DEPLOYMENT_URL", "127.0.0.1:8000", "http://"],
    ["TRIBUTARY_DEPLOYMENT_URL", "ftp://127.0.0.1", "http://"],
    ["TRIBUTARY_DEPLOYMENT_URL", "http://h/v1/chat/completions", "base address only"],
    ["TRIBUTARY_DEPLOYMENT_URL", "http://h/v1?key=1", "what follows the ?"],
    ["TRIBUTARY_DEPLOYMENT_DIALECT", "tgi", "auto, vllm, sglang, llama-cpp, ollama, generic"],
    ["TRIBUTARY_DEPLOYMENT_EXTRA_FIELDS", "top_k,min_p", "min_p is none of them"],
    ["TRIBUTARY_DEPLOYMENT_CONTEXT_TOKENS", "128k", "a whole number"],
    ["TRIBUTARY_SQLITE_SYNCHRONOUS", "off", "full, normal"],
  ])(
    "gives one line with the variable, the value and what is allowed: %s=%s",
    (name, value, allowed) => {
      const lines = linesOf({ [name]: value });
      expect(lines).toHaveLength(1);
      expect(lines[0]).toContain(`${name}=${JSON.stringify(value)}: allowed is `);
      expect(lines[0]).toContain(allowed);
      expect(lines[0]).toMatch(/; .{12,}$/);
      expect(lines[0]).not.toContain("\n");
    },
  );

  it("does not hide the others", () => {
    const lines = linesOf({ TRIBUTARY_PORT: "x", TRIBUTARY_LOG_LEVEL: "y", TRIBUTARY_HOST: "a b" });
    expect(lines.map((line) => line.split("=")[0])).toEqual([
      "TRIBUTARY_HOST",
      "TRIBUTARY_PORT",
      "TRIBUTARY_LOG_LEVEL",
    ]);
  });

  it("names the server and the database, without the password", () => {
    const [line] = linesOf({ TRIBUTARY_DATABASE_URL: "postgres://me:MARKER@db" });
    expect(line).toContain("name the database");
    expect(line).toContain("postgres://(not shown)@db");
    expect(line).not.toContain("MARKER");
  });

  it.each([
    { TRIBUTARY_DEPLOYMENT_API_KEY: "sk MARKER" },
    { TRIBUTARY_DEPLOYMENT_API_KEY: "sk-MARKER\nx" },
    { TRIBUTARY_DEPLOYMENT_URL: "http://me:MARKER@host" },
    { TRIBUTARY_DEPLOYMENT_URL: "http://me:MARKER@x@host" },
    { TRIBUTARY_DEPLOYMENT_URL: "me:MARKER@host" },
    { TRIBUTARY_DATABASE_URL: "postgres://me:a/MARKER@db/ledger" },
    { TRIBUTARY_DATABASE_URL: "postgres://me:a@MARKER@db/ledger" },
    { TRIBUTARY_DATABASE_URL: "postgres://me@MARKER@db/ledger" },
  ])("never shows a secret: %o", (environment) => {
    const lines = linesOf(environment);
    expect(lines).toHaveLength(1);
    expect(lines[0]).not.toContain("MARKER");
  });

  it("is shown in one short line, however long it is", () => {
    const [line = ""] = linesOf({ TRIBUTARY_PORT: "9\n".repeat(10_000) });
    expect(line.length).toBeLessThan(400);
    expect(line).not.toContain("\n");
  });
});

describe("a secret in a file", () => {
  let secrets = "";
  beforeEach(() => {
    secrets = mkdtempSync(join(tmpdir(), "tributary-secrets-"));
    writeFileSync(join(secrets, "url"), "postgres://me:MARKER@db/ledger\n");
    writeFileSync(join(secrets, "key"), "sk-MARKER\r\n");
    writeFileSync(join(secrets, "two-lines"), "sk-MARKER\nsecond\n");
    writeFileSync(join(secrets, "empty"), "\n");
  });
  afterEach(() => rmSync(secrets, { recursive: true }));

  it("counts as if it stood in the variable, without the newline at its end", () => {
    const config = configOf({
      TRIBUTARY_DATABASE_URL_FILE: join(secrets, "url"),
      TRIBUTARY_DEPLOYMENT_URL: "http://h",
      TRIBUTARY_DEPLOYMENT_API_KEY_FILE: join(secrets, "key"),
    });
    expect(config.database).toMatchObject({
      kind: "postgres",
      url: "postgres://me:MARKER@db/ledger",
    });
    expect(config.firstAccount).toBe("none");
    expect(config.deployment?.apiKey).toBe("sk-MARKER");
  });

  it("is found from the working folder", () => {
    const parsed = parseConfig({ TRIBUTARY_DATABASE_URL_FILE: "url" }, secrets);
    expect(parsed.ok && parsed.config.database.kind).toBe("postgres");
  });

  it.each([
    [{ TRIBUTARY_DATABASE_URL_FILE: "nowhere" }, "the file cannot be read (ENOENT)"],
    [{ TRIBUTARY_DATABASE_URL_FILE: "." }, "the file cannot be read (EISDIR)"],
    [{ TRIBUTARY_DATABASE_URL_FILE: "empty" }, "the file is empty"],
    [{ TRIBUTARY_DATABASE_URL_FILE: "key" }, "begin it with sqlite: and a path"],
    [
      { TRIBUTARY_DATABASE_URL_FILE: "url", TRIBUTARY_DATABASE_URL: "sqlite:MARKER" },
      "TRIBUTARY_DATABASE_URL is set too: remove one of the two",
    ],
    [{ TRIBUTARY_DEPLOYMENT_API_KEY_FILE: "two-lines" }, "without spaces and line breaks"],
    [
      { TRIBUTARY_DEPLOYMENT_API_KEY_FILE: "key", TRIBUTARY_DEPLOYMENT_API_KEY: "MARKER" },
      "TRIBUTARY_DEPLOYMENT_API_KEY is set too",
    ],
  ] as const)("stops the start with one line that shows no secret: %o", (environment, words) => {
    const parsed = parseConfig(environment, secrets);
    const lines = parsed.ok ? [] : parsed.problems.map(formatProblem);
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain(`${Object.keys(environment)[0]}=`);
    expect(lines[0]).toContain(words);
    expect(lines[0]).not.toContain("MARKER");
  });
});

describe("the first account", () => {
  it("is made on SQLite and not on PostgreSQL, unless it is said otherwise", () => {
    const postgres = { TRIBUTARY_DATABASE_URL: "postgres://h/d" };
    expect(configOf(postgres).firstAccount).toBe("none");
    expect(configOf({ ...postgres, TRIBUTARY_FIRST_ACCOUNT: "make" }).firstAccount).toBe("make");
    expect(configOf({ TRIBUTARY_FIRST_ACCOUNT: "none" }).firstAccount).toBe("none");
  });
});

describe("a variable that is no setting", () => {
  it.each([
    ["TRIBUTARY_PROT", "TRIBUTARY_PORT"],
    ["TRIBUTARY_DEPLOYMENT_KEY", "TRIBUTARY_DEPLOYMENT_API_KEY"],
    ["TRIBUTARY_DEPLOYMENT_TIMEOUT", "TRIBUTARY_DEPLOYMENT_URL"],
    ["TRIBUTARY_ENGINE_URL", "TRIBUTARY_DEPLOYMENT_URL"],
    ["TRIBUTARY_KEEP_ALIVE_MS", "TRIBUTARY_KEEPALIVE_MS"],
    ["TRIBUTARY_DATABASE", "TRIBUTARY_DATABASE_URL"],
    ["TRIBUTARY_DATABASE_ULR", "TRIBUTARY_DATABASE_URL"],
    ["TRIBUTARY_DATABASE_PASSWORD_FILE", "TRIBUTARY_DATABASE_URL"],
    ["TRIBUTARY_DB_URL", "TRIBUTARY_DATABASE_URL"],
    ["TRIBUTARY_PG_DSN", "TRIBUTARY_DATABASE_URL"],
    ["TRIBUTARY_LOG", "TRIBUTARY_LOG_LEVEL"],
    ["TRIBUTARY_MODEL_PATH", "TRIBUTARY_MODEL"],
  ])("stops the start when a setting was meant: %s", (name, meant) => {
    const lines = linesOf({ [name]: "MARKER" });
    expect(lines).toEqual([
      `${name} is no setting of Tributary; did you mean ${meant}? Rename or remove it`,
    ]);
  });

  it.each(["TRIBUTARY_XYZ", "TRIBUTARY_VERSION", "TRIBUTARY_KEY", "TRIBUTARY_URL"])(
    "is warned of when none was meant: %s",
    (name) => {
      const { ok, warnings } = parseConfig({ [name]: "MARKER" }, folder);
      expect(ok).toBe(true);
      expect(warnings).toEqual([
        `${name} is no setting of Tributary and has no effect; see docs/configuration.md`,
      ]);
    },
  );

  it("is left alone when it is empty", () => {
    expect(parseConfig({ TRIBUTARY_DATABASE_ULR: " " }, folder)).toMatchObject({
      ok: true,
      warnings: [],
    });
  });

  it("is left alone when Kubernetes sets it for a Service, whose own TRIBUTARY_PORT is explained", () => {
    const links = {
      TRIBUTARY_SERVICE_HOST: "10.0.0.7",
      TRIBUTARY_SERVICE_PORT: "80",
      TRIBUTARY_SERVICE_PORT_HTTP: "80",
      TRIBUTARY_PORT_80_TCP: "tcp://10.0.0.7:80",
      TRIBUTARY_PORT_80_TCP_PROTO: "tcp",
      TRIBUTARY_PORT_80_TCP_PORT: "80",
      TRIBUTARY_PORT_80_TCP_ADDR: "10.0.0.7",
      TRIBUTARY_DB_SERVICE_HOST: "10.0.0.8",
      TRIBUTARY_DB_PORT: "tcp://10.0.0.8:5432",
    };
    expect(parseConfig(links, folder)).toMatchObject({ ok: true, warnings: [] });
    const [line, ...others] = linesOf({ ...links, TRIBUTARY_PORT: "tcp://10.0.0.7:80" });
    expect(others).toEqual([]);
    expect(line).toMatch(/^TRIBUTARY_PORT="tcp:.*Kubernetes.*enableServiceLinks: false/);
  });
});

describe("a setting without effect", () => {
  it("is warned of when another setting makes it so", () => {
    expect(parseConfig({ TRIBUTARY_DEPLOYMENT_MODEL: "m" }, folder).warnings).toEqual([
      "TRIBUTARY_DEPLOYMENT_MODEL has no effect without TRIBUTARY_DEPLOYMENT_URL",
    ]);
    expect(
      parseConfig({ TRIBUTARY_DEPLOYMENT_URL: "http://h", TRIBUTARY_MODEL: "m" }, folder).warnings,
    ).toEqual(["TRIBUTARY_MODEL has no effect while TRIBUTARY_DEPLOYMENT_URL is set"]);
    expect(parseConfig({ TRIBUTARY_DATABASE_CONNECTIONS: "3" }, folder).warnings).toEqual([
      "TRIBUTARY_DATABASE_CONNECTIONS has no effect without PostgreSQL in TRIBUTARY_DATABASE_URL",
    ]);
    const both = {
      TRIBUTARY_DATABASE_URL: "postgres://h/d",
      TRIBUTARY_DATABASE_CONNECTIONS: "3",
      TRIBUTARY_SQLITE_SYNCHRONOUS: "full",
    };
    expect(parseConfig(both, folder).warnings).toEqual([
      "TRIBUTARY_SQLITE_SYNCHRONOUS has no effect while TRIBUTARY_DATABASE_URL names PostgreSQL",
    ]);
  });

  it("have /metrics where callers come only where that is said, or where operators come nowhere", () => {
    const of = (environment: Environment): unknown => {
      const parsed = parseConfig(environment, folder);
      return parsed.ok && parsed.config.servesMetrics;
    };
    expect(of({ TRIBUTARY_METRICS: "operators" })).toBe(false);
    expect(of({ TRIBUTARY_METRICS: "both" })).toBe(true);
    expect(of({ TRIBUTARY_OPERATOR_PORT: "off" })).toBe(true);
  });
});
