import { once } from "node:events";
import { readFileSync } from "node:fs";
import { type IncomingMessage, type OutgoingHttpHeaders, request } from "node:http";
import { text as readText } from "node:stream/consumers";
import { expect } from "vitest";
import { openPostgresLedger } from "../../src/ledger/postgres/postgres-ledger.ts";
import { defaultSettings } from "../ledger/support.ts";
import { operatorsDocumentOfTests } from "../operators/check-operator-answer.ts";
import { serveRequests, startOperators } from "../operators/start-operators.ts";
import { startService } from "../service/start-service.ts";
import { documentFile } from "./document-files.ts";
import { type AskedDocument, type HostileRequest, hostileRequests } from "./hostile-requests.ts";

// What no store can keep is refused at the door, with the name of its place, by both stores alike; nothing that a
// caller or an operator sends is a fault of the service.

const callersDocument = JSON.parse(readFileSync(documentFile, "utf8")) as AskedDocument;

type Choice = (request: HostileRequest) => boolean;

/** Over a connection of its own: one that is kept may end while the next request is on its way. */
async function send(
  url: string,
  method: string,
  { body, headers }: { readonly body: string | undefined; readonly headers: OutgoingHttpHeaders },
): Promise<{ readonly status: number; readonly type: string; readonly text: string }> {
  const asking = request(url, { method, headers, agent: false }).end(body);
  const [answer] = (await once(asking, "response")) as [IncomingMessage];
  const { "content-type": type = "" } = answer.headers;
  return { status: answer.statusCode ?? 0, type, text: await readText(answer) };
}

/** Sends all of them, three at a time, and returns a line for each that was not answered as it should. */
async function wrongAnswers(
  requests: readonly HostileRequest[],
  target: { readonly url: string; readonly secrets: readonly string[] },
  problemOf: (request: HostileRequest, status: number, body: unknown) => string | null,
): Promise<readonly string[]> {
  const wrong: string[] = [];
  let sent = 0;
  async function work(): Promise<void> {
    for (let next = requests[sent]; next !== undefined; next = requests[sent]) {
      const { body, headers, method, target: path } = next;
      const secret = target.secrets[sent % target.secrets.length] ?? "";
      sent += 1;
      const answer = await send(target.url + path, method, {
        body,
        headers: {
          authorization: `Bearer ${secret}`,
          origin: target.url,
          ...(body === undefined ? {} : { "content-type": "application/json" }),
          ...headers,
        },
      });
      const json: unknown = /json/.test(answer.type) ? JSON.parse(answer.text) : null;
      const problem = answer.status >= 500 ? answer.text : problemOf(next, answer.status, json);
      if (problem === null) continue;
      const asked = `${method} ${path.slice(0, 150)} ${body?.slice(0, 150) ?? ""}`;
      wrong.push(`${asked}: ${String(answer.status)} ${problem}`);
    }
  }
  await Promise.all(Array.from({ length: 3 }, work));
  return wrong;
}

/** Sends what `choice` leaves of the hostile requests of the operators' document; each is answered as it should be. */
export async function expectOperatorsAnswered(
  database: string | undefined,
  choice: Choice,
): Promise<void> {
  // Each look takes a connection of its own, and many looks wait for a busy machine.
  const settings = { ...defaultSettings, url: database ?? "", busyMs: 60_000 };
  const parts = { actor: "user:test" } as const;
  await using operators = await startOperators(
    database === undefined ? {} : { open: () => openPostgresLedger(settings, parts) },
  );
  const { ledger } = operators;
  const account = await serveRequests(ledger, 2);
  const [key] = await ledger.listKeys(account);
  const hook = { url: "https://shop.example/", description: "", types: null } as const;
  const { record } = await ledger.createWebhook({ ...hook, status: "active" });
  const { event } = await ledger.testWebhook(record.id);
  const ids: Readonly<Record<string, string>> = {
    accounts: account,
    keys: key?.id ?? "",
    // As `serveRequests` names the first.
    receipts: `req_${account.slice("acct_".length)}x0`,
    webhooks: record.id,
    event: event.id,
    month: "2026-10",
    name: "default",
  };
  const known = (path: string, param: string): string =>
    ids[param] ?? ids[path.split("/")[3] ?? ""] ?? "none";
  const wrong = await wrongAnswers(
    hostileRequests(operatorsDocumentOfTests, known).filter(choice),
    { url: operators.url, secrets: [operators.token] },
    problemForOperators,
  );
  expect(operators.failures).toEqual([]);
  expect(wrong).toEqual([]);
}

/** The same of the callers' document. */
export async function expectCallersAnswered(
  database: string | undefined,
  choice: Choice,
): Promise<void> {
  await using service = await startService({
    environment: {
      TRIBUTARY_LOG_LEVEL: "error",
      TRIBUTARY_CONCURRENCY_PER_ACCOUNT: "1000",
      TRIBUTARY_REQUESTS_PER_MINUTE: "1000000",
      TRIBUTARY_STARTING_CREDIT: "1000000",
      TRIBUTARY_LABEL_FROM: "user,safety_identifier,metadata.user_id",
      ...(database === undefined ? {} : { TRIBUTARY_DATABASE_URL: database }),
    },
  });
  // A key may look at its account ten times a second.
  const { ledger } = service;
  const keys = await Promise.all(
    Array.from({ length: 80 }, () => ledger.createKey(service.accountId, "one of many")),
  );
  const answered = await service.post("/v1/messages", smallest);
  const receipt = answered.headers.get("x-request-id") ?? "";
  await answered.text();
  const ids: Readonly<Record<string, string>> = { month: "2026-10", receipts: receipt };
  const known = (path: string, param: string): string =>
    ids[param] ?? ids[path.split("/")[1] ?? ""] ?? "none";
  const wrong = await wrongAnswers(
    hostileRequests(callersDocument, known).filter(choice),
    { url: service.url, secrets: keys.map(({ secret }) => secret) },
    problemForCallers,
  );
  expect(wrong).toEqual([]);
}

const smallest = { max_tokens: 10, messages: [{ role: "user", content: "Hi" }] };
interface Refusal {
  readonly code?: string;
  readonly param?: string;
}

/** No id has such a text; every other place is named. */
function problemForOperators(
  { in: place, isNoText, param }: HostileRequest,
  status: number,
  body: unknown,
): string | null {
  if (!isNoText) return null;
  const refusal = body as Refusal;
  const said = `${refusal.code ?? ""} ${refusal.param ?? ""}`;
  if (place === "path") return status === 404 && said === `not_found ${param}` ? null : said;
  return status === 400 && said === `invalid_value ${param}`.trimEnd() ? null : said;
}

/** What they ask to be generated may have any text; what they look for may not. */
function problemForCallers(
  { in: place, isNoText, param, target }: HostileRequest,
  status: number,
  body: unknown,
): string | null {
  if (!isNoText || place === "body") return null;
  const { error } = body as { readonly error: Refusal };
  // Any name leads to the one model; a month is no id.
  if (place === "path" && target.startsWith("/v1/models/")) return null;
  if (place === "path" && param !== "month") return status === 404 ? null : JSON.stringify(error);
  return status === 400 && error.param === param ? null : JSON.stringify(error);
}
