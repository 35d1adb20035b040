import type { KeyPolicy } from "../ledger/administration/key-administration.ts";
import type { ShownKey } from "../ledger/ledger.ts";
import { type KeyRecord, type KeyScope, keyScopes } from "../ledger/records.ts";
import { limits } from "../limits.ts";
import { misuse, type Outcome, type Shell } from "./command.ts";
import { withLedger } from "./open-ledger.ts";
import { readCount } from "./read-count.ts";
import { readFutureTime, readTime } from "./read-time.ts";
import { formatTable } from "./text-table.ts";

/** `key create` */
export function createKey(shell: Shell, account: string, options: NewKeyOptions): Promise<Outcome> {
  const policy = policyOf(options);
  return withLedger(shell, async (ledger) =>
    shown(shell, await ledger.createKey(account, options.name, policy)),
  );
}

interface NewKeyOptions {
  readonly name: string;
  readonly scopes?: string | undefined;
  readonly expires?: string | undefined;
  readonly requestsPerMinute?: string | undefined;
  readonly outputTokensMax?: string | undefined;
}

function policyOf(options: NewKeyOptions): KeyPolicy {
  const { expires, outputTokensMax: tokens, requestsPerMinute: perMinute, scopes } = options;
  return {
    scopes: scopes === undefined ? undefined : readScopes(scopes),
    expiresAtMs: expires === undefined ? null : readFutureTime(expires, "--expires", Date.now()),
    limits: {
      requestsPerMinute:
        perMinute === undefined
          ? null
          : readCount(perMinute, "--requests-per-minute", limits.requestsPerMinuteMax),
      outputTokensMax:
        tokens === undefined
          ? null
          : readCount(tokens, "--output-tokens-max", limits.outputAllowanceMax),
    },
  };
}

function readScopes(text: string): readonly KeyScope[] {
  const words = text.split(",");
  const unknown = words.find((word) => !keyScopes.some((scope) => scope === word));
  if (unknown !== undefined)
    throw misuse(
      `--scopes ${JSON.stringify(text)} is no list of scopes: write generate, read, or generate,read.`,
    );
  return keyScopes.filter((scope) => words.includes(scope));
}

/** `key rotate` */
export function rotateKey(
  shell: Shell,
  id: string,
  options: { readonly overlap?: string | undefined },
): Promise<Outcome> {
  const { overlap } = options;
  const now = Date.now();
  const overlapMs = overlap === undefined ? 0 : now - readTime(overlap, "--overlap", now);
  if (overlapMs < 0 || overlapMs > limits.rotationOverlapSecondsMax * 1_000)
    throw misuse("--overlap is a span of up to 30d, such as 24h.");
  return withLedger(shell, async (ledger) => shown(shell, await ledger.rotateKey(id, overlapMs)));
}

/** `key pause` and `key resume` */
export function setKeyStatus(
  shell: Shell,
  id: string,
  status: KeyRecord["status"],
): Promise<Outcome> {
  return withLedger(shell, async (ledger) => one(await ledger.changeKey(id, { status })));
}

function shown(shell: Shell, { record, secret }: ShownKey<string>): Outcome {
  const { accountId, id, name } = record;
  const hint = shell.stdout.terminal
    ? "Keep it now: it is not stored and is not shown again.\n"
    : "";
  return { json: { id, account: accountId, name, key: secret }, text: `${secret}\n${hint}` };
}

function one(key: KeyRecord): Outcome {
  return { json: toJson(key), text: formatTable([heads, cells(key)]) };
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
  return withLedger(shell, async (ledger) => one(await ledger.revokeKey(id)));
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
