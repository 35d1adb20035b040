import { formatCredit, parseCredit } from "../admission/price.ts";
import { entryToJson } from "../ledger/administration/entry-row.ts";
import { creditKinds } from "../ledger/journal.ts";
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
  const credit = readAmount(options.credit, "--credit");
  if (credit < 0n) throw misuse("--credit must not be negative.");
  return withLedger(
    shell,
    async (ledger) => {
      const account = await ledger.createAccount(name, credit);
      const next = `Make a key for it: ${shell.programName} key create ${account.id}\n`;
      return one(account, `${describeAccount(account)}${next}`);
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

/** `account show` */
export function showAccount(shell: Shell, id: string): Promise<Outcome> {
  return withLedger(shell, async (ledger) => one(await ledger.showAccount(id)));
}

/** `account credit` */
export async function creditAccount(
  shell: Shell,
  given: CreditOptions & { readonly id: string; readonly amount: string },
): Promise<Outcome> {
  const amount = readAmount(given.amount, "AMOUNT");
  if (amount === 0n) throw misuse("AMOUNT must not be 0.");
  const kind = creditKinds.find((each) => each === (given.kind ?? "top_up"));
  if (kind === undefined) throw misuse(`--kind is one of ${creditKinds.join(", ")}.`);
  const { note = null, receipt = null, reference = null } = given;
  return withLedger(shell, async (ledger) => {
    const facts = { kind, note, receipt, reference };
    const { account, entry } = await ledger.creditAccount(given.id, amount, facts);
    const { json, text } = one(account);
    return { json: { ...(json as object), entry: entryToJson(entry) }, text };
  });
}

/** What may be said of credit beside its amount. */
interface CreditOptions {
  readonly kind?: string | undefined;
  readonly note?: string | undefined;
  readonly receipt?: string | undefined;
  readonly reference?: string | undefined;
}

/** `account disable` and `account enable` */
export function setStatus(shell: Shell, id: string, status: Account["status"]): Promise<Outcome> {
  return withLedger(shell, async (ledger) => one(await ledger.setAccountStatus(id, status)));
}

/** `account price` */
export function setPriceList(shell: Shell, id: string, priceList: string): Promise<Outcome> {
  return withLedger(shell, async (ledger) => one(await ledger.changeAccount(id, { priceList })));
}

function readAmount(text: string, where: string): bigint {
  const nanos = parseCredit(text);
  if (nanos === null)
    throw misuse(
      `${where} ${JSON.stringify(text)} is no amount of credits: write it as 10, 0.25 or -3, with at most 9 decimals.`,
    );
  return nanos;
}

function one(account: Account, text = describeAccount(account)): Outcome {
  return { json: toJson(account), text };
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

function describeAccount(account: Account): string {
  return formatTable([heads, cells(account)]);
}

const heads = ["ID", "NAME", "BALANCE", "HELD", "AVAILABLE", "STATUS"];

function cells(account: Account): readonly string[] {
  const { available, balance, held, id, name, status } = toJson(account);
  return [id, name, balance, held, available, status];
}
