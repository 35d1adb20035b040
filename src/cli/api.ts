import { loginAddress } from "./operator.ts";
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
  const answer = await send(shell, call);
  return outcomeOf(await answer.text(), answer.headers.get("content-type") ?? "");
}

/** One call that answers an object. */
export async function askApi(
  shell: Shell,
  call: ApiCall,
): Promise<Readonly<Record<string, unknown>>> {
  return (await (await send(shell, call)).json()) as Readonly<Record<string, unknown>>;
}

/** An answer that is no problem. */
async function send(shell: Shell, call: ApiCall): Promise<Response> {
  const method = call.method.toUpperCase();
  if (!/^(?:GET|POST|PATCH|PUT|DELETE)$/.test(method))
    throw misuse(`${call.method} is no method of the API: GET, POST, PATCH, PUT or DELETE.`);
  const token = shell.environment()["TRIBUTARY_OPERATOR_TOKEN"]?.trim() ?? "";
  if (token === "")
    throw misuse(
      "TRIBUTARY_OPERATOR_TOKEN is not set: the token of an operator. `tributary operator create` prints one.",
    );
  const answer = await ask(addressOf(shell, call), {
    method,
    headers: {
      authorization: `Bearer ${token}`,
      ...(call.body === undefined ? {} : { "content-type": "application/json" }),
      ...(call.once === undefined ? {} : { "idempotency-key": call.once }),
    },
    ...(call.body === undefined ? {} : { body: call.body }),
  });
  if (answer.ok) return answer;
  const { code, message } = problemOf(await answer.text(), answer.status);
  throw new CommandError(code, 1, message);
}

function addressOf(shell: Shell, { path, url }: ApiCall): URL {
  if (!path.startsWith("/")) throw misuse(`${JSON.stringify(path)} is no path: /accounts is one.`);
  const base = url ?? loginAddress(shell);
  if (!/^https?:\/\//.test(base) || URL.parse(base) === null)
    throw misuse(`--url ${JSON.stringify(base)} is no address: write it as http://127.0.0.1:8081.`);
  const prefixed = path.startsWith("/api/v1/") ? path : `/api/v1${path}`;
  return new URL(base.replace(/\/+$/, "") + prefixed);
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
