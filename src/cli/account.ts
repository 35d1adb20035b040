import { formatCredit, parseCredit } from "../admission/price.ts";
import type { Account } from "../ledger/records.ts";
import { type Command, type CommandGroup, misuse, operand, type Outcome } from "./command.ts";
import { withLedger } from "./open-ledger.ts";
import { formatTable } from "./text-table.ts";

const help = `Accounts and their credit. Amounts are decimal numbers of credits with at most 9 decimals.

  tributary account create NAME [--credit C]     make an account, with C credits (default 0)
  tributary account list                         all accounts
  tributary account show ID
  tributary account credit ID AMOUNT [--note T]  add credit; a negative amount takes it back, never what is held
  tributary account disable ID                   its keys are answered 403 from the next request on
  tributary account enable ID

  --json   print {"id","name","balance","held","available","status"}
`;

const create: Command = {
  help,
  operands: ["NAME"],
  options: { credit: { type: "string" } },
  run: (line, shell) => {
    const credit = readAmount(line.texts["credit"] ?? "0", "--credit");
    if (credit < 0n) throw misuse("--credit must not be negative.");
    return withLedger(
      shell,
      async (ledger) => {
        const account = await ledger.createAccount(operand(line, 0), credit);
        const next = `Make a key for it: ${shell.programName} key create ${account.id}\n`;
        return one(account, `${describeAccount(account)}${next}`);
      },
      { creates: true },
    );
  },
};

const list: Command = {
  help,
  operands: [],
  options: {},
  run: (_line, shell) =>
    withLedger(shell, async (ledger, place) => {
      const accounts = await ledger.listAccounts();
      const text =
        accounts.length === 0
          ? `There is no account in the ledger (${place}). Make one: ${shell.programName} account create NAME --credit 10\n`
          : formatTable([heads, ...accounts.map(cells)]);
      return { json: accounts.map(toJson), text };
    }),
};

const show: Command = {
  help,
  operands: ["ID"],
  options: {},
  run: (line, shell) =>
    withLedger(shell, async (ledger) => one(await ledger.showAccount(operand(line, 0)))),
};

const credit: Command = {
  help,
  operands: ["ID", "AMOUNT"],
  options: { note: { type: "string" } },
  run: (line, shell) => {
    const amount = readAmount(operand(line, 1), "AMOUNT");
    if (amount === 0n) throw misuse("AMOUNT must not be 0.");
    return withLedger(shell, async (ledger) =>
      one(await ledger.creditAccount(operand(line, 0), amount, line.texts["note"] ?? null)),
    );
  },
};

/** `account ...` */
export const accountCommands: CommandGroup = {
  help,
  actions: {
    create,
    list,
    show,
    credit,
    disable: statusCommand("disabled"),
    enable: statusCommand("active"),
  },
};

function statusCommand(status: Account["status"]): Command {
  return {
    help,
    operands: ["ID"],
    options: {},
    run: (line, shell) =>
      withLedger(shell, async (ledger) =>
        one(await ledger.setAccountStatus(operand(line, 0), status)),
      ),
  };
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

function toJson(account: Account): object {
  const { id, name, status } = account;
  return {
    id,
    name,
    balance: formatCredit(account.balanceNanos),
    held: formatCredit(account.heldNanos),
    available: formatCredit(account.balanceNanos - account.heldNanos),
    status,
  };
}

function describeAccount(account: Account): string {
  return formatTable([heads, cells(account)]);
}

const heads = ["ID", "NAME", "BALANCE", "HELD", "AVAILABLE", "STATUS"];

function cells(account: Account): readonly string[] {
  return Object.values(toJson(account)).map(String);
}
