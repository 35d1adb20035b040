import { readFile } from "node:fs/promises";
import OpenAI from "openai";
import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, inject, test } from "vitest";
import { openPage, startBrowser, visitPlace, waitForToast, type Watched } from "./browser.ts";
import { ensureUsable } from "./look.ts";
import { inspectPages } from "./show-failures.ts";
import { chunk, type ConsoleService, startConsole } from "./start-console.ts";

// The console as a person walks it, from the link that signs in to the key that is revoked.

let browser: Browser;
let service: ConsoleService;
let watched: Watched;
let page: Page;
/** The key that the person makes. */
let secret = "";

afterEach(inspectPages);

function button(name: string) {
  return page.getByRole("button", { name, exact: true });
}

function visit(path: string): Promise<void> {
  return visitPlace(page, `${service.operatorUrl}/#/${path}`);
}

/** Goes to the account that the person has made, however many others there are. */
async function findShop(by: Page): Promise<void> {
  await visitPlace(by, `${service.operatorUrl}/#/accounts`);
  await by.getByLabel("Search").fill("shop");
  await by.keyboard.press("Enter");
  await by.getByRole("link", { name: "shop", exact: true }).click();
  await by.getByRole("heading", { name: "shop" }).waitFor();
}

const ledgers = [
  { has: "nothing", much: false },
  { has: "300 accounts, 1,000 keys and 200,000 receipts", much: true },
];

describe.each(ledgers)("on a ledger that has $has", ({ much }) => {
  beforeAll(async () => {
    const begin = much ? inject("muchLedger") : null;
    [browser, service] = await Promise.all([startBrowser(), startConsole(begin)]);
    watched = await openPage(browser);
    page = watched.page;
  });
  afterAll(async () => {
    await browser.close();
    await service[Symbol.asyncDispose]();
  });

  test("a printed link signs in, once, and stays in no address", async () => {
    const link = await service.loginLink();
    await page.goto(link);
    await page.getByRole("heading", { name: "Overview" }).waitFor();
    expect(await page.evaluate(() => location.href)).not.toContain("sign-in");
    await (
      much ? page.locator(".plot canvas").first() : page.getByText("No request ended in this time")
    ).waitFor();
    await ensureUsable(page);
    const second = await openPage(browser);
    await second.page.goto(link);
    await second.page.getByText("The link was used before").waitFor();
    await ensureUsable(second.page);
    await second.page.context().close();
  });

  test("an account is made, topped up and given a key", async () => {
    await visit("accounts");
    await page.getByRole("button", { name: "New account" }).first().click();
    await ensureUsable(page);
    await page.getByLabel("Name").fill("shop");
    await page.getByLabel("Credit to begin with").fill("ten");
    await button("Make the account").click();
    await page.getByText("is no amount of credits").waitFor();
    await ensureUsable(page);
    await page.getByLabel("Credit to begin with").fill("1");
    await button("Make the account").click();
    await page.getByRole("heading", { name: "shop" }).waitFor();
    await button("Top up").click();
    await page.getByLabel("Amount in credits").fill("2.5");
    await page.getByLabel("Note").fill("first payment");
    await button("Add the credit").click();
    await waitForToast(page, "2.5 credits added");
    await page.locator(".figure", { hasText: "Balance" }).getByText("3.5").waitFor();
    await page.getByText("This account has no key").waitFor();
    await page.getByRole("button", { name: "New key" }).click();
    await page.getByLabel("Name").fill("web");
    await button("Make the key").click();
    secret = (await page.locator(".secret code").textContent()) ?? "";
    expect(secret).toMatch(/^trib_/);
    await ensureUsable(page);
    await button("I have kept it").click();
    await page.getByRole("row", { name: /web/ }).waitFor();
    await ensureUsable(page);
  });

  test("a request of a real client is seen running, settles, and its receipt is right", async () => {
    const { promise: held, resolve: release } = Promise.withResolvers<undefined>();
    service.deployment.answerNext(
      { type: "write", bytes: chunk({ content: "Hel" }) },
      { type: "wait", until: held },
      { type: "write", bytes: chunk({ content: "lo" }) },
      { type: "write", bytes: chunk({}, { finish_reason: "stop" }) },
      {
        type: "write",
        bytes: `data: ${JSON.stringify({ choices: [], usage: { prompt_tokens: 5, completion_tokens: 2, total_tokens: 7 } })}\n\ndata: [DONE]\n\n`,
      },
    );
    await visit("running");
    const client = new OpenAI({ apiKey: secret, baseURL: `${service.url}/v1` });
    const stream = await client.chat.completions.create({
      model: "service-llm",
      messages: [{ role: "user", content: "Say hello." }],
      stream: true,
    });
    const row = page.getByRole("row", { name: /Chat Completions, streamed/ });
    await row.waitFor();
    await ensureUsable(page);
    await row.getByRole("link").first().click();
    await page.getByText("running").first().waitFor();
    await page.getByText("until it is settled").waitFor();
    await ensureUsable(page);
    release(undefined);
    let text = "";
    for await (const part of stream) text += part.choices[0]?.delta.content ?? "";
    expect(text).toBe("Hello");
    await page.locator("h1").getByText("completed").waitFor();
    // It is found among all others, too.
    const request = new URL(page.url()).hash;
    await visit("receipts");
    await page.locator(`a[href="${request}"]`).click();
    await page.locator("h1").getByText("completed").waitFor();
    await page.getByText("the last hash is the receipt's").waitFor();
    await page.locator(".chain").getByText("verified", { exact: true }).waitFor();
    // 5 tokens at 1 and 2 at 4 credits a million.
    await page.getByRole("cell", { name: "0.000013" }).first().waitFor();
    await ensureUsable(page);
  });

  test("a running request is cancelled, and its caller learns that and pays nothing", async () => {
    service.deployment.answerNext(
      { type: "write", bytes: chunk({ content: "Endless" }) },
      { type: "hang" },
    );
    const client = new OpenAI({ apiKey: secret, baseURL: `${service.url}/v1`, maxRetries: 0 });
    const stream = await client.chat.completions.create({
      model: "service-llm",
      messages: [{ role: "user", content: "Go on." }],
      stream: true,
    });
    const ended = (async () => {
      for await (const part of stream) void part;
    })().catch((error: unknown) => String(error));
    await visit("running");
    await page.getByRole("button", { name: /^Cancel the request req_/ }).click();
    await page.getByText("is charged nothing").waitFor();
    await ensureUsable(page);
    await button("Cancel the request").click();
    await waitForToast(page, "It ends within seconds");
    expect(await ended).toContain("operator");
    await page.getByText("Nothing runs at the moment").waitFor();
    await page.getByRole("link", { name: "Refused", exact: true }).click();
    await page.getByRole("rowheader", { name: "cancelled_by_operator" }).waitFor();
    await ensureUsable(page);
    await visit("receipts");
    await page.getByLabel("Outcome").selectOption("cancelled by operator");
    await button("Show").click();
    await page
      .getByRole("row", { name: /cancelled by operator .* 0$/ })
      .first()
      .waitFor();
  });

  test("a caller sees the account with the key, asks, and leaves the key nowhere", async () => {
    const caller = await openPage(browser);
    await caller.page.goto(service.url);
    await ensureUsable(caller.page);
    await caller.page.getByLabel("API key").fill("trib_wrong_key_x");
    await caller.page.getByRole("button", { name: "Show the account" }).click();
    await caller.page.getByText("Could not load the account").waitFor();
    await ensureUsable(caller.page);
    await caller.page.getByRole("button", { name: "Forget the key" }).click();
    await caller.page.getByLabel("API key").fill(secret);
    await caller.page.getByRole("button", { name: "Show the account" }).click();
    await caller.page.getByRole("heading", { name: "shop" }).waitFor();
    await caller.page
      .getByText("No request ended in this time")
      .or(caller.page.locator(".plot canvas"))
      .first()
      .waitFor();
    await ensureUsable(caller.page);
    const pages = caller.page.getByRole("navigation", { name: "Pages", exact: true });
    const open = (name: string) => pages.getByRole("link", { name, exact: true }).click();
    await open("Playground");
    await caller.page.getByRole("button", { name: "Send" }).click();
    await caller.page.locator(".said").getByText("Hello from the deployment.").waitFor();
    await caller.page.locator(".figure", { hasText: "Cost" }).getByText("0.00004").waitFor();
    await ensureUsable(caller.page);
    await caller.page.locator(".figure", { hasText: "Cost" }).getByRole("link").click();
    await caller.page.getByRole("row", { name: /^Charged, rounded up .* 0\.00004$/ }).waitFor();
    await ensureUsable(caller.page);
    await open("Receipts");
    await caller.page
      .getByRole("row", { name: /completed .* 0\.00004$/ })
      .first()
      .waitFor();
    await ensureUsable(caller.page);
    await open("Statements");
    await caller.page.getByRole("cell", { name: "first payment" }).waitFor();
    await ensureUsable(caller.page);
    const file = caller.page.waitForEvent("download");
    await caller.page.getByRole("button", { name: "CSV" }).click();
    const statement = await readFile(await (await file).path(), "utf8");
    expect(statement).toMatch(/top-up,[^,]*,2\.5,.*first payment/);
    await open("Clients");
    await caller.page.getByText("Anthropic SDK", { exact: true }).click();
    await caller.page.locator("pre", { hasText: secret }).getByText("@anthropic-ai/sdk").waitFor();
    await ensureUsable(caller.page);
    const kept = await caller.page.evaluate(() =>
      JSON.stringify([localStorage, sessionStorage, document.cookie, location.href]),
    );
    expect(kept).not.toContain("trib_");
    expect([...caller.strangers, ...caller.complaints]).toEqual([]);
    await caller.page.context().close();
  });

  test("the key is revoked after a question that names what it will do", async () => {
    await findShop(page);
    await page.getByRole("button", { name: "Revoke the key web" }).click();
    await page.getByRole("heading", { name: "Revoke the key web?" }).waitFor();
    await page.getByText("a revoked key cannot be brought back").waitFor();
    await ensureUsable(page);
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await page.getByRole("button", { name: "Revoke the key web" }).click();
    await button("Revoke the key").click();
    await waitForToast(page, "web is revoked");
    const client = new OpenAI({ apiKey: secret, baseURL: `${service.url}/v1`, maxRetries: 0 });
    const messages = [{ role: "user", content: "Say hello." }] as const;
    await expect(
      client.chat.completions.create({ model: "service-llm", messages: [...messages] }),
    ).rejects.toMatchObject({ status: 401 });
    // Which key it was is seen by operators: a client may still have it.
    await visit("refused");
    const refused = page.getByRole("row", { name: /authentication/ });
    await refused.getByRole("link", { name: "web", exact: true }).first().waitFor();
    await refused.getByText("not known").first().waitFor();
    await ensureUsable(page);
  });

  test("what was done is in the audit log", async () => {
    await visit("audit");
    for (const action of ["key.revoke", "key.create", "account.create"])
      await page.getByRole("rowheader", { name: action, exact: true }).first().waitFor();
    await ensureUsable(page);
  });

  test("a viewer sees everything and has no button that changes it", async () => {
    const viewer = await service.newOperator("viewer");
    const other = await openPage(browser);
    await other.page.goto(service.operatorUrl);
    await other.page.getByLabel("Operator's token").fill(viewer.token);
    await other.page.getByRole("button", { name: "Sign in" }).click();
    await other.page.getByRole("heading", { name: "Overview" }).waitFor();
    await findShop(other.page);
    expect(
      await other.page.getByRole("button", { name: /Top up|Disable|Revoke|New key/ }).count(),
    ).toBe(0);
    const changes = other.page.getByRole("button", {
      name: /Change|Set|Stop|New|Add|Refund|Budget/,
    });
    const parts = other.page.getByRole("navigation", { name: "Parts of the account" });
    await parts.getByRole("link", { name: "Settings" }).click();
    await other.page.getByRole("heading", { name: "Limits" }).waitFor();
    await ensureUsable(other.page);
    expect(await changes.count()).toBe(0);
    await parts.getByRole("link", { name: "Receipts" }).click();
    await other.page.getByRole("rowheader").first().getByRole("link").click();
    await other.page.getByRole("heading", { name: "What it cost" }).waitFor();
    expect(await changes.count()).toBe(0);
    await other.page.getByRole("link", { name: "Prices" }).click();
    await other.page.getByRole("heading", { name: "default" }).waitFor();
    expect(await changes.count()).toBe(0);
    const refused = await other.page.evaluate(async () => {
      const answer = await fetch("/api/v1/accounts", {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ name: "mine" }),
      });
      return [answer.status, ((await answer.json()) as { code: string }).code];
    });
    expect(refused).toEqual([403, "role_missing"]);
    // No script reads the cookie, and nothing of the token is stored.
    expect(await other.page.evaluate(() => document.cookie)).toBe("");
    expect(
      await other.page.evaluate(() => JSON.stringify([localStorage, sessionStorage])),
    ).not.toContain("trop_");
    await service.command("operator", "revoke", viewer.id);
    await other.page.getByRole("link", { name: "Receipts" }).first().click();
    await other.page.getByText("The session has ended").waitFor();
    await ensureUsable(other.page);
    expect([...other.strangers, ...other.complaints]).toEqual([]);
  });

  test("a call of another origin with the cookie changes nothing", async () => {
    const cookies = await page.context().cookies(service.operatorUrl);
    expect(cookies).toMatchObject([{ httpOnly: true, sameSite: "Strict" }]);
    const answer = await page.context().request.post(`${service.operatorUrl}/api/v1/accounts`, {
      headers: { origin: "http://127.0.0.1:1" },
      data: { name: "forged" },
    });
    expect([answer.status(), await answer.json()]).toMatchObject([403, { code: "origin_refused" }]);
  });

  test("nothing was asked of another host, and the policy stopped nothing", () => {
    expect(watched.strangers).toEqual([]);
    expect(watched.complaints).toEqual([]);
  });
});
