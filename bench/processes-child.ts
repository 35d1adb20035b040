import { once } from "node:events";
import { importSqliteLedger } from "./import-ledger.ts";

// One of several services on one ledger file, without HTTP: its callers are admitted and settled one request after
// another. Its order comes as a message, and so do the start and what was measured.

/** What a service is to do. */
export interface ServiceOrder {
  readonly checkout: string;
  readonly path: string;
  readonly keys: readonly string[];
  readonly seconds: number;
  /** Milliseconds from admission to settlement, on average. */
  readonly answerMs: number;
}

/** What its callers saw. */
export interface ServiceFigures {
  /** Milliseconds that each `authorize` and `admit` took, together. */
  readonly admissionMs: readonly number[];
  readonly cpuMs: number;
}

const rules = {
  prices: { inputNanosPerMillion: 1_000_000_000n, outputNanosPerMillion: 4_000_000_000n },
  concurrencyPerAccount: 1_000_000,
  requestsPerMinute: 100_000_000,
  leaseMs: 600_000,
};

const [order] = (await once(process, "message")) as [ServiceOrder];
const { openSqliteLedger } = await importSqliteLedger(order.checkout);
const settings = { path: order.path, synchronous: "full", ...rules } as const;
const ledger = await openSqliteLedger(settings, { now: Date.now, serves: true });
process.send?.("open");
await once(process, "message");
const admissionMs: number[] = [];
const before = process.cpuUsage();
const endMs = performance.now() + order.seconds * 1_000;
await Promise.all(order.keys.map(call));
const { system, user } = process.cpuUsage(before);
const figures: ServiceFigures = { admissionMs, cpuMs: (user + system) / 1_000 };
process.send?.(figures);
await ledger[Symbol.asyncDispose]();
process.disconnect?.();

async function call(key: string): Promise<void> {
  while (performance.now() < endMs) {
    const startMs = performance.now();
    const caller = await ledger.authorize(key, true);
    const requestId = `req_${crypto.randomUUID().replaceAll("-", "")}` as const;
    await ledger.admit({
      requestId,
      caller,
      inputBound: 1_000,
      outputTokensRequested: 100,
      outputTokensFitting: null,
      format: "messages",
      streamed: true,
      label: null,
    });
    admissionMs.push(performance.now() - startMs);
    await new Promise((done) => setTimeout(done, order.answerMs * (0.5 + Math.random())));
    await ledger.settle({
      requestId,
      accountId: caller.accountId,
      outcome: "completed",
      usage: { inputTokens: 500, cachedInputTokens: 0, outputTokens: 20, reasoningTokens: 0 },
      firstOutputMs: 3,
      totalMs: 9,
    });
  }
}
