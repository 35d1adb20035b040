import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { type IncomingMessage, request } from "node:http";
import { request as requestTls } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, expect, test } from "vitest";
import { makeCertificate } from "../doubles/make-certificate.ts";
import { startOperators, type TestOperators } from "./start-operators.ts";

// How a person signs in at the console: a token or a link once, then a cookie.

let operators: TestOperators;
beforeAll(async () => (operators = await startOperators()));
afterAll(() => operators[Symbol.asyncDispose]());

const path = "/api/v1/session";

test("a token opens a session whose cookie no script reads and no other site sends", async () => {
  const { id, token } = await operators.newToken("billing");
  const opened = await operators.signIn({ token });
  expect(opened.status).toBe(200);
  const { port } = new URL(operators.url);
  const [cookie = ""] = opened.headers.getSetCookie();
  expect(cookie).toMatch(new RegExp(`^tributary_session_${port}=trse_`));
  const attributes = cookie.split("; ").slice(1);
  expect(attributes).toEqual(
    expect.arrayContaining(["Max-Age=43200", "Path=/", "HttpOnly", "SameSite=Strict"]),
  );
  expect(attributes).not.toContain("Secure");
  const by = { token: null, headers: { cookie: opened.cookie, origin: operators.url } };
  const asked = await operators.ask(path, by);
  expect(asked.json).toEqual(opened.json);
  expect(asked.json).toMatchObject({ operator: { id, role: "billing" } });
  expect(Date.parse(String(asked.json["expires_at"])) - Date.now()).toBeGreaterThan(11 * 3_600_000);
  const account = await operators.ask("/api/v1/accounts", { ...by, body: { name: "by cookie" } });
  const log = await operators.ask(`/api/v1/audit?target=${String(account.json["id"])}`);
  expect(log.json["data"]).toMatchObject([{ actor: id }]);
  const ended = await operators.ask(path, { ...by, method: "DELETE" });
  expect(ended.json).toEqual({ ended: true });
  expect(ended.headers.getSetCookie()[0]).toMatch(/Max-Age=0/);
  const over = await operators.ask(path, by);
  expect(over).toMatchObject({ status: 401, json: { code: "session_over" } });
});

test("a token that asks is told who it is, and has no session to end", async () => {
  const { id, token } = await operators.newToken("viewer");
  const asked = await operators.ask(path, { token });
  expect(asked.json).toMatchObject({ operator: { id }, expires_at: null });
  expect((await operators.ask(path, { token, method: "DELETE" })).json).toEqual({ ended: false });
});

test("a link signs in once", async () => {
  const { operator, secret } = await operators.ledger.createLoginCode(null);
  const opened = await operators.signIn({ link: secret });
  expect(opened).toMatchObject({ status: 200, json: { operator: { id: operator.id } } });
  const again = await operators.signIn({ link: secret });
  expect(again).toMatchObject({ status: 401, json: { code: "token_unknown", param: "link" } });
  expect(again.headers.getSetCookie()).toEqual([]);
});

test.each([
  ["another port", "http://127.0.0.1:1"],
  ["another site", "https://evil.example"],
  ["no origin", undefined],
  ["an opaque one", "null"],
])("a cookie from %s changes nothing, and signs nobody in", async (_name, origin) => {
  const { token } = await operators.newToken("owner");
  const { cookie } = await operators.signIn({ token });
  const headers = { cookie, ...(origin === undefined ? {} : { origin }) };
  const init = { token: null, headers };
  const refused = await operators.ask("/api/v1/accounts", { ...init, body: { name: "x" } });
  expect(refused).toMatchObject({ status: 403, json: { code: "origin_refused" } });
  expect((await operators.ask(path, { ...init, method: "DELETE" })).status).toBe(403);
  expect((await operators.ask(path, { ...init, body: { token } })).status).toBe(403);
  expect((await operators.ask("/api/v1/accounts", init)).status).toBe(200);
});

test("behind TLS the cookie is for TLS alone", async () => {
  const { token } = await operators.newToken("owner");
  // fetch sends its own host.
  const asking = request(operators.url + path, {
    method: "POST",
    headers: {
      host: "operators.example",
      origin: "https://operators.example",
      "content-type": "application/json",
    },
  });
  asking.end(JSON.stringify({ token }));
  const [response] = (await once(asking, "response")) as [IncomingMessage];
  await text(response);
  const [cookie = ""] = response.headers["set-cookie"] ?? [];
  expect(cookie).toMatch(/^tributary_session=trse_/);
  expect(cookie).toContain("; Secure");
});

test("a listener with a certificate of its own takes its own origin under TLS alone", async () => {
  const folder = mkdtempSync(join(tmpdir(), "tributary-operators-"));
  const tls = { certificateFile: join(folder, "cert.pem"), keyFile: join(folder, "key.pem") };
  const { cert, key } = makeCertificate({ name: "operators.test" });
  writeFileSync(tls.certificateFile, cert);
  writeFileSync(tls.keyFile, key);
  await using own = await startOperators({ tls });
  rmSync(folder, { recursive: true, force: true });
  expect(own.url).toMatch(/^https:\/\/127\.0\.0\.1:\d+$/);
  const signIn = async (origin: string): Promise<IncomingMessage> => {
    const headers = { origin, "content-type": "application/json" };
    const asking = requestTls(own.url + path, { method: "POST", ca: cert, agent: false, headers });
    asking.end(JSON.stringify({ token: own.token }));
    const [response] = (await once(asking, "response")) as [IncomingMessage];
    await text(response);
    return response;
  };
  const opened = await signIn(own.url);
  expect(opened.statusCode).toBe(200);
  expect(opened.headers["set-cookie"]?.[0]).toContain("; Secure");
  expect((await signIn(own.url.replace("https:", "http:"))).statusCode).toBe(403);
});

test("wrong tokens at the sign-in count as elsewhere, ended sessions do not", async () => {
  await using own = await startOperators();
  const cookie = `tributary_session_${new URL(own.url).port}=trse_x_${"y".repeat(43)}`;
  for (let tries = 0; tries < 12; tries += 1) {
    const { status } = await own.ask(path, { token: null, headers: { cookie } });
    expect(status).toBe(401);
  }
  const statuses: number[] = [];
  for (let tries = 0; tries < 11; tries += 1)
    statuses.push((await own.signIn(tries % 2 === 0 ? { token: "x" } : { link: "x" })).status);
  expect(statuses).toEqual([...Array.from({ length: 10 }, () => 401), 429]);
  const { token } = await own.newToken("viewer");
  expect((await own.signIn({ token })).status).toBe(200);
});
