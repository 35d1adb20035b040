import { openStore, type StoreSettings } from "../../src/ledger/sqlite/store.ts";
import {
  openStoreLedger,
  type StoreLedger,
  type StoreLedgerParts,
} from "../../src/ledger/store-ledger.ts";
import type { StoreCall } from "../../src/ledger/store-operations.ts";

/** A ledger's file, opened in this thread: a thread of its own would take longer to start than most tests do. */
export function openLedgerHere(
  settings: StoreSettings,
  { now = Date.now, ...parts }: StoreLedgerParts & { readonly now?: () => number } = {},
): StoreLedger {
  const store = openStore(settings);
  return openStoreLedger(
    {
      call(name, argument) {
        // The name says which argument and which answer it has.
        const call = { name, argument, nowMs: now() } as unknown as StoreCall;
        const [answer] = store.execute([call]);
        if (answer === undefined) throw new Error("the store did not answer");
        return answer.ok ? Promise.resolve(answer.value as never) : Promise.reject(answer.error);
      },
      [Symbol.asyncDispose]() {
        store[Symbol.dispose]();
        return Promise.resolve();
      },
    },
    { wallMs: now, ...parts },
  );
}
