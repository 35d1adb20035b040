import { randomBytes } from "node:crypto";
import { Failure } from "../failure.ts";
import { limits } from "../limits.ts";
import { parseApiKey } from "./api-key.ts";
import type {
  Ledger,
  LedgerAdministration,
  LedgerForCallers,
  Settled,
  Settlement,
} from "./ledger.ts";
import { OperatorError } from "./operator-error.ts";
import { unknownKey } from "./refusals.ts";
import { openStoreAdministration } from "./store-administration.ts";
import { StoreFault } from "./store-fault.ts";
import type { RunOperation, StoreClient } from "./store-operations.ts";
import { systemTimers, type Timers } from "../timers.ts";

/** What the ledger works with. */
export interface StoreLedgerParts {
  readonly telemetry?: {
    ledgerRetry(facts: { readonly operation: string; readonly cause: unknown }): void;
  };
  readonly timers?: Timers;
  /** Milliseconds of a clock that never jumps. */
  readonly monotonicMs?: () => number;
}

/** Every part of the ledger over one store. */
export type StoreLedger = Ledger & LedgerForCallers & LedgerAdministration;

const retryFirstMs = 50;
const retryLongestMs = 2_000;

/** The ledger over a store that is open: keys understood, settlements retried, faults told as their readers may see them. */
export function openStoreLedger(client: StoreClient, parts: StoreLedgerParts): StoreLedger {
  const closing = new AbortController();
  const settlements = new Set<Promise<unknown>>();
  const watched = watchWrites(client, parts.monotonicMs ?? (() => performance.now()));
  return {
    ...hotHalf(watched, {
      settle(settlement) {
        const settling = settle(settlement, { client: watched, parts, closed: closing.signal });
        settlements.add(settling);
        const forget = (): void => void settlements.delete(settling);
        settling.then(forget, forget);
        return settling;
      },
    }),
    ...openLedgerForCallers(callerFacing(client)),
    ...openStoreAdministration(operatorFacing(client)),
    async [Symbol.asyncDispose]() {
      // Settlements that wait for another try make their last one now.
      closing.abort();
      await Promise.allSettled(settlements);
      await client[Symbol.asyncDispose]();
    },
  };
}

/**
 * A store that remembers how the requests' own writes went: what `check` writes is small, and may find room where a
 * reservation does not, or be made in the moment between two faults.
 */
function watchWrites(client: StoreClient, monotonicMs: () => number): StoreClient {
  let last: { readonly fault: StoreFault; readonly atMs: number } | null = null;
  return {
    async call(name, argument) {
      if (name === "check" && last !== null && monotonicMs() - last.atMs < limits.ledgerFaultHeldMs)
        throw last.fault;
      const writes = name === "admit" || name === "settle";
      try {
        const answer = await client.call(name, argument);
        if (writes) last = null;
        return answer;
      } catch (error) {
        if (writes && error instanceof StoreFault && error.kind === "unavailable")
          last = { fault: error, atMs: monotonicMs() };
        throw error;
      }
    },
    [Symbol.asyncDispose]: () => client[Symbol.asyncDispose](),
  };
}

function hotHalf(
  client: StoreClient,
  settling: Pick<Ledger, "settle">,
): Omit<Ledger, typeof Symbol.asyncDispose> {
  const run = callerFacing(client);
  const ticketPrefix = randomBytes(6).toString("base64url");
  let tickets = 0;
  return {
    authorize(presented, countsForRate, needsCredit = false) {
      const key = parseApiKey(presented);
      if (key === null) return Promise.reject(unknownKey());
      tickets += 1;
      const ticketId = countsForRate ? `${ticketPrefix}${tickets.toString(36)}` : null;
      return run("authorize", { ...key, ticketId, needsCredit });
    },
    async giveTicketBack(caller) {
      await run("giveTicketBack", caller);
    },
    admit: (order) => run("admit", order),
    renew: async (requestIds) => new Set(await run("renew", requestIds)),
    ...settling,
    async expire() {
      let total = 0;
      for (;;) {
        const count = await run("expire", null);
        total += count;
        if (count < limits.ledgerGroupMax) return total;
      }
    },
    async giveBackDead() {
      let count = 0;
      for (let known = true; ;) {
        const step = await run("giveBackDead", null);
        count += step.count;
        known &&= step.known;
        if (step.count < limits.ledgerGroupMax) return { count, known };
      }
    },
    async check() {
      await run("check", null);
    },
  };
}

function openLedgerForCallers(run: RunOperation): LedgerForCallers {
  return {
    showCaller: (accountId) => run("callerAccount", accountId),
    findReceipt: (accountId, requestId) => run("receipt", { accountId, requestId }),
  };
}

/** Faults of the store as a caller may see them: nothing of the inside, and when to come back. */
function callerFacing(client: StoreClient): RunOperation {
  return (name, argument) =>
    client.call(name, argument).catch((error: unknown) => {
      throw failureOf(error);
    });
}

function failureOf(error: unknown): unknown {
  if (!(error instanceof StoreFault)) return error;
  if (error.kind === "bug")
    return new Failure("internal", "Something went wrong inside the service. Try again.", {
      cause: error,
    });
  return new Failure(
    "overloaded",
    "The service cannot reach its ledger at the moment. Try again in a few seconds.",
    { retryAfterSeconds: 2, cause: error },
  );
}

/** Again and again until it is committed or the ledger is closed: a settlement is owed, its caller has gone. */
async function settle(
  settlement: Settlement,
  parts: {
    readonly client: StoreClient;
    readonly parts: StoreLedgerParts;
    readonly closed: AbortSignal;
  },
): Promise<Settled> {
  ensureWhole(settlement);
  const { client, closed } = parts;
  for (let delayMs = retryFirstMs; ; delayMs = Math.min(delayMs * 2, retryLongestMs)) {
    const last = closed.aborted;
    try {
      return await client.call("settle", settlement);
    } catch (cause) {
      const again = cause instanceof StoreFault && cause.kind !== "bug";
      if (last || !again) throw failureOf(cause);
      parts.parts.telemetry?.ledgerRetry({ operation: "settle", cause });
      await pause(delayMs, closed, parts.parts.timers ?? systemTimers);
    }
  }
}

/** A usage that no price can be put on is a bug of the meter, told before it can hold up others. */
function ensureWhole(settlement: Settlement): void {
  const { firstOutputMs, totalMs, usage } = settlement;
  const tokens =
    usage === null
      ? []
      : [usage.inputTokens, usage.cachedInputTokens, usage.outputTokens, usage.reasoningTokens];
  const numbers = [totalMs, firstOutputMs ?? 0, ...tokens];
  if (numbers.every((value) => Number.isSafeInteger(value) && value >= 0)) return;
  throw new Failure("internal", "Something went wrong inside the service. Try again.", {
    cause: new Error("ledger: a settlement has a number that is no whole number of 0 or more"),
  });
}

function pause(delayMs: number, ended: AbortSignal, timers: Timers): Promise<void> {
  if (ended.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const finish = (): void => {
      timers.clear(timer);
      ended.removeEventListener("abort", finish);
      resolve();
    };
    const timer = timers.set(finish, delayMs);
    ended.addEventListener("abort", finish);
  });
}

/** Faults of the store as the operator should read them. */
function operatorFacing(client: StoreClient): RunOperation {
  return (name, argument) =>
    client.call(name, argument).catch((error: unknown) => {
      if (!(error instanceof StoreFault) || error.remedy === null) throw error;
      throw new OperatorError("not_possible", `${error.remedy} (${error.message})`, error);
    });
}
