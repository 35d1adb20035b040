import type { HttpBindings } from "@hono/node-server";
import { deleteCookie, getCookie, setCookie } from "hono/cookie";
import type { SessionRecord } from "../ledger/administration/session-administration.ts";
import type { StoreLedger } from "../ledger/store-ledger.ts";
import { limits } from "../limits.ts";
import { type ClientAddressOf, networkOf } from "../network/client-address.ts";
import type { FailedTries } from "./failed-tries.ts";
import { ProblemError } from "./problem.ts";
import type { OperatorContext } from "./route.ts";

/** What tells who asks. */
export interface SignInParts {
  readonly ledger: () => Promise<StoreLedger>;
  readonly tries: FailedTries;
  /** The address that a request comes from. */
  readonly clientOf: ClientAddressOf;
  /** The address by which operators come through a proxy; null: they come by an address of this machine. */
  readonly publicUrl: string | null;
  /** How the listener itself is asked. */
  readonly scheme: "http" | "https";
}

/** Finds the operator of a request, by its token or by the session of its cookie; throws where there is none. */
export async function authenticate(context: OperatorContext, parts: SignInParts): Promise<void> {
  const ledger = await parts.ledger();
  context.set("ledger", ledger);
  const authorization = context.req.header("authorization");
  const presented = getCookie(context, cookieOf(context));
  if (authorization === undefined && presented !== undefined) {
    const session = await ledger.findSession(presented);
    if (session === null) throw sessionOver();
    if (!["GET", "HEAD"].includes(context.req.method)) ensureOwnOrigin(context, parts);
    context.set("operator", session.operator);
    context.set("session", session);
    return;
  }
  const token = tokenOf(context);
  const operator = token === undefined ? null : await ledger.findOperator(token);
  if (operator === null)
    throw refuse(context, parts, { tried: token !== undefined, detail: wordsFor(token) });
  context.set("operator", operator);
}

/** The token that a request came with. */
export function tokenOf(context: OperatorContext): string | undefined {
  return /^Bearer (\S+)$/i.exec(context.req.header("authorization") ?? "")?.[1];
}

/** Opens a session for a token or a code, and gives its cookie. */
export async function signIn(
  context: OperatorContext,
  parts: SignInParts,
  by: Parameters<StoreLedger["openSession"]>[0],
): Promise<SessionRecord> {
  const secure = ensureOwnOrigin(context, parts);
  const opened = await (await parts.ledger()).openSession(by);
  if (opened === null)
    throw refuse(context, parts, {
      tried: true,
      param: by.type === "code" ? "link" : "token",
      detail:
        by.type === "code"
          ? "The link was used before, or is older than 15 minutes. `tributary operator login-link` prints another."
          : wordsFor(by.presented),
    });
  const { secret, session } = opened;
  setCookie(context, cookieOf(context), secret, {
    httpOnly: true,
    sameSite: "Strict",
    secure,
    path: "/",
    maxAge: limits.sessionMs / 1_000,
  });
  return session;
}

/** Ends the session of the cookie; false: the request came with a token. */
export async function signOut(context: OperatorContext): Promise<boolean> {
  const presented = getCookie(context, cookieOf(context));
  if (presented === undefined || context.get("session") === undefined) return false;
  deleteCookie(context, cookieOf(context), { path: "/" });
  return context.get("ledger").endSession(presented);
}

/** The name of the session's cookie. Cookies are of a host with all its ports, and one machine may have several services. */
export function cookieOf(context: OperatorContext): string {
  const [, port] = /:(\d+)$/.exec(context.req.header("host") ?? "") ?? [];
  return port === undefined ? "tributary_session" : `tributary_session_${port}`;
}

/** Throws where a page of another origin, of another port too, has sent this; returns whether it came under TLS. */
function ensureOwnOrigin(
  context: OperatorContext,
  { publicUrl, scheme }: Pick<SignInParts, "publicUrl" | "scheme">,
): boolean {
  const origin = context.req.header("origin");
  const own = [`${scheme}://${context.req.header("host") ?? ""}`, publicUrl ?? ""].map(originOf);
  if (origin !== undefined && own.includes(originOf(origin))) return origin.startsWith("https:");
  throw new ProblemError({
    status: 403,
    code: "origin_refused",
    detail: `A call with a session's cookie has the \`Origin\` of this listener, port included, and not ${JSON.stringify(origin ?? "none")}. Behind a proxy set TRIBUTARY_OPERATOR_URL to the address that the browser shows; a program sends a token instead.`,
  });
}

function originOf(address: string): string | null {
  return URL.parse(address)?.origin ?? null;
}

function refuse(
  context: OperatorContext,
  parts: Pick<SignInParts, "clientOf" | "tries">,
  wrong: { readonly tried: boolean; readonly detail: string; readonly param?: string },
): ProblemError {
  const address = networkOf(parts.clientOf((context.env as HttpBindings).incoming));
  if (wrong.tried && parts.tries.areTooMany(address))
    return new ProblemError({
      status: 429,
      code: "too_many_tries",
      detail: "Too many wrong tokens came from this address. Wait a minute, or send a right one.",
      retryAfterSeconds: Math.ceil(limits.failedTriesWindowMs / 1_000),
    });
  if (wrong.tried) parts.tries.add(address);
  const { detail, param } = wrong;
  const code = "token_unknown";
  return new ProblemError({ status: 401, code, detail, ...(param === undefined ? {} : { param }) });
}

function wordsFor(token: string | undefined): string {
  return token === undefined
    ? "Send the token of an operator as `Authorization: Bearer trop_...`. `tributary operator create` prints one."
    : "The token is of no operator: it is misspelt, has expired, or was revoked. `tributary operator create` prints a new one.";
}

/** No try that counts: a console whose session has ended asks on until the person signs in again. */
function sessionOver(): ProblemError {
  return new ProblemError({
    status: 401,
    code: "session_over",
    detail: "The session has ended. Sign in again, with a token or a link.",
  });
}
