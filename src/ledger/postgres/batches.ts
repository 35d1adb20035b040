import { limits } from "../../limits.ts";
import { quietTimers, type Timers } from "../../timers.ts";
import { numberOf, type Row } from "../row.ts";
import { StoreFault } from "../store-fault.ts";
import type { StoreGroup } from "../store-operations.ts";
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
  readonly onGroup?: ((group: StoreGroup) => void) | undefined;
  readonly monotonicMs?: () => number;
  readonly timers?: Timers;
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
  const gathering = new Gathering(database, parts);
  return (order) => gathering.ask(order);
}

class Gathering<Order extends BatchOrder> {
  private readonly database: Pick<Database, "query">;
  private readonly parts: BatchParts<Order>;
  private readonly queue: Waiting<Order>[] = [];
  // What waits for accounts whose rows another transaction keeps, or whose orders have failed others'.
  private readonly apart = new Map<string, Waiting<Order>[]>();
  private underWay = false;
  private timer: unknown = null;

  constructor(database: Pick<Database, "query">, parts: BatchParts<Order>) {
    this.database = database;
    this.parts = parts;
  }

  ask(order: Order): Promise<Row> {
    if (this.queue.length >= limits.ledgerWaitingMax)
      return Promise.reject(
        new StoreFault("busy", "too many operations wait for the ledger", { reason: "overloaded" }),
      );
    return new Promise((resolve, reject) => {
      this.queue.push({ order, untilMs: this.nowMs() + this.parts.busyMs, resolve, reject });
      if (this.underWay) this.watch();
      else this.sendSoon();
    });
  }

  private nowMs(): number {
    return this.parts.monotonicMs?.() ?? performance.now();
  }

  /** When all that has arrived by now has been read: what came in one turn goes together. */
  private sendSoon(): void {
    this.underWay = true;
    setImmediate(() => void this.sendAll());
  }

  private async sendAll(): Promise<void> {
    dropLate(this.queue, this.nowMs(), "database-silent");
    const batch = take(this.queue, this.apart);
    if (batch.length > 0) await this.sendTogether(batch);
    if (this.queue.length > 0) this.sendSoon();
    else this.underWay = false;
  }

  /** What fails where one of several may be the cause is asked for again, each account's for itself. */
  private async sendTogether(batch: readonly Waiting<Order>[]): Promise<void> {
    try {
      await this.send(batch, limits.ledgerBatchLockMs);
    } catch (error) {
      if (mayBeOfOne(error)) for (const one of batch) this.setApart(one);
      else rejectAll(batch, error);
    }
  }

  private setApart(one: Waiting<Order>): void {
    const { accountId } = one.order;
    const its = this.apart.get(accountId);
    if (its !== undefined) {
      its.push(one);
      return;
    }
    const waiting = [one];
    this.apart.set(accountId, waiting);
    // The rest of its batch joins it first.
    queueMicrotask(() => void this.sendApart(accountId, waiting));
  }

  /** One account's orders, as long as there are any: the others do not wait for them. */
  private async sendApart(accountId: string, waiting: Waiting<Order>[]): Promise<void> {
    for (;;) {
      dropLate(waiting, this.nowMs(), "too-long");
      const batch = take(waiting);
      if (batch.length === 0) break;
      await this.send(batch, null).catch((error: unknown) =>
        batch.length > 1 && mayBeOfOne(error) ? this.sendSingly(batch) : rejectAll(batch, error),
      );
    }
    this.apart.delete(accountId);
  }

  private async sendSingly(batch: readonly Waiting<Order>[]): Promise<void> {
    for (const one of batch)
      await this.send([one], null).catch((error: unknown) => {
        one.reject(error);
      });
  }

  private async send(batch: readonly Waiting<Order>[], lockMs: number | null): Promise<void> {
    const { statement } = this.parts;
    const orders = batch.map(({ order }) => order);
    const rows = new Map<number, Row>();
    const beganMs = this.nowMs();
    for (const row of await this.database.query(statement, ...this.parts.values(orders, lockMs)))
      rows.set(numberOf(row, "place"), row);
    this.parts.onGroup?.({ calls: batch.length, ms: this.nowMs() - beganMs });
    for (const [index, one] of batch.entries()) {
      const row = rows.get(index + 1);
      if (row !== undefined) one.resolve(row);
      else one.reject(new Error(`ledger: no answer from ${statement.name} for one of a batch`));
    }
  }

  /** Those who wait behind a statement that gets no answer give up when their own time is up. */
  private watch(): void {
    if (this.timer !== null) return;
    const waiting = [this.queue, ...this.apart.values()];
    const untilMs = Math.min(...waiting.map(([oldest]) => oldest?.untilMs ?? Infinity));
    if (untilMs === Infinity) return;
    const due = (): void => {
      this.timer = null;
      // Statements with several accounts wait for no lock for long: what holds them up is the server, or the way to it.
      dropLate(this.queue, this.nowMs(), "database-silent");
      for (const its of this.apart.values()) dropLate(its, this.nowMs(), "too-long");
      this.watch();
    };
    const delayMs = Math.max(untilMs - this.nowMs(), 1);
    this.timer = (this.parts.timers ?? quietTimers).set(due, delayMs);
  }
}

/**
 * Takes the next batch out of a queue, in the order in which rows are locked; orders of one row stay as they came. Those of
 * accounts that are asked for apart go there.
 */
function take<Order extends BatchOrder>(
  queue: Waiting<Order>[],
  apart: ReadonlyMap<string, Waiting<Order>[]> = new Map(),
): Waiting<Order>[] {
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
function dropLate<Order>(
  queue: Waiting<Order>[],
  nowMs: number,
  reason: "database-silent" | "too-long",
): void {
  const timely = queue.findIndex(({ untilMs }) => untilMs > nowMs);
  const late = queue.splice(0, timely === -1 ? queue.length : timely);
  if (late.length > 0)
    rejectAll(
      late,
      new StoreFault("busy", "PostgreSQL: the statement before took too long", { reason }),
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
