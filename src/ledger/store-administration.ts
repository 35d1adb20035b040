import { randomBytes } from "node:crypto";
import { newLedgerId } from "./new-api-key.ts";
import type { ChangedBy } from "./administration/changed-by.ts";
import { type JournalHead, parseHead } from "./journal.ts";
import type { LedgerAdministration } from "./ledger.ts";
import { OperatorError } from "./operator-error.ts";
import type { NewSealKey } from "./administration/seal-key-administration.ts";
import { administerKeys, newKey } from "./store-keys.ts";
import { administerOperators } from "./store-operators.ts";
import { administerReplicas } from "./store-replicas.ts";
import { administerArchives, administerUsage } from "./store-usage.ts";
import { administerWebhooks, noteProblems } from "./store-events.ts";
import type { RunOperation } from "./store-operations.ts";

/** The operator's half of the ledger, over a store. */
export function openStoreAdministration(
  run: RunOperation,
  by: ChangedBy,
): LedgerAdministration<string | null> {
  return {
    async ensureFirstAccount(creditNanos) {
      const id = newLedgerId("acct_");
      const { key, secret } = newKey(id, "first");
      const account = { id, name: "first", creditNanos };
      const made = await run("createFirstAccount", { account, key, by });
      return made === null ? null : { ...made, secret };
    },
    createAccount: (name, creditNanos, patch = {}) =>
      run("createAccount", { id: newLedgerId("acct_"), name, creditNanos, patch, by }),
    readStatement: (accountId, month) => run("readStatement", { accountId, month }),
    listAccounts: () => run("listAccounts", null),
    async showAccount(id) {
      const account = await run("showAccount", id);
      if (!(await run("isGrantDue", id))) return account;
      await run("payGrants", { accountId: account.id });
      return run("showAccount", id);
    },
    creditAccount: (id, amountNanos, facts) =>
      run("creditAccount", { id, amountNanos, ...facts, by }),
    setAccountStatus: (id, status) => run("setAccountStatus", { id, status, by }),
    ...administerKeys(run, by),
    changeAccount: (id, to) => run("changeAccount", { id, ...to, by }),
    pageAccounts: (query) => run("pageAccounts", query),
    pageReceipts: (query) => run("pageReceipts", query),
    pageEntries: (query) => run("pageEntries", query),
    sealKeys: () => run("sealKeys", { ...newSealKey(), by }),
    rotateSealKey: () => run("addSealKey", { ...newSealKey(), by }),
    pagePriceLists: (page) => run("pagePriceLists", page),
    showPriceList: (asked) => run("showPriceList", asked),
    createPriceList: (list) => run("createPriceList", { ...list, by }),
    changePriceList: (list) => run("changePriceList", { ...list, by }),
    ...administerOperators(run, by),
    ...administerReplicas(run, by),
    ...administerWebhooks(run, by),
    async showReceipt(requestId) {
      const receipt = await run("receipt", { requestId, accountId: null });
      if (receipt !== null) return receipt;
      throw new OperatorError(
        "not_found",
        `There is no request ${requestId} in this ledger. Only admitted generations have a receipt; the id is in the x-request-id header of the answer. Old receipts may have been archived: look in the files of TRIBUTARY_ARCHIVE_DIR.`,
        { param: "id" },
      );
    },
    ...administerUsage(run),
    ...administerArchives(run, by),
    findUnsummed: (after) => run("findUnsummed", after),
    keepUsage: (accountIds) => run("keepUsage", { accountIds, by }),
    async verify(against, listHeads = false) {
      const report = await run("verify", { against: against.map(ensureHead), listHeads });
      if (!report.ok) await noteProblems(run, report);
      return report;
    },
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

function newSealKey(): NewSealKey {
  return { id: randomBytes(6).toString("hex"), secret: new Uint8Array(randomBytes(32)) };
}

function ensureHead(text: string): JournalHead {
  const head = parseHead(text);
  if (head !== null) return head;
  throw new OperatorError(
    "invalid_value",
    `${JSON.stringify(text)} is no head: it looks as in a receipt, acct_...:17:9f86d0..., with 64 hexadecimal digits at its end.`,
  );
}
