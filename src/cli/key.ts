import type { KeyRecord } from "../ledger/records.ts";
import { type Command, type CommandGroup, operand } from "./command.ts";
import { withLedger } from "./open-ledger.ts";
import { formatTable } from "./text-table.ts";

const help = `API keys. The ledger keeps only a hash of each, so a key is shown once.

  tributary key create ACCOUNT [--name N]   make a key and print it
  tributary key list ACCOUNT
  tributary key revoke KEY_ID               it is answered 401 from the next request on

  --json   create prints {"id","account","name","key"}; the others print no secret
`;

const create: Command = {
  help,
  operands: ["ACCOUNT"],
  options: { name: { type: "string" } },
  run: (line, shell) =>
    withLedger(shell, async (ledger) => {
      const { record, secret } = await ledger.createKey(
        operand(line, 0),
        line.texts["name"] ?? "default",
      );
      const { id, accountId, name } = record;
      return {
        json: { id, account: accountId, name, key: secret },
        text: `${secret}\n${shell.stdout.terminal ? "Keep it now: it is not stored and is not shown again.\n" : ""}`,
      };
    }),
};

const list: Command = {
  help,
  operands: ["ACCOUNT"],
  options: {},
  run: (line, shell) =>
    withLedger(shell, async (ledger) => {
      const keys = await ledger.listKeys(operand(line, 0));
      const text =
        keys.length === 0
          ? `The account has no key. Make one: ${shell.programName} key create ${operand(line, 0)}\n`
          : formatTable([heads, ...keys.map(cells)]);
      return { json: keys.map(toJson), text };
    }),
};

const revoke: Command = {
  help,
  operands: ["KEY_ID"],
  options: {},
  run: (line, shell) =>
    withLedger(shell, async (ledger) => {
      const key = await ledger.revokeKey(operand(line, 0));
      return { json: toJson(key), text: formatTable([heads, cells(key)]) };
    }),
};

/** `key ...` */
export const keyCommands: CommandGroup = { help, actions: { create, list, revoke } };

const heads = ["ID", "ACCOUNT", "NAME", "CREATED", "REVOKED"];

function toJson(key: KeyRecord): Readonly<Record<string, string | null>> {
  return {
    id: key.id,
    account: key.accountId,
    name: key.name,
    created: isoTime(key.createdAtMs),
    revoked: key.revokedAtMs === null ? null : isoTime(key.revokedAtMs),
  };
}

function cells(key: KeyRecord): readonly string[] {
  return Object.values(toJson(key)).map((value) => value ?? "-");
}

function isoTime(ms: number): string {
  return new Date(ms).toISOString();
}
