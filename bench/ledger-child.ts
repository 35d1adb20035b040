import { once } from "node:events";
import { importPostgresLedger, importSqliteLedger } from "./import-ledger.ts";
import {
  type Load,
  makeKeys,
  measureSteps,
  type MeasuredSteps,
  ownCpuMs,
  rules,
  stepNames,
} from "./ledger-steps.ts";
import { cpuSeconds, processTree } from "./process-usage.ts";

// The ledger of one checkout. Its order comes as a message, then each round, and what was measured goes back.

/** What a child opens. */
export interface LedgerOrder extends Load {
  readonly checkout: string;
  /** The path of a file, or the address of a database. */
  readonly address: string;
  /** The process of PostgreSQL's server, whose CPU counts too; null: there is none. */
  readonly serverId: number | null;
  /** Every key has a budget and limits, every account limits, a price list, a low balance and a grant. */
  readonly policies: boolean;
}

/** Microseconds of CPU an operation, by step. */
export type RoundFigures = Readonly<Record<(typeof stepNames)[number], number>>;

const [order] = (await once(process, "message")) as [LedgerOrder];
const ledger = await open(order);
const keys = await makeKeys(ledger, order);
if (order.policies) await setPolicies(keys);
process.send?.("open");
process.on("message", (most: number) => {
  void measureSteps(ledger, keys, { stepMs: 60_000, most, cpuMs }).then((steps) =>
    process.send?.(figuresOf(steps)),
  );
});
process.once("disconnect", () => void ledger[Symbol.asyncDispose]());

function cpuMs(): number {
  const server = order.serverId === null ? 0 : cpuSeconds(processTree(order.serverId));
  return ownCpuMs() + server * 1_000;
}

async function open({ address, checkout }: LedgerOrder) {
  if (!address.startsWith("postgres:")) {
    const { openSqliteLedger } = await importSqliteLedger(checkout);
    const settings = { path: address, synchronous: "full", ...rules } as const;
    return openSqliteLedger(settings, { now: Date.now, serves: true });
  }
  const { openPostgresLedger } = await importPostgresLedger(checkout);
  return openPostgresLedger({ url: address, ...rules }, {});
}

async function setPolicies(secrets: readonly string[]): Promise<void> {
  const { inputNanosPerMillion, outputNanosPerMillion } = rules.prices;
  await ledger.createPriceList({
    name: "bench",
    prices: [
      {
        effectiveFromMs: null,
        inputNanosPerMillion,
        cachedInputNanosPerMillion: inputNanosPerMillion / 10n,
        outputNanosPerMillion,
      },
    ],
  });
  for (const { id } of await ledger.listAccounts())
    await ledger.changeAccount(id, {
      limits: {
        concurrentRequests: 1_000_000,
        requestsPerMinute: 50_000_000,
        outputTokensMax: 9_000,
      },
      priceList: "bench",
      lowBalanceNanos: 1n,
      grant: { amountNanos: 10n ** 9n, every: "month", timezone: "Europe/Berlin", carryOver: true },
    });
  const budget = { amountNanos: 10n ** 17n, period: "month", timezone: "Europe/Berlin" } as const;
  for (const secret of secrets)
    await ledger.changeKey(`key_${secret.split("_")[2] ?? ""}`, {
      limits: { requestsPerMinute: 40_000_000, outputTokensMax: 8_000 },
      budget,
    });
}

function figuresOf(steps: MeasuredSteps): RoundFigures {
  const figures = stepNames.map((step) => [
    step,
    (steps[step].cpuMs * 1_000) / steps[step].sample.length,
  ]);
  return Object.fromEntries(figures) as RoundFigures;
}
