import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { StoreCall } from "../src/ledger/store-operations.ts";
import { openStore, type SqliteStore } from "../src/ledger/sqlite/store.ts";

// How fast a whole ledger is added up again: `node bench/verify.ts [ENTRIES]`. Fills a file first, which takes longer.

const wanted = Number(process.argv[2] ?? 400_000);
const accounts = 50;
const requestsAGroup = 100;
const secretHash = new Uint8Array(32);

const folder = mkdtempSync(join(tmpdir(), "tributary-verify-"));
try {
  const store = openStore({
    path: join(folder, "ledger.sqlite"),
    synchronous: "normal",
    prices: { inputNanosPerMillion: 1_000_000_000n, outputNanosPerMillion: 4_000_000_000n },
    concurrencyPerAccount: 4,
    requestsPerMinute: 600,
    leaseMs: 60_000,
  });
  fill(store, Math.ceil(wanted / 2));
  for (let round = 1; round <= 3; round += 1) verify(store, round);
  store[Symbol.dispose]();
} finally {
  rmSync(folder, { recursive: true });
}

function verify(store: SqliteStore, round: number): void {
  const startedAtMs = performance.now();
  const startedCpu = process.cpuUsage();
  const [answer] = store.execute([
    { name: "verify", argument: { against: [], listHeads: false }, nowMs: 0 },
  ]);
  const seconds = (performance.now() - startedAtMs) / 1_000;
  const { system, user } = process.cpuUsage(startedCpu);
  if (answer?.ok !== true) throw new Error("verifying failed", { cause: answer?.error });
  const report = answer.value as { readonly ok: boolean; readonly entries: number };
  const megabytes = Math.round(process.memoryUsage.rss() / 1e6);
  console.log(
    `round ${String(round)}: ok ${String(report.ok)}, ${report.entries.toLocaleString("en")} entries in ${seconds.toFixed(2)} s (${((system + user) / 1e6).toFixed(2)} s of CPU), ${Math.round(report.entries / seconds).toLocaleString("en")} a second, ${String(megabytes)} MB resident`,
  );
}

function fill(store: SqliteStore, requests: number): void {
  const execute = (calls: readonly StoreCall[]): void => {
    for (const answer of store.execute(calls))
      if (!answer.ok) throw new Error("the ledger could not be filled", { cause: answer.error });
  };
  for (let index = 0; index < accounts; index += 1) {
    const account = { id: accountId(index), name: "bench", creditNanos: 10n ** 15n };
    const key = { id: keyId(index), accountId: account.id, name: "bench", secretHash };
    execute([
      { name: "createAccount", argument: account, nowMs: 0 },
      { name: "createKey", argument: key, nowMs: 0 },
    ]);
  }
  for (let from = 0; from < requests; from += requestsAGroup) {
    const calls: StoreCall[] = [];
    for (let at = from; at < Math.min(from + requestsAGroup, requests); at += 1)
      calls.push(...request(at));
    execute(calls);
  }
}

function accountId(index: number): `acct_${string}` {
  return `acct_bench${String(index)}`;
}

function keyId(index: number): `key_${string}` {
  return `key_bench${String(index)}`;
}

/** Ids are spread as random ones are, so that looking a request up costs what it costs in a real ledger. */
function request(at: number): readonly StoreCall[] {
  const spread = ((BigInt(at) * 0x9e37_79b9_7f4a_7c15n) % 2n ** 64n).toString(36).padStart(13, "0");
  const requestId = `req_${spread}${String(at).padStart(10, "0")}` as const;
  const index = at % accounts;
  const rate = { limit: 600, remaining: 600, resetMs: 0 };
  const caller = {
    accountId: accountId(index),
    keyId: keyId(index),
    ticket: null,
    rate,
    concurrentRequests: 4,
  };
  return [
    {
      name: "admit",
      argument: {
        requestId,
        caller,
        inputBound: 1_000,
        outputTokensRequested: 100,
        outputTokensFitting: null,
        format: "messages",
        streamed: true,
        label: null,
      },
      nowMs: at,
    },
    {
      name: "settle",
      argument: {
        requestId,
        accountId: caller.accountId,
        outcome: "completed",
        usage: { inputTokens: 10, cachedInputTokens: 0, outputTokens: 20, reasoningTokens: 0 },
        firstOutputMs: 1,
        totalMs: 5,
      },
      nowMs: at + 5,
    },
  ];
}
