interface Watched {
  low: bigint | null;
  /** The balance has fallen below it, and has not been above it since. */
  isLow: boolean;
  exhausted: boolean;
  readonly events: string[];
}

/** What has happened to each account, told from its balances alone, in the order in which it did. */
export class EventModel {
  private readonly accounts = new Map<string, Watched>();

  /** An operator calls a balance low. One that is below already has not fallen. */
  callLow(id: string, low: bigint | null, balance: bigint): void {
    const account = this.of(id);
    account.low = low;
    account.isLow = low !== null && balance < low;
  }

  moved(id: string, from: bigint, to: bigint): void {
    const account = this.of(id);
    if (to > from) {
      account.events.push("account.credited");
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

  events(id: string): readonly string[] {
    return this.of(id).events;
  }

  private of(id: string): Watched {
    const known = this.accounts.get(id);
    if (known !== undefined) return known;
    const account = { low: null, isLow: false, exhausted: false, events: [] };
    this.accounts.set(id, account);
    return account;
  }
}
