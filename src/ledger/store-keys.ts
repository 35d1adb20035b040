import type { ChangedBy } from "./administration/changed-by.ts";
import type { CountedCharges } from "./administration/budget-administration.ts";
import type { KeyPatch, NewKey } from "./administration/key-administration.ts";
import type { LedgerAdministration } from "./ledger.ts";
import { newApiKey, newLedgerId } from "./new-api-key.ts";
import { unknownKeyId } from "./operator-input.ts";
import type { RunOperation } from "./store-operations.ts";

/** What operators do with keys, over a store. */
export function administerKeys(
  run: RunOperation,
  by: ChangedBy,
): Pick<
  LedgerAdministration<string | null>,
  "createKey" | "changeKey" | "rotateKey" | "listKeys" | "findKey" | "findKeys" | "revokeKey"
> {
  return {
    async createKey(accountId, name, policy = {}) {
      // The key carries its account's id, so that has to be one before a secret is made.
      const account = await run("showAccount", accountId);
      const { key, secret } = newKey(account.id, name);
      const record = await run("createKey", { ...key, ...policy, by });
      // A repeat answers the key of the first time, whose secret is nowhere.
      return { record, secret: record.id === key.id ? secret : null };
    },
    async changeKey(id, to) {
      return run("changeKey", { id, ...to, counted: await countAll(run, id, to), by });
    },
    async rotateKey(id, overlapMs) {
      const key = await run("findKey", id);
      if (key === null) throw unknownKeyId(id);
      const { secret, secretHash } = newApiKey(key.accountId, key.id);
      const order = { id, secretHash, overlapMs, rotationId: newLedgerId("key_") };
      const { record, rotationId } = await run("rotateKey", { ...order, by });
      return { record, secret: rotationId === order.rotationId ? secret : null };
    },
    listKeys: (accountId) => run("listKeys", accountId),
    findKey: (id) => run("findKey", id),
    findKeys: (prefix) => run("findKeys", prefix),
    revokeKey: (id) => run("revokeKey", { id, by }),
  };
}

/** What the key was charged in the period of the budget that it gets, in steps between which requests go on. */
async function countAll(
  run: RunOperation,
  id: string,
  { budget = null }: KeyPatch,
): Promise<CountedCharges | null> {
  if (budget === null) return null;
  let counted = await run("countCharges", { id, budget, counted: null });
  while (counted.nextMs !== null) counted = await run("countCharges", { id, budget, counted });
  return counted;
}

/** A key to make, and its secret. */
export function newKey(
  accountId: `acct_${string}`,
  name: string,
): { readonly key: NewKey; readonly secret: string } {
  const id = newLedgerId("key_");
  const { secret, secretHash } = newApiKey(accountId, id);
  return { key: { id, accountId, name, secretHash }, secret };
}
