import { timingSafeEqual } from "node:crypto";
import { OperatorError } from "../operator-error.ts";
import { ensureName } from "../operator-input.ts";
import { bytesOf, idOf, numberOf, numberOrNullOf, type Row, textOf } from "../row.ts";
import { audit } from "./audit.ts";
import type { ChangeContext } from "./changed-by.ts";
import { ask, askOne, type Steps } from "./steps.ts";

/** Public id of an operator: `oper_` and letters and digits. */
export type OperatorId = `oper_${string}`;

/** What an operator may do: everything; accounts, keys, credit, prices and usage; or read. */
export type OperatorRole = (typeof operatorRoles)[number];

/** Every role, from the most to the least. */
export const operatorRoles = ["owner", "billing", "viewer"] as const;

/** An operator without tokens. */
export interface OperatorRecord {
  readonly id: OperatorId;
  readonly name: string;
  readonly role: OperatorRole;
  readonly createdAtMs: number;
  readonly revokedAtMs: number | null;
}

/** An operator to make, with a first token. */
export interface NewOperator {
  readonly id: OperatorId;
  readonly name: string;
  readonly role: OperatorRole;
  readonly token: NewOperatorToken;
}

/** A token to make. */
export interface NewOperatorToken extends PresentedToken {
  /** null: it does not expire. */
  readonly expiresAtMs: number | null;
}

/** A presented token, understood. Only the hash of its secret travels on. */
export interface PresentedToken {
  readonly id: string;
  readonly secretHash: Uint8Array;
}

/** The columns of an operator, as `operatorOf` reads them. */
export const operatorColumns = "id, name, role, created_at_ms, revoked_at_ms";

/** The same in a statement that joins the table. */
export const operatorOfJoin = operatorColumns.replaceAll(/\w+/g, "operator.$&");

/** Makes an operator with a token. */
export function* createOperator(order: NewOperator, context: ChangeContext): Steps<OperatorRecord> {
  const { token } = order;
  if (token.expiresAtMs !== null && token.expiresAtMs <= context.nowMs)
    throw new OperatorError(
      "invalid_value",
      "The token would have expired already. Name a later time.",
      { param: "expires_at" },
    );
  const operator = yield* insertOperator(order, context);
  yield* ask(
    `insert into tributary.operator_token (id, operator_id, secret_hash, created_at_ms, expires_at_ms)
     values ($1, $2, $3, $4, $5)`,
    token.id,
    operator.id,
    token.secretHash,
    context.nowMs,
    token.expiresAtMs,
  );
  return operator;
}

/** Makes an operator that has no token yet. */
export function* insertOperator(
  { id, name, role }: Omit<NewOperator, "token">,
  context: ChangeContext,
): Steps<OperatorRecord> {
  ensureName("operator", name);
  const named = yield* askOne(
    "select 1 as one from tributary.operator where name = $1 and revoked_at_ms is null",
    name,
  );
  if (named !== null)
    throw new OperatorError(
      "not_possible",
      `There is an operator ${JSON.stringify(name)} already. Give another name, or revoke that one first.`,
      { param: "name" },
    );
  yield* ask(
    "insert into tributary.operator (id, name, role, created_at_ms) values ($1, $2, $3, $4)",
    id,
    name,
    role,
    context.nowMs,
  );
  yield* audit(context, {
    action: "operator.create",
    target: id,
    before: null,
    after: { name, role },
  });
  return { id, name, role, createdAtMs: context.nowMs, revokedAtMs: null };
}

/** All operators, oldest first, the revoked ones too. */
export function* listOperators(): Steps<readonly OperatorRecord[]> {
  const rows = yield* ask(
    `select ${operatorColumns} from tributary.operator order by created_at_ms, id`,
  );
  return rows.map(operatorOf);
}

/** Revokes an operator with all tokens; a second time leaves the time of the first. */
export function* revokeOperator(
  { id }: { readonly id: string },
  context: ChangeContext,
): Steps<OperatorRecord> {
  const row = yield* askOne(
    `select ${operatorColumns} from tributary.operator where id = $1 for no key update`,
    id,
  );
  if (row === null)
    throw new OperatorError(
      "not_found",
      `There is no operator ${id}. \`tributary operator list\` shows the operators of this ledger.`,
      { param: "id" },
    );
  const before = operatorOf(row);
  if (before.revokedAtMs !== null) return before;
  yield* ask("update tributary.operator set revoked_at_ms = $2 where id = $1", id, context.nowMs);
  yield* audit(context, {
    action: "operator.revoke",
    target: before.id,
    before: { name: before.name, role: before.role, revoked: false },
    after: { name: before.name, role: before.role, revoked: true },
  });
  return { ...before, revokedAtMs: context.nowMs };
}

/** The operator whose token this is; null: there is none, it has expired, or the operator was revoked. */
export function* findOperator(
  token: PresentedToken,
  { nowMs }: { readonly nowMs: number },
): Steps<OperatorRecord | null> {
  return (yield* findToken(token, nowMs))?.operator ?? null;
}

/** Who presents something good, and when that ends; null: never by itself. */
export interface SignedIn {
  readonly operator: OperatorRecord;
  readonly expiresAtMs: number | null;
}

/** The operator whose token this is, with the end of the token. */
export function* findToken(
  { id, secretHash }: PresentedToken,
  nowMs: number,
): Steps<SignedIn | null> {
  const row = yield* askOne(
    `select ${operatorOfJoin}, token.secret_hash, token.expires_at_ms
     from tributary.operator_token token join tributary.operator operator on operator.id = token.operator_id
     where token.id = $1`,
    id,
  );
  const operator = ownerOf(row, secretHash, nowMs);
  return row === null || operator === null
    ? null
    : { operator, expiresAtMs: numberOrNullOf(row, "expires_at_ms") };
}

/** The operator of a row with the hash and the end of what is presented; null: that is not it, or it is over. */
export function ownerOf(
  row: Row | null,
  secretHash: Uint8Array,
  nowMs: number,
): OperatorRecord | null {
  if (row === null || !timingSafeEqual(bytesOf(row, "secret_hash"), secretHash)) return null;
  const expiresAtMs = numberOrNullOf(row, "expires_at_ms");
  const operator = operatorOf(row);
  const over = expiresAtMs !== null && expiresAtMs <= nowMs;
  return over || operator.revokedAtMs !== null ? null : operator;
}

/** The operator of a row with `operatorColumns`. */
export function operatorOf(row: Row): OperatorRecord {
  const role = textOf(row, "role");
  return {
    id: idOf(row, "id", "oper_"),
    name: textOf(row, "name"),
    role: operatorRoles.find((one) => one === role) ?? "viewer",
    createdAtMs: numberOf(row, "created_at_ms"),
    revokedAtMs: numberOrNullOf(row, "revoked_at_ms"),
  };
}
