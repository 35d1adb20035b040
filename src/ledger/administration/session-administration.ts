import { limits } from "../../limits.ts";
import { OperatorError } from "../operator-error.ts";
import { numberOf } from "../row.ts";
import { audit } from "./audit.ts";
import type { ChangeContext } from "./changed-by.ts";
import {
  findToken,
  insertOperator,
  type NewOperator,
  operatorColumns,
  operatorOf,
  operatorOfJoin,
  type OperatorRecord,
  ownerOf,
  type PresentedToken,
  type SignedIn,
} from "./operator-administration.ts";
import { ask, askOne, type Steps } from "./steps.ts";

// A person signs in at the console with a token, or with a code that works once, and gets a session, which a cookie holds.
// Codes and sessions are kept as hashes.

/** A session and whose it is. */
export interface SessionRecord {
  readonly operator: OperatorRecord;
  readonly expiresAtMs: number;
}

/** What signs in, and the session that it becomes. */
export interface NewSession {
  readonly credential: PresentedToken & { readonly type: "token" | "code" };
  readonly session: PresentedToken;
}

/** A code to make, for an operator. */
export interface NewLoginCode {
  /** null: for the only owner, or, on a ledger without operators, for the one that is made. */
  readonly operatorId: string | null;
  readonly code: PresentedToken;
  readonly firstOperator: Omit<NewOperator, "token">;
}

/** Makes a code that signs an operator in once; the first owner too, where there is no operator yet. */
export function* createLoginCode(
  order: NewLoginCode,
  context: ChangeContext,
): Steps<OperatorRecord> {
  const { code, operatorId } = order;
  const first = yield* createFirstOperator(order, context);
  if (first !== null) return first;
  const operator =
    operatorId === null ? yield* findOnlyOwner() : yield* findActiveOperator(operatorId);
  yield* insertCode(operator, code, context);
  return operator;
}

/** The first owner with a code that signs it in; null where the ledger has or had an operator. */
export function* createFirstOperator(
  { code, firstOperator }: Pick<NewLoginCode, "code" | "firstOperator">,
  context: ChangeContext,
): Steps<OperatorRecord | null> {
  if (!(yield* isWithoutOperator())) return null;
  // Two transactions may both find none; under this lock the second finds that of the first.
  yield { type: "lock", name: "first" };
  if (!(yield* isWithoutOperator())) return null;
  const operator = yield* insertOperator(firstOperator, context);
  yield* insertCode(operator, code, context);
  return operator;
}

/** Opens a session for who presents a token or a code; null: neither is good. A code is used up by it. */
export function* openSession(
  { credential, session }: NewSession,
  context: ChangeContext,
): Steps<SessionRecord | null> {
  const { nowMs } = context;
  const found = yield* credential.type === "token"
    ? findToken(credential, nowMs)
    : takeCode(credential, nowMs);
  if (found === null) return null;
  const { operator } = found;
  const longestMs = nowMs + limits.sessionMs;
  const expiresAtMs = Math.min(longestMs, found.expiresAtMs ?? longestMs);
  yield* ask("delete from tributary.operator_session where expires_at_ms <= $1", nowMs);
  yield* ask(
    `insert into tributary.operator_session (id, operator_id, secret_hash, created_at_ms, expires_at_ms)
     values ($1, $2, $3, $4, $5)`,
    session.id,
    operator.id,
    session.secretHash,
    nowMs,
    expiresAtMs,
  );
  yield* audit(
    { ...context, actor: operator.id },
    {
      action: "operator.sign_in",
      target: operator.id,
      before: null,
      after: { by: credential.type },
    },
  );
  return { operator, expiresAtMs };
}

/** The session that is presented; null: there is none, it is over, or its operator was revoked. */
export function* findSession(
  { id, secretHash }: PresentedToken,
  { nowMs }: { readonly nowMs: number },
): Steps<SessionRecord | null> {
  const row = yield* askOne(
    `select ${operatorOfJoin}, session.secret_hash, session.expires_at_ms
     from tributary.operator_session session join tributary.operator operator on operator.id = session.operator_id
     where session.id = $1`,
    id,
  );
  const found = ownerOf(row, secretHash, nowMs);
  return row === null || found === null
    ? null
    : { operator: found, expiresAtMs: numberOf(row, "expires_at_ms") };
}

/** Ends a session; false: there was none. */
export function* endSession({ id, secretHash }: PresentedToken): Steps<boolean> {
  const ended = yield* ask(
    "delete from tributary.operator_session where id = $1 and secret_hash = $2 returning id",
    id,
    secretHash,
  );
  return ended.length > 0;
}

function* takeCode({ id, secretHash }: PresentedToken, nowMs: number): Steps<SignedIn | null> {
  const row = yield* askOne(
    `select ${operatorOfJoin}, code.secret_hash, code.expires_at_ms
     from tributary.login_code code join tributary.operator operator on operator.id = code.operator_id
     where code.id = $1`,
    id,
  );
  const operator = ownerOf(row, secretHash, nowMs);
  if (operator === null) return null;
  // Of two at once the second finds that the row has gone.
  const taken = yield* ask("delete from tributary.login_code where id = $1 returning id", id);
  return taken.length === 0 ? null : { operator, expiresAtMs: null };
}

function* insertCode(
  { id }: OperatorRecord,
  code: PresentedToken,
  context: ChangeContext,
): Steps<void> {
  const { nowMs } = context;
  yield* ask("delete from tributary.login_code where expires_at_ms <= $1", nowMs);
  yield* ask(
    `insert into tributary.login_code (id, operator_id, secret_hash, created_at_ms, expires_at_ms)
     values ($1, $2, $3, $4, $5)`,
    code.id,
    id,
    code.secretHash,
    nowMs,
    nowMs + limits.loginCodeMs,
  );
  yield* audit(context, { action: "operator.login_link", target: id, before: null, after: {} });
}

function* isWithoutOperator(): Steps<boolean> {
  return (yield* askOne("select 1 as one from tributary.operator limit 1")) === null;
}

function* findOnlyOwner(): Steps<OperatorRecord> {
  const rows = yield* ask(
    `select ${operatorColumns} from tributary.operator where role = 'owner' and revoked_at_ms is null limit 2`,
  );
  const [owner, another] = rows.map(operatorOf);
  if (owner !== undefined && another === undefined) return owner;
  throw new OperatorError(
    "not_possible",
    owner === undefined
      ? "No owner is left. Name an operator with --operator, or make an owner: `tributary operator create NAME --role owner`."
      : "There are several owners. Name one with --operator; `tributary operator list` shows them.",
  );
}

function* findActiveOperator(id: string): Steps<OperatorRecord> {
  const row = yield* askOne(
    `select ${operatorColumns} from tributary.operator where id = $1 and revoked_at_ms is null`,
    id,
  );
  if (row !== null) return operatorOf(row);
  throw new OperatorError(
    "not_found",
    `There is no operator ${id}, or it was revoked. \`tributary operator list\` shows those that there are.`,
    { param: "id" },
  );
}
