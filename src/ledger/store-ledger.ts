import { randomBytes } from "node:crypto";
import { Failure } from "../failure.ts";
import { limits } from "../limits.ts";
import type { Actor, ChangedBy } from "./administration/changed-by.ts";
import { parseApiKey } from "./api-key.ts";
import type {
  Ledger,
  LedgerAdministration,
  LedgerForCallers,
  Settled,
  Settlement,
} from "./ledger.ts";
import { type KeyUses, openKeyUses } from "./key-use.ts";
import type { EventsLedger } from "./ledger-events.ts";
import { OperatorError } from "./operator-error.ts";
import { unknownKey } from "./refusals.ts";
import { openStoreAdministration } from "./store-administration.ts";
import { noteShortage, openEventsLedger } from "./store-events.ts";
import { StoreFault } from "./store-fault.ts";
import type { RunOperation, StoreClient } from "./store-operations.ts";
import { pause } from "./pause.ts";
import { type CallWatch, timeCalls } from "./timed-client.ts";
import { usageProblems } from "./usage/usage-query.ts";
import { systemTimers, type Timers } from "../timers.ts";

/** What the ledger works with. */
export interface StoreLedgerParts {
  readonly telemetry?: Partial<CallWatch> & {
    ledgerRetry(facts: { readonly operation: string; readonly cause: unknown }): void;
  };
  /** Who changes something; absent: the service itself. */
  readonly actor?: Actor;
  readonly timers?: Timers;
  /** Milliseconds since 1970, for the minute in which a key was used. */
  readonly wallMs?: () => number;
  /** Milliseconds of a clock that never jumps. */
  readonly monotonicMs?: () => number;
}

/** Every part of the ledger over one store. */
export interface StoreLedger extends Ledger, LedgerForCallers, LedgerAdministration, EventsLedger {
  /** The operators' half for changes of another actor, or for one that happens once under its key. */
  administer(by: ChangedBy): LedgerAdministration<string | null>;
  /** Calls that wait for their answer. */
  waiting(): number;
}

/** The ledger over an open store: keys are parsed, settlements retried, faults worded for callers and for operators. */
export function openStoreLedger(store: StoreClient, parts: StoreLedgerParts): StoreLedger {
  const closing = new AbortController();
  const { monotonicMs = () => performance.now() } = parts;
  const client = timeCalls(store, parts.telemetry ?? {}, monotonicMs);
  const settlements = new Set<Promise<unknown>>();
  const keyUses = openKeyUses(callerFacing(client), parts.wallMs ?? (() => Date.now()));
  const watched = watchWrites(client, monotonicMs);
  return {
    ...hotHalf(watched, {
      keyUses,
      settle(settlement) {
        const settling = settle(settlement, { client: watched, parts, closed: closing.signal });
        settlements.add(settling);
        const forget = (): void => void settlements.delete(settling);
        settling.then(forget, forget);
        return settling;
      },
    }),
    ...openLedgerForCallers(callerFacing(client)),
    ...openAdministrationOf(client, parts.actor ?? "service"),
    ...openEventsLedger(client),
    administer: (by) => openStoreAdministration(operatorFacing(client), by),
    waiting: () => client.waiting,
    async [Symbol.asyncDispose]() {
      // Settlements that wait for another try make their last one now.
      closing.abort();
      await Promise.allSettled(settlements);
      keyUses.write();
      await client[Symbol.asyncDispose]();
    },
  };
}

/** Without a key no change repeats another, so that each has its secret. */
function openAdministrationOf(client: StoreClient, actor: Actor): LedgerAdministration {
  const by = { actor, once: null };
  return openStoreAdministration(operatorFacing(client), by) as LedgerAdministration;
}

/**
 * A store whose `check` fails for `limits.ledgerFaultHeldMs` after a write of a request has failed: what `check` writes
 * itself is small, and may find room where a reservation does not, or come between two faults.
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
  { keyUses, ...settling }: Pick<Ledger, "settle"> & { readonly keyUses: KeyUses },
): Omit<Ledger, typeof Symbol.asyncDispose> {
  const run = callerFacing(client);
  const ticketPrefix = randomBytes(6).toString("base64url");
  let tickets = 0;
  return {
    async authorize(presented, countsForRate, needsCredit = false) {
      const key = parseApiKey(presented);
      if (key === null) throw unknownKey();
      tickets += 1;
      const ticketId = countsForRate ? `${ticketPrefix}${tickets.toString(36)}` : null;
      const caller = await run("authorize", { ...key, ticketId, needsCredit });
      keyUses.note(caller);
      return caller;
    },
    async giveTicketBack(caller) {
      await run("giveTicketBack", caller);
    },
    admit: (order) => run("admit", order),
    cancelledGenerations: () => run("cancelledGenerations", null),
    renew: async (requestIds) => new Set(await run("renew", requestIds)),
    ...settling,
    async expire() {
      keyUses.write();
      let total = 0;
      for (;;) {
        const count = await run("expire", null);
        total += count;
        if (count < limits.ledgerGroupMax) break;
      }
      // Of accounts that no request and no look comes to; some at a time.
      await run("payGrants", { accountId: null });
      return total;
    },
    async giveBackDead() {
      let count = 0;
      for (let known = true; ;) {
        const step = await run("giveBackDead", null);
        count += step.count;
        known &&= step.known;
        if (step.count < limits.ledgerGroupMax) return { ...step, count, known };
      }
    },
    async check() {
      await run("check", null);
    },
  };
}

function openLedgerForCallers(run: RunOperation): LedgerForCallers {
  return {
    async showCaller({ accountId, keyId }) {
      if (await run("isGrantDue", accountId)) await run("payGrants", { accountId });
      return run("callerAccount", { accountId, keyId });
    },
    findReceipt: (accountId, requestId) => run("receipt", { accountId, requestId }),
    async printUsageOf(query) {
      const page = await run("printUsage", query);
      if (typeof page !== "string") return page;
      const { message, param } = usageProblems[page];
      throw new Failure("invalid_request", `\`${param}\` ${message}`, { param });
    },
    receiptsOf: (query) => run("pageReceipts", query),
    archivedUntilOf: (accountId) => run("archivedUntil", accountId),
    entriesOf: (query) => run("pageEntries", query),
    statementOf: (query) => run("readStatement", query),
  };
}

/** Runs operations for callers: a fault becomes a Failure without the store's text, with when to try again. */
function callerFacing(client: StoreClient): RunOperation {
  return (name, argument) =>
    client.call(name, argument).catch(async (error: unknown) => {
      if (error instanceof Failure) await noteShortage(client, argument, error);
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

/** Tries until the settlement is committed or the ledger is closed: its request is over, so no caller would try again. */
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
  const { settlementRetryFirstMs: firstMs, settlementRetryLongestMs: longestMs } = limits;
  for (let delayMs: number = firstMs; ; delayMs = Math.min(delayMs * 2, longestMs)) {
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

/** A usage that is no whole number is a bug of the meter: refused here, before it fails the commit of other calls. */
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

/** Runs operations for the operator: a fault with a remedy becomes an OperatorError with it. */
function operatorFacing(client: StoreClient): RunOperation {
  return (name, argument) =>
    client.call(name, argument).catch((error: unknown) => {
      if (!(error instanceof StoreFault) || error.remedy === null) throw error;
      throw new OperatorError("not_possible", `${error.remedy} (${error.message})`, error);
    });
}
