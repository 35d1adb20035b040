import { writeLedger } from "../../bench/many-receipts.ts";
import { openStore } from "../../src/ledger/sqlite/store.ts";
import { openStoreLedger, type StoreLedger } from "../../src/ledger/store-ledger.ts";
import type { StoreCall } from "../../src/ledger/store-operations.ts";
import { openRandom } from "../doubles/random.ts";
import { orderOf, settlementOf } from "../ledger/orders.ts";
import { defaultSettings } from "../ledger/support.ts";

/** How much a ledger has. */
export interface LedgerSize {
  readonly accounts: number;
  readonly keys: number;
  readonly receipts: number;
  /** Requests that have not ended, of no process that lives; they stay for as long as a test runs. */
  readonly running?: number;
}

/** A name that would be an element if it were taken for HTML; it stands on an account, a key and a note. */
export const hostileName = `<img src=x onerror="document.title='owned'">`;

const dayMs = 24 * 3_600_000;
const outcomes = [
  "completed",
  "completed",
  "completed",
  "completed",
  "cancelled",
  "failed",
] as const;
const formats = ["chat-completions", "responses", "messages"] as const;

/** Accounts and receipts of these are made request by request, with entries of each; of more by a statement. */
const madeMax = { accounts: 50, receipts: 6_000 };
const writtenKeysPerAccount = 3;

/** Makes accounts, keys and the receipts of thirty days up to now in a SQLite file. */
export async function fillLedger(path: string, size: LedgerSize): Promise<void> {
  const { accounts, receipts } = size;
  if (receipts <= madeMax.receipts) {
    await makeRequests(path, size, Date.now() - 30 * dayMs);
    return;
  }
  const written = {
    accounts: accounts - madeMax.accounts,
    receipts: receipts - madeMax.receipts / 6,
    sinceMs: Date.now() - 30 * dayMs,
    untilMs: Date.now() - dayMs,
  };
  await writeLedger(`sqlite:${path}`, written);
  const made = {
    ...size,
    accounts: madeMax.accounts,
    keys: size.keys - written.accounts * writtenKeysPerAccount,
    receipts: receipts - written.receipts,
  };
  await makeRequests(path, made, written.untilMs);
}

async function makeRequests(path: string, size: LedgerSize, sinceMs: number): Promise<void> {
  const clock = { nowMs: sinceMs };
  const random = openRandom(7);
  await using ledger = openLedgerAt(path, clock);
  const secrets: string[] = [];
  for (let account = 0; account < size.accounts; account += 1) {
    const name = account === 1 ? hostileName : `team ${String(account + 1)}`;
    const { id } = await ledger.createAccount(name, 250n * 10n ** 9n);
    const keys = Math.round((size.keys * (account + 1)) / size.accounts) - secrets.length;
    for (let key = 0; key < keys; key += 1) {
      const made = await ledger.createKey(id, account === 1 ? hostileName : `key ${String(key)}`);
      secrets.push(made.secret);
    }
    clock.nowMs += 1_000;
  }
  const stepMs = (Date.now() - clock.nowMs) / (size.receipts + 1);
  for (let receipt = 0; receipt < size.receipts; receipt += 1) {
    // Few callers make most of the requests.
    const secret = secrets[Math.floor(random() ** 3 * secrets.length)] ?? "";
    const caller = await ledger.authorize(secret, true);
    const requestId = `req_${clock.nowMs.toString(36).padStart(8, "0")}${String(receipt).padStart(16, "0")}`;
    const order = orderOf(caller, {
      requestId: requestId as `req_${string}`,
      format: formats[receipt % 3] ?? "messages",
      streamed: receipt % 4 !== 0,
      outputTokensRequested: 900,
    });
    await ledger.admit(order);
    const outcome = outcomes[receipt % outcomes.length] ?? "completed";
    const totalMs = 300 + Math.floor(random() * 4_000);
    const used = settlementOf(order, [
      100 + Math.floor(random() * 700),
      Math.floor(random() * 800),
    ]);
    await ledger.settle({
      ...used,
      outcome,
      usage: outcome === "failed" ? null : used.usage,
      firstOutputMs: 80 + Math.floor(random() * 200),
      totalMs,
    });
    clock.nowMs += stepMs;
  }
  for (let running = 0; running < (size.running ?? 0); running += 1) {
    const caller = await ledger.authorize(secrets[running % secrets.length] ?? "", true);
    const requestId = `req_${clock.nowMs.toString(36).padStart(8, "0")}${String(running).padStart(16, "r")}`;
    const order = { requestId: requestId as `req_${string}`, outputTokensRequested: 900 };
    await ledger.admit(orderOf(caller, order));
  }
}

/** A ledger in a SQLite file whose clock stands where the caller sets it. */
export function openLedgerAt(path: string, clock: { readonly nowMs: number }): StoreLedger {
  const store = openStore({
    ...defaultSettings,
    path,
    leaseMs: dayMs,
    concurrencyPerAccount: 1_000,
    requestsPerMinute: 1_000_000,
  });
  return openStoreLedger(
    {
      call(name, argument) {
        const call = { name, argument, nowMs: Math.floor(clock.nowMs) } as unknown as StoreCall;
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
