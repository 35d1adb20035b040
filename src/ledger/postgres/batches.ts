import { limits } from "../../limits.ts";
import { quietTimers, type Timers } from "../../timers.ts";
import { numberOf, type Row } from "../row.ts";
import { StoreFault } from "../store-fault.ts";
import type { Database, Statement } from "./database.ts";

// What waits goes as one statement: while one is under way, what comes meanwhile shares the next one. A statement is one
// transaction, so that one sync of the log serves all of them. Nothing is held back for company: a lone order goes at once.

/** What is known of an order, whatever its operation. */
export interface BatchOrder {
  readonly accountId: string;
  /**
   * Within its account: rows are locked in the order of accounts, and then of these, by every replica, so that no two
   * statements wait for each other.
   */
  readonly lockedAs: string;
  /** No statement holds two orders of this; null: it may. */
  readonly onlyOnce: string | null;
}

/** How one operation asks. */
export interface BatchParts<Order extends BatchOrder> {
  readonly statement: Statement;
  /**
   * Its values; `lockMs` is how long the lock of a row may be waited for, null: as long as a statement may take. Each row of
   * the answer has in `place` the number of its order, from 1.
   */
  values(orders: readonly Order[], lockMs: number | null): readonly unknown[];
  /** How long an order waits until it is sent, at most. */
  readonly busyMs: number;
  readonly monotonicMs?: () => number;
  readonly timers?: Timers;
  /** Calls when all that has arrived by now has been read. */
  readonly soon?: (step: () => void) => void;
}

interface Waiting<Order> {
  readonly order: Order;
  readonly untilMs: number;
  resolve(row: Row): void;
  reject(error: unknown): void;
}

/** Asks for one order at a time; rejects with a StoreFault, which is of this order alone. */
export type Batches<Order> = (order: Order) => Promise<Row>;

/** Batches of one operation: one under way, and beside it one for each account that cannot be had with others. */
export function openBatches<Order extends BatchOrder>(
  database: Pick<Database, "query">,
  parts: BatchParts<Order>,
): Batches<Order> {
  const {
    monotonicMs = () => performance.now(),
    soon = setImmediate,
    timers = quietTimers,
  } = parts;
  const queue: Waiting<Order>[] = [];
  // What waits for accounts whose rows another transaction keeps, or whose orders have failed others'.
  const apart = new Map<string, Waiting<Order>[]>();
  let underWay = false;
  let timer: unknown = null;

  async function ask(batch: readonly Waiting<Order>[], lockMs: number | null): Promise<void> {
    const values = parts.values(
      batch.map(({ order }) => order),
      lockMs,
    );
    const rows = new Map<number, Row>();
    for (const row of await database.query(parts.statement, ...values))
      rows.set(numberOf(row, "place"), row);
    for (const [index, one] of batch.entries()) {
      const row = rows.get(index + 1);
      if (row === undefined)
        one.reject(new Error(`ledger: no answer from ${parts.statement.name} for one of a batch`));
      else one.resolve(row);
    }
  }

  /** What fails where one of several may be the cause is asked for again, each account's for itself. */
  async function askTogether(batch: readonly Waiting<Order>[]): Promise<void> {
    try {
      await ask(batch, limits.ledgerBatchLockMs);
    } catch (error) {
      if (!mayBeOfOne(error)) rejectAll(batch, error);
      else
        for (const one of batch) {
          const { accountId } = one.order;
          const waiting = apart.get(accountId) ?? [];
          waiting.push(one);
          if (apart.has(accountId)) continue;
          apart.set(accountId, waiting);
          void askApart(accountId, waiting);
        }
    }
  }

  /** One account's orders, as long as there are any: the others do not wait for them. */
  async function askApart(accountId: string, waiting: Waiting<Order>[]): Promise<void> {
    // The rest of a batch that has failed joins its account first.
    await Promise.resolve();
    for (;;) {
      const batch = take(waiting, monotonicMs());
      if (batch.length === 0) break;
      await ask(batch, null).catch((error: unknown) =>
        batch.length > 1 && mayBeOfOne(error) ? askSingly(batch) : rejectAll(batch, error),
      );
    }
    apart.delete(accountId);
  }

  async function askSingly(batch: readonly Waiting<Order>[]): Promise<void> {
    for (const one of batch)
      await ask([one], null).catch((error: unknown) => {
        one.reject(error);
      });
  }

  async function askAll(): Promise<void> {
    const batch = take(queue, monotonicMs(), apart);
    if (batch.length > 0) await askTogether(batch);
    underWay = queue.length > 0;
    if (underWay) soon(() => void askAll());
  }

  /** Those who wait behind a statement that gets no answer are told so when their own time is up. */
  function watch(): void {
    if (timer !== null) return;
    const waiting = (): Waiting<Order>[][] => [queue, ...apart.values()];
    const untilMs = Math.min(...waiting().map(([oldest]) => oldest?.untilMs ?? Infinity));
    if (untilMs === Infinity) return;
    timer = timers.set(
      () => {
        timer = null;
        for (const orders of waiting()) dropLate(orders, monotonicMs());
        watch();
      },
      Math.max(untilMs - monotonicMs(), 1),
    );
  }

  return (order) => {
    if (queue.length >= limits.ledgerWaitingMax)
      return Promise.reject(
        new StoreFault("busy", "too many operations wait for the ledger", { reason: "overloaded" }),
      );
    return new Promise((resolve, reject) => {
      queue.push({ order, untilMs: monotonicMs() + parts.busyMs, resolve, reject });
      if (underWay) watch();
      else {
        underWay = true;
        soon(() => void askAll());
      }
    });
  };
}

/**
 * Takes the next batch out of a queue, in the order in which rows are locked; orders of one row stay as they came. Those of
 * accounts that are asked for apart go there.
 */
function take<Order extends BatchOrder>(
  queue: Waiting<Order>[],
  nowMs: number,
  apart: ReadonlyMap<string, Waiting<Order>[]> = new Map(),
): Waiting<Order>[] {
  dropLate(queue, nowMs);
  const batch: Waiting<Order>[] = [];
  const left: Waiting<Order>[] = [];
  const once = new Set<string>();
  for (const one of queue.splice(0)) {
    const { accountId, onlyOnce } = one.order;
    const its = apart.get(accountId);
    if (its !== undefined) its.push(one);
    else if (batch.length >= limits.ledgerBatchMax || (onlyOnce !== null && once.has(onlyOnce)))
      left.push(one);
    else {
      batch.push(one);
      if (onlyOnce !== null) once.add(onlyOnce);
    }
  }
  queue.push(...left);
  return batch.toSorted((one, other) => compare(one.order, other.order));
}

function compare(one: BatchOrder, other: BatchOrder): number {
  return compareText(one.accountId, other.accountId) || compareText(one.lockedAs, other.lockedAs);
}

/** As the server compares in the collation "C": every id is ASCII. */
function compareText(one: string, other: string): number {
  return one === other ? 0 : one < other ? -1 : 1;
}

/** Orders wait in the order in which they came, so that the late ones are in front. */
function dropLate<Order>(queue: Waiting<Order>[], nowMs: number): void {
  const timely = queue.findIndex(({ untilMs }) => untilMs > nowMs);
  const late = queue.splice(0, timely === -1 ? queue.length : timely);
  if (late.length > 0)
    rejectAll(
      late,
      new StoreFault("busy", "the ledger's database was busy with others for too long", {
        reason: "too-long",
      }),
    );
}

function rejectAll<Order>(batch: readonly Waiting<Order>[], error: unknown): void {
  for (const one of batch) one.reject(error);
}

/**
 * Whether a batch may have failed for the sake of one order: by a bug, by a row that another transaction keeps, or by a
 * conflict with one. What is wrong with the server or the way to it is wrong for all.
 */
function mayBeOfOne(error: unknown): boolean {
  if (!(error instanceof StoreFault)) return true;
  return error.kind === "bug" || error.reason === "locked" || error.code === "55P03";
}
