import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Config, parseConfig } from "../../src/config/config.ts";
import { type Gateway, openGateway } from "../../src/gateway.ts";
import type { StoreLedger } from "../../src/ledger/store-ledger.ts";
import { parseCredit } from "../../src/admission/price.ts";
import { type LogDestination, openLog } from "../../src/telemetry/log.ts";
import { openTelemetry } from "../../src/telemetry/telemetry.ts";
import type { Timers } from "../../src/timers.ts";
import { eventually } from "../doubles/eventually.ts";
import {
  type ScriptedDeployment,
  startScriptedDeployment,
  type ScriptedDeploymentSettings,
} from "../doubles/scripted-deployment.ts";
import { makeLedger } from "../ledger/made-ledger.ts";
import { openAnswerCheck } from "../wire/check-answer.ts";
import { ensureNoWireProblems, inspectWith } from "../wire/watch-answers.ts";
import { openOperatorLedger } from "./operator-ledger.ts";

inspectWith(openAnswerCheck);

/** A key with the account it spends from. */
export interface TestKey {
  readonly key: string;
  readonly accountId: string;
}

/** The real service over a scripted deployment, as a client sees it, with the operator's view beside it. */
export interface TestService extends AsyncDisposable {
  readonly url: string;
  readonly gateway: Gateway;
  readonly deployment: ScriptedDeployment;
  readonly ledger: StoreLedger;
  readonly config: Config;
  /** The key of the first account, which has 1,000 credits unless settings say otherwise. */
  readonly key: string;
  readonly accountId: string;
  /** Every log line so far. */
  readonly logLines: readonly string[];
  newKey(credit: string): Promise<TestKey>;
  post(path: string, body: unknown, init?: PostInit): Promise<Response>;
  /** Balance and held of an account in nanos, read from the ledger. */
  credit(accountId?: string): Promise<{ readonly balance: bigint; readonly held: bigint }>;
  /** The same once nothing is held any more. */
  settledCredit(accountId?: string): Promise<{ readonly balance: bigint; readonly held: bigint }>;
}

/** What a request may differ in. */
export interface PostInit {
  readonly key?: string | null;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

/** What a service may differ in. */
export interface TestServiceSettings {
  readonly environment?: Readonly<Record<string, string>>;
  readonly deployment?: ScriptedDeploymentSettings;
  /** Timers of the telemetry; the process's own where they are left out. */
  readonly telemetryTimers?: Timers;
  /** Timers and clock of requests and their answers; the process's own where they are left out. */
  readonly clock?: Timers & { readonly monotonicMs: () => number };
}

/** Starts a service on a free loopback port with a ledger of its own in a temporary folder. */
export async function startService(settings: TestServiceSettings = {}): Promise<TestService> {
  await using opened = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), "tributary-service-"));
  opened.defer(() => rm(folder, { recursive: true, force: true }));
  const deployment = opened.use(await startScriptedDeployment(settings.deployment));
  const config = configOf({
    TRIBUTARY_PORT: "0",
    TRIBUTARY_DATA_DIR: folder,
    TRIBUTARY_DEPLOYMENT_URL: deployment.url,
    TRIBUTARY_FIRST_ACCOUNT: "make",
    TRIBUTARY_STARTING_CREDIT: "1000",
    TRIBUTARY_LOG_LEVEL: "debug",
    // The gateway alone listens here, for callers.
    TRIBUTARY_OPERATOR_PORT: "off",
    ...settings.environment,
  });
  if (config.database.kind === "sqlite" && config.database.path.startsWith(folder))
    makeLedger(config.database.path);
  const logLines: string[] = [];
  const destination: LogDestination = { write: (text) => void logLines.push(text), flush() {} };
  const log = openLog({ level: config.logLevel, format: "json", terminal: false, destination });
  const telemetry = opened.use(
    openTelemetry({
      log,
      secrets: [],
      ...(settings.telemetryTimers === undefined ? {} : { timers: settings.telemetryTimers }),
    }),
  );
  const gateway = opened.use(
    await openGateway(config, {
      telemetry,
      onProgress: () => undefined,
      ...(settings.clock === undefined
        ? {}
        : { clock: { timers: settings.clock, monotonicMs: settings.clock.monotonicMs } }),
    }),
  );
  const ledger = opened.use(await openOperatorLedger(config));
  const { first } = gateway;
  if (first === null) throw new Error("the ledger was not empty");
  // A deployment that refuses to say what it is never gets ready.
  if (settings.deployment?.modelsStatus === undefined)
    await eventually(() => (gateway.describe().ready ? true : null), "a deployment that is ready");
  const owned = opened.move();
  const { url } = gateway.address;

  const credit: TestService["credit"] = async (accountId = first.account.id) => {
    const account = await ledger.showAccount(accountId);
    return { balance: account.balanceNanos, held: account.heldNanos };
  };
  return {
    url,
    gateway,
    deployment,
    ledger,
    config,
    key: first.secret,
    accountId: first.account.id,
    logLines,
    async newKey(amount) {
      const account = await ledger.createAccount("test", parseCredit(amount) ?? 0n);
      const { secret } = await ledger.createKey(account.id, "test");
      return { key: secret, accountId: account.id };
    },
    post: (path, body, init = {}) => post(url + path, body, { key: first.secret, ...init }),
    credit,
    settledCredit: (accountId) =>
      eventually(async () => {
        const now = await credit(accountId);
        return now.held === 0n ? now : null;
      }, "an account that holds nothing"),
    async [Symbol.asyncDispose]() {
      await owned.disposeAsync();
      // Some who start a service are no tests, with no hook that looks.
      ensureNoWireProblems();
    },
  };
}

/** A checked Config of the settings given, and nothing of this process's environment. */
export function configOf(environment: Readonly<Record<string, string>>): Config {
  const parsed = parseConfig(environment, tmpdir());
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  return parsed.config;
}

/** Posts a body: text and bytes as they are, anything else as JSON. */
export function post(url: string, body: unknown, init: PostInit = {}): Promise<Response> {
  return fetch(url, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      ...(init.key === null || init.key === undefined
        ? {}
        : { authorization: `Bearer ${init.key}` }),
      ...init.headers,
    },
    body: typeof body === "string" || body instanceof Uint8Array ? body : JSON.stringify(body),
    ...(init.signal === undefined ? {} : { signal: init.signal }),
  });
}

/** The three formats: path, the smallest body, and what it takes to ask for a number of output tokens. */
export const formats = [
  {
    name: "chat-completions",
    path: "/v1/chat/completions",
    body: { messages: [{ role: "user", content: "Hi" }] },
    outputField: "max_completion_tokens",
  },
  {
    name: "responses",
    path: "/v1/responses",
    body: { input: "Hi" },
    outputField: "max_output_tokens",
  },
  {
    name: "messages",
    path: "/v1/messages",
    body: { messages: [{ role: "user", content: "Hi" }] },
    outputField: "max_tokens",
  },
] as const;
