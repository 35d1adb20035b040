import type { Config } from "../../src/config/config.ts";
import { openLedger } from "../../src/cli/open-ledger.ts";
import { openStore } from "../../src/ledger/sqlite/store.ts";
import { openStoreLedger, type StoreLedger } from "../../src/ledger/store-ledger.ts";
import type { StoreCall } from "../../src/ledger/store-operations.ts";

/**
 * The operator's own connection to the ledger of a service, as a command in another process has it. A file is opened in this thread: a
 * thread of its own would cost each start of a service in the tests as much as the service's.
 */
export async function openOperatorLedger(config: Config): Promise<StoreLedger> {
  const { database } = config;
  if (database.kind !== "sqlite") return openLedger(config);
  const store = openStore({
    path: database.path,
    synchronous: "normal",
    prices: config.prices,
    concurrencyPerAccount: config.concurrencyPerAccount,
    requestsPerMinute: config.requestsPerMinute,
    leaseMs: config.leaseSeconds * 1_000,
  });
  return openStoreLedger(
    {
      call(name, argument) {
        // The name says which argument and which answer it has.
        const call = { name, argument, nowMs: Date.now() } as unknown as StoreCall;
        const [answer] = store.execute([call]);
        if (answer === undefined) throw new Error("the store did not answer");
        return answer.ok ? Promise.resolve(answer.value as never) : Promise.reject(answer.error);
      },
      [Symbol.asyncDispose]() {
        store[Symbol.dispose]();
        return Promise.resolve();
      },
    },
    {},
  );
}
