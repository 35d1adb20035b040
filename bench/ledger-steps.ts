import type { AdmitOrder } from "../src/ledger/ledger.ts";
import type { StoreLedger } from "../src/ledger/store-ledger.ts";
import { newId } from "../src/new-id.ts";

// The three steps of a request, as the service calls them: through the ledger's thread or the driver's connections, with
// every commit synced where the store is told so. Limits are out of the way.

/** What the ledgers decide by. */
export const rules = {
  prices: { inputNanosPerMillion: 1_000_000_000n, outputNanosPerMillion: 4_000_000_000n },
  concurrencyPerAccount: 1_000_000,
  requestsPerMinute: 100_000_000,
  leaseMs: 600_000,
};

/** Who calls at once. */
export interface Load {
  readonly callers: number;
  readonly accounts: number;
}

/** What of a ledger the steps need, in every version. */
export type SteppedLedger = Pick<StoreLedger, "authorize" | "admit" | "settle">;

/** A key a caller; callers share accounts evenly. */
export async function makeKeys(
  ledger: Pick<StoreLedger, "createAccount" | "createKey">,
  load: Load,
): Promise<readonly string[]> {
  const accounts = [];
  for (let index = 0; index < load.accounts; index += 1)
    accounts.push(await ledger.createAccount("bench", 10n ** 17n));
  const keys = [];
  for (let caller = 0; caller < load.callers; caller += 1) {
    const account = accounts[caller % accounts.length];
    if (account !== undefined) keys.push((await ledger.createKey(account.id, "bench")).secret);
  }
  return keys;
}

/** How long a step is done, and how often by each caller at most. */
export interface Until {
  readonly stepMs: number;
  readonly most: number;
  /** Milliseconds of CPU until now; absent: of all threads of this process. */
  readonly cpuMs?: () => number;
}

/** What one step took. */
export interface Measured {
  /** Milliseconds of each operation. */
  readonly sample: number[];
  readonly seconds: number;
  readonly cpuMs: number;
}

/** The steps, in the order of a request. */
export const stepNames = ["authorize", "admit", "settle"] as const;

/** What each step took. */
export type MeasuredSteps = Readonly<Record<(typeof stepNames)[number], Measured>>;

/** One step after the other, so that each has a rate of its own: what was admitted is then settled. */
export async function measureSteps(
  ledger: SteppedLedger,
  keys: readonly string[],
  { cpuMs = ownCpuMs, most, stepMs }: Until,
): Promise<MeasuredSteps> {
  const callers = await Promise.all(keys.map((key) => ledger.authorize(key, true)));
  const admitted: AdmitOrder[][] = callers.map(() => []);
  function* turns(): Generator<number> {
    const endMs = performance.now() + stepMs;
    for (let turn = 0; turn < most && performance.now() < endMs; turn += 1) yield turn;
  }
  const measure = openMeasuring(keys.length, cpuMs);
  const authorize = await measure(async (time, at) => {
    for (const _ of turns()) await time(() => ledger.authorize(keys[at] ?? "", true, true));
  });
  const admit = await measure(async (time, at) => {
    const [caller, orders] = [callers[at], admitted[at]];
    if (caller === undefined || orders === undefined) return;
    for (const _ of turns()) {
      const order: AdmitOrder = {
        requestId: newId("req_", Date.now()) as AdmitOrder["requestId"],
        caller,
        inputBound: 1_000,
        outputTokensRequested: 100,
        outputTokensFitting: null,
        format: "messages",
        streamed: true,
        label: null,
      };
      await time(() => ledger.admit(order));
      orders.push(order);
    }
  });
  const settle = await measure(async (time, at) => {
    for (const { caller, requestId } of admitted[at] ?? [])
      await time(() =>
        ledger.settle({
          requestId,
          accountId: caller.accountId,
          outcome: "completed",
          usage: { inputTokens: 500, cachedInputTokens: 0, outputTokens: 20, reasoningTokens: 0 },
          firstOutputMs: 3,
          totalMs: 9,
        }),
      );
  });
  return { authorize, admit, settle };
}

/** Milliseconds of CPU that all threads of this process have used. */
export function ownCpuMs(): number {
  const { system, user } = process.cpuUsage();
  return (system + user) / 1_000;
}

type Time = (call: () => Promise<unknown>) => Promise<void>;
type Work = (time: Time, caller: number) => Promise<void>;

function openMeasuring(callers: number, cpuMs: () => number): (work: Work) => Promise<Measured> {
  return async (work) => {
    const sample: number[] = [];
    const time: Time = async (call) => {
      const startMs = performance.now();
      await call();
      sample.push(performance.now() - startMs);
    };
    const startMs = performance.now();
    const before = cpuMs();
    await Promise.all(Array.from({ length: callers }, (_, caller) => work(time, caller)));
    const seconds = (performance.now() - startMs) / 1_000;
    return { sample, seconds, cpuMs: cpuMs() - before };
  };
}
