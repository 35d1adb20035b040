import { numberOf, type Row, textOf, textOrNullOf } from "../row.ts";
import type { ChangeContext } from "./changed-by.ts";
import { ask, type Steps } from "./steps.ts";

/** What is written of a change: plain values, never a secret. */
export type AuditFacts = Readonly<Record<string, string | number | boolean | null>>;

/** One row of the audit log. */
export interface AuditRow {
  /** From 1; a later change has a higher one, save for changes that were under way at once. */
  readonly sequence: number;
  readonly atMs: number;
  readonly actor: string;
  /** Such as `account.create`. */
  readonly action: string;
  /** The id of what was changed. */
  readonly target: string;
  readonly before: AuditFacts | null;
  readonly after: AuditFacts | null;
}

/** Which rows of the audit log to read; null: not asked for. */
export interface AuditQuery {
  readonly actor: string | null;
  readonly action: string | null;
  readonly target: string | null;
  readonly sinceMs: number | null;
  readonly untilMs: number | null;
  /** Rows older than the one of this sequence. */
  readonly before: number | null;
  readonly rowsMax: number;
}

/** Writes a change into the audit log, in the change's own transaction. */
export function* audit(
  { actor, nowMs }: ChangeContext,
  change: Pick<AuditRow, "action" | "target" | "before" | "after">,
): Steps<void> {
  yield* ask(
    `insert into tributary.audit (at_ms, actor, action, target, before_json, after_json)
     values ($1, $2, $3, $4, $5, $6)`,
    nowMs,
    actor,
    change.action,
    change.target,
    jsonOf(change.before),
    jsonOf(change.after),
  );
}

/** What of a thing is otherwise than it was; null: nothing. Both have the same names. */
export function changedFacts(
  before: AuditFacts,
  after: AuditFacts,
): { readonly before: AuditFacts; readonly after: AuditFacts } | null {
  const names = Object.keys(after).filter((name) => before[name] !== after[name]);
  if (names.length === 0) return null;
  const pick = (facts: AuditFacts): AuditFacts =>
    Object.fromEntries(names.map((name) => [name, facts[name] ?? null]));
  return { before: pick(before), after: pick(after) };
}

/** Rows of the audit log, newest first. */
export function* listAudit(query: AuditQuery): Steps<readonly AuditRow[]> {
  const filters = [
    ["actor =", query.actor],
    ["action =", query.action],
    ["target =", query.target],
    ["at_ms >=", query.sinceMs],
    ["at_ms <", query.untilMs],
    ["sequence <", query.before],
  ] as const;
  const wanted = filters.filter(([, value]) => value !== null);
  const where = wanted.map(([condition], at) => `${condition} $${String(at + 1)}`).join(" and ");
  const rows = yield* ask(
    `select sequence, at_ms, actor, action, target, before_json, after_json from tributary.audit
     ${where === "" ? "" : `where ${where}`} order by sequence desc limit ${String(query.rowsMax)}`,
    ...wanted.map(([, value]) => value),
  );
  return rows.map(auditRowOf);
}

function auditRowOf(row: Row): AuditRow {
  return {
    sequence: numberOf(row, "sequence"),
    atMs: numberOf(row, "at_ms"),
    actor: textOf(row, "actor"),
    action: textOf(row, "action"),
    target: textOf(row, "target"),
    before: factsOf(textOrNullOf(row, "before_json")),
    after: factsOf(textOrNullOf(row, "after_json")),
  };
}

function jsonOf(facts: AuditFacts | null): string | null {
  return facts === null ? null : JSON.stringify(facts);
}

function factsOf(json: string | null): AuditFacts | null {
  // The column is written by `audit` alone.
  return json === null ? null : (JSON.parse(json) as AuditFacts);
}
