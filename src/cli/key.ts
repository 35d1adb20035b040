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

const heads = [
  "ID",
  "ACCOUNT",
  "NAME",
  "STATUS",
  "SCOPES",
  "PER MINUTE",
  "TOKENS",
  "EXPIRES",
  "LAST USED",
  "CREATED",
  "REVOKED",
];

function toJson(key: KeyRecord): Readonly<Record<string, unknown>> {
  return {
    id: key.id,
    account: key.accountId,
    name: key.name,
    status: key.status,
    scopes: key.scopes,
    limits: {
      requests_per_minute: key.limits.requestsPerMinute,
      output_tokens_max: key.limits.outputTokensMax,
    },
    expires: isoTimeOrNull(key.expiresAtMs),
    last_used: isoTimeOrNull(key.lastUsedAtMs),
    created: isoTimeOrNull(key.createdAtMs),
    revoked: isoTimeOrNull(key.revokedAtMs),
  };
}

function cells(key: KeyRecord): readonly string[] {
  const numbers = [key.limits.requestsPerMinute, key.limits.outputTokensMax];
  const times = [key.expiresAtMs, key.lastUsedAtMs, key.createdAtMs, key.revokedAtMs];
  return [key.id, key.accountId, key.name, key.status, key.scopes.join(" ")]
    .concat(numbers.map((limit) => (limit === null ? "-" : String(limit))))
    .concat(times.map((time) => isoTimeOrNull(time) ?? "-"));
}

function isoTimeOrNull(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString();
}
