import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { openPostgresLedger } from "../src/ledger/postgres/postgres-ledger.ts";
import { openSqliteLedger } from "../src/ledger/sqlite/sqlite-ledger.ts";
import type { StoreLedger } from "../src/ledger/store-ledger.ts";
import type { UsageQuery } from "../src/ledger/usage/usage-query.ts";
import { writtenKey } from "../tests/doubles/many-receipts.ts";
import { type Arm, startMock } from "./arms.ts";
import { firstLine, gatewayCore, otherCore, programPath, startProgram, stop } from "./children.ts";
import { buildRequest, openConnections, percentile, runStream } from "./load.ts";
import { chat } from "./wire.ts";

const streams = 32;
const seconds = 10;
const rounds = 4;
const rules = {
  prices: { inputNanosPerMillion: 1_000_000_000n, outputNanosPerMillion: 4_000_000_000n },
  concurrencyPerAccount: 4,
  requestsPerMinute: 600,
  leaseMs: 60_000,
};

/** Opens the ledger at an address. */
export async function openLedger(address: string): Promise<StoreLedger> {
  if (!address.startsWith("sqlite:")) return openPostgresLedger({ url: address, ...rules }, {});
  const path = address.slice("sqlite:".length);
  const parts = { now: Date.now, telemetry: { ledgerRetry: () => {} } };
  return openSqliteLedger({ path, synchronous: "normal", ...rules }, parts);
}

/** How late chunks of 32 paced streams are, in turn without and with questions beside them. */
export async function measureBeside(
  address: string,
  queries: readonly (readonly [string, UsageQuery])[],
): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), "tributary-usage-"));
  stack.defer(() => rm(folder, { recursive: true, force: true }));
  const ledger = await openLedger(address);
  const operator = {
    name: `bench ${String(Date.now())}`,
    role: "viewer",
    expiresAtMs: null,
  } as const;
  const { secret } = await ledger.createOperator(operator);
  await ledger[Symbol.asyncDispose]();
  const { origin } = stack.use(await startMock());
  const { arm, operators } = await startService({ address, folder, origin });
  stack.use(arm);
  const asking = stack.use(openAsking(secret));
  const connections = stack.use(openConnections());
  const request = buildRequest({ chunks: 100, intervalMs: 10 });

  async function oneRound(ask: (() => Promise<void>) | null): Promise<readonly number[]> {
    const ended = new AbortController();
    const delays: number[] = [];
    const clients = Array.from({ length: streams }, async (_, at) => {
      await sleep((at * 1_000) / streams);
      while (!ended.signal.aborted) {
        const { delaysMs } = await runStream(arm, request, { connections, measure: true });
        delays.push(...delaysMs);
      }
    });
    const untilMs = performance.now() + seconds * 1_000;
    while (performance.now() < untilMs) await (ask ?? (() => sleep(100)))();
    ended.abort();
    await Promise.all(clients);
    return delays;
  }

  let asked = 0;
  async function askNext(): Promise<void> {
    const [, query] = queries[asked % queries.length] ?? [];
    asked += 1;
    if (query === undefined) return;
    const url = new URL("/api/v1/usage", operators);
    url.searchParams.set("by", query.by.join(","));
    url.searchParams.set("timezone", query.timezone);
    url.searchParams.set("since", new Date(query.sinceMs ?? 0).toISOString());
    url.searchParams.set("until", new Date(query.untilMs ?? 0).toISOString());
    if (query.accountId !== null) url.searchParams.set("account", query.accountId);
    await asking.ask(url);
  }

  await oneRound(null);
  for (let round = 0; round < rounds; round += 1)
    for (const ask of [null, askNext]) {
      const before = asked;
      const delays = await oneRound(ask);
      const [p50, p99, p999, most] = [0.5, 0.99, 0.999, 1].map((share) =>
        percentile(delays, share).toFixed(2),
      );
      const beside = ask === null ? "alone" : `beside ${String(asked - before)} questions`;
      process.stdout.write(
        `${beside}: ${String(delays.length)} chunks, p50 ${String(p50)}, p99 ${String(p99)}, p99.9 ${String(p999)}, slowest ${String(most)} ms\n`,
      );
    }
}

/**
 * Whoever asks has a processor of his own elsewhere: a process whose threads all have the lowest priority. It is started before
 * anything is measured, since to start one takes the process that measures 2 to 4 ms a time.
 */
function openAsking(token: string): { ask(url: URL): Promise<void> } & AsyncDisposable {
  const values = ["-n", "19", process.execPath, programPath("asking-child.ts"), token];
  const child = startProgram("nice", values, { core: `${otherCore},${gatewayCore}` });
  const { stdin, stdout } = child;
  if (stdin === null || stdout === null) throw new Error("the process has no input and output");
  const statuses = createInterface({ input: stdout })[Symbol.asyncIterator]();
  return {
    async ask(url) {
      stdin.write(`${url.href}\n`);
      const { value } = await statuses.next();
      if (value !== "200") throw new Error(`${url.href} was answered ${String(value)}`);
    },
    [Symbol.asyncDispose]: () => stop(child),
  };
}

async function startService(parts: {
  readonly address: string;
  readonly folder: string;
  readonly origin: string;
}): Promise<{ readonly arm: Arm; readonly operators: string }> {
  const child = startProgram(process.execPath, [programPath("../src/cli/tributary.cjs"), "serve"], {
    core: `${otherCore},${gatewayCore}`,
    folder: parts.folder,
    environment: {
      TRIBUTARY_PORT: "0",
      TRIBUTARY_DATA_DIR: parts.folder,
      TRIBUTARY_DATABASE_URL: parts.address,
      TRIBUTARY_DEPLOYMENT_URL: parts.origin,
      TRIBUTARY_CONCURRENCY_PER_ACCOUNT: "1000",
      TRIBUTARY_REQUESTS_PER_MINUTE: "1000000",
      TRIBUTARY_LOG_FORMAT: "json",
    },
  });
  const lines: Record<string, unknown>[] = [];
  await firstLine(child, (line) => {
    lines.push(JSON.parse(line) as Record<string, unknown>);
    return ["listening", "operators listening"].every((event) =>
      lines.some((one) => one["event"] === event),
    );
  });
  const of = (event: string, name: string): string =>
    String(lines.find((line) => line["event"] === event)?.[name]);
  const arm: Arm = {
    name: "tributary",
    url: of("listening", "url") + chat.path,
    key: writtenKey(0).secret,
    processIds: () => [child.pid ?? 0],
    [Symbol.asyncDispose]: () => stop(child),
  };
  return { arm, operators: of("operators listening", "address") };
}
