import { vi } from "vitest";
import type { StoreLedger } from "../../src/ledger/store-ledger.ts";
import { orderOf, settlementOf } from "./orders.ts";

/** Requests that come and go. */
export interface LedgerLoad {
  /** A key of an account with an open request. */
  readonly secret: string;
  /** Resolves once so many requests more have ended. */
  more(requests: number): Promise<void>;
  stop(): Promise<void>;
}

/** Four callers with an account each, who admit and settle until they are stopped, beside a request that stays open. */
export async function startLoad(ledger: StoreLedger): Promise<LedgerLoad> {
  const state = { stopped: false, ended: 0 };
  const keys: string[] = [];
  for (let at = 0; at < 4; at += 1) {
    const { id } = await ledger.createAccount("load", 10n ** 15n);
    keys.push((await ledger.createKey(id, "load")).secret);
  }
  const call = async (key: string): Promise<void> => {
    const caller = await ledger.authorize(key, false);
    await ledger.admit(orderOf(caller));
    while (!state.stopped) {
      const next = orderOf(caller);
      await ledger.admit(next);
      await ledger.settle(settlementOf(next));
      state.ended += 1;
    }
  };
  const callers = keys.map(call);
  // Rejections show where their promises are awaited.
  for (const caller of callers) caller.catch(() => undefined);
  return {
    secret: keys[0] ?? "",
    async more(requests) {
      const wanted = state.ended + requests;
      const done = vi.waitUntil(() => state.ended >= wanted, { timeout: 100_000, interval: 5 });
      await Promise.race([done, ...callers]);
    },
    async stop() {
      state.stopped = true;
      await Promise.all(callers);
    },
  };
}
