interface Watched {
  low: bigint | null;
  /** The balance has fallen below it, and has not been above it since. */
  isLow: boolean;
  exhausted: boolean;
  readonly events: string[];
}

/** How far events have told that a key's budget is spent, and which end of the key they have announced. */
interface WatchedKey {
  begin: number | null;
  percent: number;
  announced: number | null;
  readonly events: string[];
}

/** A key's budget in its present period. */
export interface SpentBudget {
  readonly amount: bigint;
  readonly begin: number;
  readonly spent: bigint;
}

/** What has happened to each account and key, told from balances and budgets alone, in the order in which it did. */
export class EventModel {
  private readonly accounts = new Map<string, Watched>();
  private readonly keys = new Map<string, WatchedKey>();

  /** An operator calls a balance low. One that is below already has not fallen. */
  callLow(id: string, low: bigint | null, balance: bigint): void {
    const account = this.of(id);
    account.low = low;
    account.isLow = low !== null && balance < low;
  }

  moved(id: string, from: bigint, to: bigint): void {
    const account = this.of(id);
    if (to > from) {
      account.events.push(`account.credited ${String(to - from)}`);
      account.exhausted = false;
      if (account.low === null || to > account.low) account.isLow = false;
    } else if (account.low !== null && to < account.low && !account.isLow && to < from) {
      account.events.push("account.low_balance");
      account.isLow = true;
    }
  }

  /** A request was refused for credit, and found this balance; the account has `balance` now. */
  refused(id: string, found: bigint, balance: bigint): void {
    const account = this.of(id);
    if (account.exhausted || balance > found) return;
    account.exhausted = true;
    account.events.push("account.exhausted");
  }

  /** Another budget than before, of which nothing was told. */
  budgetSet(key: string): void {
    const watched = this.ofKey(key);
    watched.begin = null;
    watched.percent = 0;
  }

  /** A budget has spent so much: 80 % and all of it are told of once a period each. */
  spent(key: string, { amount, begin, spent }: SpentBudget): void {
    const watched = this.ofKey(key);
    if (watched.begin !== begin) watched.percent = 0;
    for (const percent of [80, 100]) {
      if (percent <= watched.percent || !isSpent({ amount, spent }, percent)) continue;
      this.tell(key, begin, percent);
    }
  }

  /** A request was refused for it, which counts as all of it where most is spent. */
  budgetRefused(key: string, { amount, begin, spent }: SpentBudget): void {
    const watched = this.ofKey(key);
    const wasAll = watched.begin === begin && watched.percent === 100;
    if (!wasAll && isSpent({ amount, spent }, 80)) this.tell(key, begin, 100);
  }

  /** A key that ends within a day is announced, each end once. Whether it was now. */
  expires(key: string, atMs: number): boolean {
    const watched = this.ofKey(key);
    if (watched.announced === atMs) return false;
    watched.announced = atMs;
    watched.events.push(`key.expiring ${String(atMs)}`);
    return true;
  }

  /** Of accounts and of keys. */
  events(id: string): readonly string[] {
    return (this.accounts.get(id) ?? this.keys.get(id))?.events ?? [];
  }

  private tell(key: string, begin: number, percent: number): void {
    const watched = this.ofKey(key);
    watched.begin = begin;
    watched.percent = percent;
    watched.events.push(`budget.reached ${String(percent)}`);
  }

  private of(id: string): Watched {
    const known = this.accounts.get(id);
    if (known !== undefined) return known;
    const account = { low: null, isLow: false, exhausted: false, events: [] };
    this.accounts.set(id, account);
    return account;
  }

  private ofKey(id: string): WatchedKey {
    const known = this.keys.get(id);
    if (known !== undefined) return known;
    const key = { begin: null, percent: 0, announced: null, events: [] };
    this.keys.set(id, key);
    return key;
  }
}

/** Whether four fifths, or all, of an amount is spent; a fifth is rounded down. */
function isSpent(
  { amount, spent }: { readonly amount: bigint; readonly spent: bigint },
  percent: number,
): boolean {
  return spent >= (percent === 100 ? amount : amount - amount / 5n);
}
