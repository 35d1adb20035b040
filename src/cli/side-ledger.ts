import type { StoreLedger } from "../ledger/store-ledger.ts";

/** The ledger, opened when it is first wanted; where that fails, the next who wants it tries again. */
export function openOnce(
  open: () => Promise<StoreLedger>,
): AsyncDisposable & { open(): Promise<StoreLedger> } {
  let opened: Promise<StoreLedger> | null = null;
  return {
    open() {
      const mine = (opened ??= open());
      mine.catch(() => {
        if (opened === mine) opened = null;
      });
      return mine;
    },
    async [Symbol.asyncDispose]() {
      await opened?.then((ledger) => ledger[Symbol.asyncDispose](), ignore);
    },
  };
}

function ignore(): void {}
