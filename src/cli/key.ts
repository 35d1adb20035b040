import type { KeyRecord } from "../ledger/records.ts";
import type { Outcome, Shell } from "./command.ts";
import { withLedger } from "./open-ledger.ts";
import { formatTable } from "./text-table.ts";

/** `key create` */
export function createKey(
  shell: Shell,
  account: string,
  options: { readonly name: string },
): Promise<Outcome> {
  return withLedger(shell, async (ledger) => {
    const { record, secret } = await ledger.createKey(account, options.name);
    const { id, accountId, name } = record;
    return {
      json: { id, account: accountId, name, key: secret },
      text: `${secret}\n${shell.stdout.terminal ? "Keep it now: it is not stored and is not shown again.\n" : ""}`,
    };
  });
}

/** `key list` */
export function listKeys(shell: Shell, account: string): Promise<Outcome> {
  return withLedger(shell, async (ledger) => {
    const keys = await ledger.listKeys(account);
    const text =
      keys.length === 0
        ? `The account has no key. Make one: ${shell.programName} key create ${account}\n`
        : formatTable([heads, ...keys.map(cells)]);
    return { json: keys.map(toJson), text };
  });
}

/** `key revoke` */
export function revokeKey(shell: Shell, id: string): Promise<Outcome> {
  return withLedger(shell, async (ledger) => {
    const key = await ledger.revokeKey(id);
    return { json: toJson(key), text: formatTable([heads, cells(key)]) };
  });
}

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
