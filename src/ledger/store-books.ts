import type { LedgerBooks } from "./books.ts";
import { type JournalHead, parseHead } from "./journal.ts";
import { OperatorError } from "./operator-error.ts";
import type { RunOperation } from "./operations.ts";
import type { LedgerForCallers } from "./receipt.ts";

/** What callers may read, over a store. */
export function openLedgerForCallers(run: RunOperation): LedgerForCallers {
  return {
    showCaller: (accountId) => run("callerAccount", accountId),
    findReceipt: (accountId, requestId) => run("receipt", { accountId, requestId }),
  };
}

/** What the operator may read and roll up, over a store. */
export function openLedgerBooks(run: RunOperation): LedgerBooks {
  return {
    async showReceipt(requestId) {
      const receipt = await run("receipt", { requestId, accountId: null });
      if (receipt !== null) return receipt;
      throw new OperatorError(
        "not_found",
        `There is no request ${requestId} in this ledger. Only admitted generations have a receipt; the id is in the x-request-id header of the answer.`,
      );
    },
    async sumUsage(query) {
      // An account that does not exist is told from one that has used nothing.
      if (query.accountId !== null) await run("showAccount", query.accountId);
      return run("usage", query);
    },
    verify: async (against, tellHeads = false) =>
      run("verify", { against: against.map(ensureHead), tellHeads }),
    async checkpoint(accountId, beforeMs) {
      const { id } = await run("showAccount", accountId);
      let removed = 0;
      let misdated = 0;
      for (;;) {
        const step = await run("checkpoint", { accountId: id, beforeMs });
        removed += step.removed;
        misdated += step.misdated;
        if (step.done) return { removed, misdated };
      }
    },
  };
}

function ensureHead(text: string): JournalHead {
  const head = parseHead(text);
  if (head !== null) return head;
  throw new OperatorError(
    "invalid_value",
    `${JSON.stringify(text)} is no head: it looks as in a receipt, acct_...:17:9f86d0..., with 64 hexadecimal digits at its end.`,
  );
}
