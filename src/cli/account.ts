import { formatCredit, parseCredit } from "../admission/price.ts";
import type { Account } from "../ledger/records.ts";
import { misuse, type Outcome, type Shell } from "./command.ts";
import { withLedger } from "./open-ledger.ts";
import { formatTable } from "./text-table.ts";

/** `account create` */
export async function createAccount(
  shell: Shell,
  name: string,
  options: { readonly credit: string },
): Promise<Outcome> {
  const credit = parseCredit(options.credit);
  if (credit === null)
    throw misuse(
      `--credit ${JSON.stringify(options.credit)} is no amount of credits: write it as 10 or 0.25, with at most 9 decimals.`,
    );
  if (credit < 0n) throw misuse("--credit must not be negative.");
  return withLedger(
    shell,
    async (ledger) => {
      const account = await ledger.createAccount(name, credit);
      const next = `Make a key for it: ${shell.programName} key create ${account.id}\n`;
      const text = `${formatTable([heads, cells(account)])}${next}`;
      return { json: toJson(account), text };
    },
    { creates: true },
  );
}

/** `account list` */
export function listAccounts(shell: Shell): Promise<Outcome> {
  return withLedger(shell, async (ledger, place) => {
    const accounts = await ledger.listAccounts();
    const text =
      accounts.length === 0
        ? `There is no account in the ledger (${place}). Make one: ${shell.programName} account create NAME --credit 10\n`
        : formatTable([heads, ...accounts.map(cells)]);
    return { json: accounts.map(toJson), text };
  });
}

function toJson(account: Account) {
  const { id, name, status } = account;
  return {
    id,
    name,
    balance: formatCredit(account.balanceNanos),
    held: formatCredit(account.heldNanos),
    available: formatCredit(account.balanceNanos - account.heldNanos),
    status,
    limits: {
      concurrent_requests: account.limits.concurrentRequests,
      requests_per_minute: account.limits.requestsPerMinute,
      output_tokens_max: account.limits.outputTokensMax,
    },
    price_list: account.priceList,
  };
}

const heads = ["ID", "NAME", "BALANCE", "HELD", "AVAILABLE", "STATUS"];

function cells(account: Account): readonly string[] {
  const { available, balance, held, id, name, status } = toJson(account);
  return [id, name, balance, held, available, status];
}
