import { loginAddress } from "./operator.ts";
import type { Ask } from "./here-api.ts";
import { CommandError, misuse, type Outcome, type Shell } from "./command.ts";

/** What to ask. */
interface ApiCall {
  readonly method: string;
  readonly path: string;
  readonly body?: string | undefined;
  readonly url?: string | undefined;
  readonly once?: string | undefined;
}

/** `api` */
export async function callApi(shell: Shell, call: ApiCall): Promise<Outcome> {
  const { body, once, url } = call;
  const method = call.method.toUpperCase();
  if (!/^(?:GET|POST|PATCH|PUT|DELETE)$/.test(method))
    throw misuse(`${call.method} is no method of the API: GET, POST, PATCH, PUT or DELETE.`);
  if (!call.path.startsWith("/"))
    throw misuse(`${JSON.stringify(call.path)} is no path: /accounts is one.`);
  const answer = await askAfar(shell, url)(call.path.replace(/^\/api\/v1(?=\/)/, ""), {
    method,
    headers: {
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...(once === undefined ? {} : { "idempotency-key": once }),
    },
    ...(body === undefined ? {} : { body }),
  });
  await ensureWell(answer);
  return outcomeOf(await answer.text(), answer.headers.get("content-type") ?? "");
}

/** Asks a service that runs, with the token in TRIBUTARY_OPERATOR_TOKEN; without an address the one of the settings. */
export function askAfar(shell: Shell, url: string | undefined): Ask {
  const token = shell.environment()["TRIBUTARY_OPERATOR_TOKEN"]?.trim() ?? "";
  if (token === "")
    throw misuse(
      "TRIBUTARY_OPERATOR_TOKEN is not set: the token of an operator. `tributary operator create` prints one.",
    );
  const base = url ?? loginAddress(shell);
  if (!/^https?:\/\//.test(base) || URL.parse(base) === null)
    throw misuse(`--url ${JSON.stringify(base)} is no address: write it as http://127.0.0.1:8081.`);
  return (path, init) => {
    const headers = new Headers(init.headers);
    headers.set("authorization", `Bearer ${token}`);
    return ask(new URL(`${base.replace(/\/+$/, "")}/api/v1${path}`), { ...init, headers });
  };
}

/** Throws the problem that an answer is; a request that is wrong is a misuse of the command that made it. */
export async function ensureWell(
  answer: Response,
  { misused }: { readonly misused: 1 | 2 } = { misused: 1 },
): Promise<void> {
  if (answer.ok) return;
  const { code, message } = problemOf(await answer.text(), answer.status);
  throw new CommandError(code, answer.status === 400 ? misused : 1, message);
}

async function ask(address: URL, init: RequestInit): Promise<Response> {
  try {
    return await fetch(address, init);
  } catch (error) {
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
    const reason = cause instanceof Error && cause.message !== "" ? cause.message : "no answer";
    throw new CommandError(
      "no_answer",
      1,
      `${address.origin}: ${reason}. See that the service runs and listens for operators there, or name the address with --url.`,
    );
  }
}

function outcomeOf(text: string, type: string): Outcome {
  if (!type.startsWith("application/json")) return { json: text, text };
  const json: unknown = JSON.parse(text);
  return { json, text: `${JSON.stringify(json, null, 2)}\n` };
}

function problemOf(
  text: string,
  status: number,
): { readonly code: string; readonly message: string } {
  const known = readJson(text);
  const { code, detail } = (typeof known === "object" && known !== null ? known : {}) as Readonly<
    Record<string, unknown>
  >;
  return {
    code: typeof code === "string" ? code : "failed",
    message: `${String(status)} ${typeof detail === "string" ? detail : text.slice(0, 400)}`,
  };
}

function readJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
