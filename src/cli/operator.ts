import type {
  OperatorRecord,
  OperatorRole,
} from "../ledger/administration/operator-administration.ts";
import type { AuditFacts, AuditRow } from "../ledger/administration/audit.ts";
import { urlOf } from "../network/http-server.ts";
import { loginLink } from "../operators/login-link.ts";
import { misuse, type Outcome, type Shell } from "./command.ts";
import { withLedger } from "./open-ledger.ts";
import { readCount } from "./read-count.ts";
import { readFutureTime, readTime } from "./read-time.ts";
import { ensureConfig } from "./settings.ts";
import { formatTable } from "./text-table.ts";

/** `operator create` */
export async function createOperator(
  shell: Shell,
  name: string,
  options: { readonly role: OperatorRole; readonly expires?: string | undefined },
): Promise<Outcome> {
  const { expires, role } = options;
  const expiresAtMs =
    expires === undefined ? null : readFutureTime(expires, "--expires", Date.now());
  return withLedger(
    shell,
    async (ledger) => {
      const { record, secret } = await ledger.createOperator({ name, role, expiresAtMs });
      const hint = shell.stdout.terminal
        ? "Keep it now: it is not stored and is not shown again.\n"
        : "";
      return {
        json: { ...toJson(record), token: secret, expires: isoTime(expiresAtMs) },
        text: `${secret}\n${hint}`,
      };
    },
    { creates: true },
  );
}

/** `operator login-link` */
export function printLoginLink(
  shell: Shell,
  options: { readonly operator?: string | undefined },
): Promise<Outcome> {
  const url = loginAddress(shell);
  return withLedger(shell, async (ledger) => {
    const { operator, secret } = await ledger.createLoginCode(options.operator ?? null);
    const link = loginLink(url, secret);
    return { json: { operator: toJson(operator), link }, text: `${link}\n` };
  });
}

/** Where the settings say that operators are listened to. */
export function loginAddress(shell: Shell): string {
  const { operator } = ensureConfig(shell);
  if (operator === null)
    throw misuse("TRIBUTARY_OPERATOR_PORT=off: the service listens for operators nowhere.");
  return operator.publicUrl ?? urlOf(operator);
}

/** `operator list` */
export function listOperators(shell: Shell): Promise<Outcome> {
  return withLedger(shell, async (ledger) => {
    const operators = await ledger.listOperators();
    const text =
      operators.length === 0
        ? `There is no operator. Make one: ${shell.programName} operator create NAME --role owner\n`
        : formatTable([heads, ...operators.map(cells)]);
    return { json: operators.map(toJson), text };
  });
}

/** `operator revoke` */
export function revokeOperator(shell: Shell, id: string): Promise<Outcome> {
  return withLedger(shell, async (ledger) => {
    const operator = await ledger.revokeOperator(id);
    return { json: toJson(operator), text: formatTable([heads, cells(operator)]) };
  });
}

/** `audit` */
export async function showAudit(
  shell: Shell,
  options: {
    readonly actor?: string | undefined;
    readonly action?: string | undefined;
    readonly target?: string | undefined;
    readonly since?: string | undefined;
    readonly until?: string | undefined;
    readonly limit: string;
  },
): Promise<Outcome> {
  const { action = null, actor = null, limit, since, target = null, until } = options;
  const nowMs = Date.now();
  const sinceMs = since === undefined ? null : readTime(since, "--since", nowMs);
  const untilMs = until === undefined ? null : readTime(until, "--until", nowMs);
  if (sinceMs !== null && untilMs !== null && sinceMs >= untilMs)
    throw misuse("--since must be before --until.");
  const rowsMax = readCount(limit, "--limit", 500);
  return withLedger(shell, async (ledger) => {
    const query = { actor, action, target, sinceMs, untilMs, before: null, rowsMax };
    const rows = await ledger.listAudit(query);
    const text =
      rows.length === 0
        ? "Nothing was changed that these filters let through.\n"
        : formatTable([auditHeads, ...rows.map(auditCells)]);
    return { json: rows.map(auditToJson), text };
  });
}

const heads = ["ID", "NAME", "ROLE", "CREATED", "REVOKED"];

function toJson(operator: OperatorRecord): Readonly<Record<string, string | null>> {
  const { id, name, role } = operator;
  return {
    id,
    name,
    role,
    created: isoTime(operator.createdAtMs),
    revoked: isoTime(operator.revokedAtMs),
  };
}

function cells(operator: OperatorRecord): readonly string[] {
  return Object.values(toJson(operator)).map((value) => value ?? "-");
}

const auditHeads = ["TIME", "ACTOR", "ACTION", "TARGET", "BEFORE", "AFTER"];

function auditToJson(row: AuditRow): object {
  const { action, actor, after, before, sequence, target } = row;
  return { sequence, time: isoTime(row.atMs), actor, action, target, before, after };
}

function auditCells(row: AuditRow): readonly string[] {
  const time = isoTime(row.atMs) ?? "";
  return [time, row.actor, row.action, row.target, factsText(row.before), factsText(row.after)];
}

function factsText(facts: AuditFacts | null): string {
  if (facts === null) return "-";
  return Object.entries(facts)
    .map(([name, value]) => `${name}=${JSON.stringify(value)}`)
    .join(" ");
}

function isoTime(ms: number): string;
function isoTime(ms: number | null): string | null;
function isoTime(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString();
}
