import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { openReceiver } from "../webhooks/receiver.ts";
import { openPage, startBrowser, visitPlace, type Watched } from "./browser.ts";
import { ensureUsable } from "./look.ts";
import { inspectPages } from "./show-failures.ts";
import { type ConsoleService, startConsole } from "./start-console.ts";

// What an operator sets and looks up of accounts, keys, prices and webhooks, as a person does it.

type Json = Readonly<Record<string, unknown>>;

/** A year that does not begin while tests run. */
const laterYear = new Date().getUTCFullYear() + 2;

let browser: Browser;
let service: ConsoleService;
let watched: Watched;
let page: Page;
let token = "";
let account = "";

beforeAll(async () => {
  [browser, service] = await Promise.all([startBrowser(), startConsole(null)]);
  watched = await openPage(browser);
  page = watched.page;
  ({ token } = await service.newOperator("owner"));
  await page.goto(service.operatorUrl);
  await page.getByLabel("Operator's token").fill(token);
  await button("Sign in").click();
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  const made = await ask("POST", "/accounts", { name: "Ärztehaus", credit: "10" });
  account = String(made["id"]);
});
afterEach(inspectPages);
afterAll(async () => {
  await browser.close();
  await service[Symbol.asyncDispose]();
});

function button(name: string) {
  return page.getByRole("button", { name, exact: true });
}

/** A field of the open dialog. */
function field(label: string | RegExp) {
  return page.getByRole("dialog").getByLabel(label, { exact: true });
}

/** A fact or figure by its name. */
function fact(name: string) {
  return page.locator("dl > div", { has: page.getByText(name, { exact: true }) }).locator("dd");
}

async function visit(path: string, heading: string): Promise<void> {
  await visitPlace(page, `${service.operatorUrl}/#/${path}`);
  await page.getByRole("heading", { name: heading }).first().waitFor();
}

/** Asks the API beside the page. */
async function ask(method: string, path: string, body?: object): Promise<Json> {
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const sent = body === undefined ? {} : { body: JSON.stringify(body) };
  const url = `${service.operatorUrl}/api/v1${path}`;
  const answer = await fetch(url, { method, headers, ...sent });
  if (!answer.ok) throw new Error(`${path}: ${String(answer.status)} ${await answer.text()}`);
  return (await answer.json()) as Json;
}

test("an account gets another name, a price list, a low balance, an external id and metadata", async () => {
  await ask("POST", "/price_lists", { name: "partners", prices: [{ input: "0.8", output: "3" }] });
  await visit(`accounts/${account}?tab=settings`, "Ärztehaus");
  await button("Change the name, prices and more").click();
  await field("Name").fill("clinic");
  await field("Price list").selectOption("partners");
  await field("Low balance").fill("much");
  await field("External id").fill("crm-77");
  await field("Metadata").fill("plan = gold\nurl = https://a.example/?b=c");
  await button("Change the account").click();
  await page.getByText("is no amount of credits").waitFor();
  await ensureUsable(page);
  await field("Low balance").fill("2.5");
  await button("Change the account").click();
  await page.getByRole("heading", { name: "clinic" }).waitFor();
  await page.getByRole("dialog").waitFor({ state: "detached" });
  expect(await ask("GET", `/accounts/${account}`)).toMatchObject({
    name: "clinic",
    price_list: "partners",
    low_balance_at: "2.5",
    external_id: "crm-77",
    metadata: { plan: "gold", url: "https://a.example/?b=c" },
  });
  // What is emptied is taken away; the rest stays.
  await button("Change the name, prices and more").click();
  await field("Low balance").fill("");
  await field("Metadata").fill("plan = gold");
  await button("Change the account").click();
  await page.getByRole("dialog").waitFor({ state: "detached" });
  const after = await ask("GET", `/accounts/${account}`);
  expect(after).toMatchObject({ low_balance_at: null, external_id: "crm-77" });
  expect(after["metadata"]).toEqual({ plan: "gold" });
});

test("limits are set by the keyboard alone, and what was changed meanwhile is not overwritten", async () => {
  await visit(`accounts/${account}?tab=settings`, "clinic");
  await button("Change the limits").focus();
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").waitFor();
  await page.keyboard.type("many");
  await page.keyboard.press("Tab");
  await page.keyboard.type("120");
  await page.keyboard.press("Enter");
  await page.locator(".field .error").waitFor();
  await ensureUsable(page);
  await page.keyboard.press("Shift+Tab");
  await page.keyboard.press("Control+A");
  await page.keyboard.type("8");
  await ask("PATCH", `/accounts/${account}`, { limits: { output_tokens_max: 4096 } });
  await page.keyboard.press("Enter");
  await page.getByRole("alert").getByText("It was changed meanwhile").waitFor();
  await ensureUsable(page);
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await page.reload();
  await fact("Output tokens").getByText("4,096").waitFor();
  await button("Change the limits").focus();
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").waitFor();
  await page.keyboard.type("8");
  await page.keyboard.press("Enter");
  await fact("Requests at once").getByText("8").waitFor();
  expect((await ask("GET", `/accounts/${account}`))["limits"]).toEqual({
    concurrent_requests: 8,
    requests_per_minute: null,
    output_tokens_max: 4096,
  });
});

test("a grant is set, is paid at once, is changed and stopped", async () => {
  await visit(`accounts/${account}?tab=settings`, "clinic");
  await button("Set a grant").click();
  await page.getByText("The first one is paid at once").waitFor();
  await field("Amount in credits").fill("200");
  await field("Time zone").fill("Berlin");
  await button("Set the grant").click();
  await page.getByText("is no time zone").waitFor();
  await ensureUsable(page);
  await field("Time zone").fill("Europe/Berlin");
  await button("Set the grant").click();
  await page.locator(".figure", { hasText: "Left of grants" }).getByText("200").first().waitFor();
  await page.locator(".figure", { hasText: "Balance" }).getByText("210").waitFor();
  await button("Change the grant").click();
  await page.getByText("200 credits are left of grants.").waitFor();
  await field("What is left of it").selectOption("is carried over");
  await button("Change the grant").last().click();
  await fact("What is left").getByText("is carried over").waitFor();
  expect((await ask("GET", `/accounts/${account}`))["grant"]).toEqual({
    amount: "200",
    every: "month",
    timezone: "Europe/Berlin",
    carry_over: true,
  });
  await button("Stop the grant").click();
  await page.getByText("stay in the balance").waitFor();
  await ensureUsable(page);
  await button("Stop the grant").last().click();
  await button("Set a grant").waitFor();
  await page.locator(".figure", { hasText: "Balance" }).getByText("210").waitFor();
});

test("a key whose answer was lost is made once, says that its secret is gone, and is rotated", async () => {
  await visit(`accounts/${account}`, "clinic");
  let lost = 0;
  await page.route("**/keys", async (route) => {
    if (route.request().method() !== "POST" || lost > 0) return route.continue();
    lost += 1;
    await route.fetch();
    return route.abort();
  });
  await button("New key").first().click();
  await field("Name").fill("web");
  await button("Make the key").click();
  await page.getByRole("alert").getByText("The service does not answer.").waitFor();
  await button("Make the key").click();
  await page.getByRole("heading", { name: "The key cannot be shown again" }).waitFor();
  await ensureUsable(page);
  await button("Rotate the key").click();
  await field("The old secret is good for").selectOption("no longer");
  await button("Make a new secret").click();
  expect(await page.locator(".secret code").textContent()).toMatch(/^trib_/);
  await button("I have kept it").click();
  await page.unroute("**/keys");
  const keys = (await ask("GET", `/accounts/${account}/keys`))["data"] as readonly Json[];
  expect(keys.map(({ name }) => name)).toEqual(["web"]);
});

test("a key has a page, where its budget and its limits are set", async () => {
  await visit(`accounts/${account}`, "clinic");
  await page.getByRole("link", { name: "web", exact: true }).click();
  await page.getByRole("heading", { name: "web" }).waitFor();
  await page.getByText("No request with this key yet").waitFor();
  await ensureUsable(page);
  await button("Budget the key web").click();
  await page.getByText("It has none.").waitFor();
  await field("Amount in credits").fill("50");
  await field("Each").selectOption("day");
  await button("Set the budget").click();
  await page.locator(".figure", { hasText: "Left of the key's budget" }).getByText("50").waitFor();
  await ensureUsable(page);
  await button("Budget the key web").click();
  await page.getByRole("dialog").getByText("50 credits are left until").waitFor();
  await ensureUsable(page);
  await page.keyboard.press("Escape");
  await button("Change the key web").click();
  await field("Expires").fill(`${String(laterYear)}-01-02T03:04`);
  await field("May").selectOption("generate");
  await field("Requests a minute").fill("0");
  await button("Change the key").click();
  await page.locator(".field .error").waitFor();
  await field("Requests a minute").fill("12");
  await button("Change the key").click();
  await fact("Requests a minute").getByText("12").waitFor();
  const [key] = (await ask("GET", `/accounts/${account}/keys`))["data"] as readonly Json[];
  expect(key).toMatchObject({
    scopes: ["generate"],
    expires_at: `${String(laterYear)}-01-02T03:04:00.000Z`,
    limits: { requests_per_minute: 12, output_tokens_max: null },
    budget: { amount: "50", period: "day", timezone: "UTC" },
  });
  await button("Budget the key web").click();
  await field("Amount in credits").fill("");
  await button("Set the budget").click();
  await fact("Budget").getByText("none").waitFor();
});

test("a price with a date joins those of a list, and is removed while it has not begun", async () => {
  await visit("prices", "partners");
  for (const [from, input, cached] of [
    [`${String(laterYear + 1)}-01-01T00:00`, "0.6", ""],
    [`${String(laterYear)}-01-01T00:00`, "0.7", "0.07"],
  ] as const) {
    await button("Add a price to partners").click();
    await field("From").fill(from);
    await field("Input").fill(input);
    await field("Cached input").fill(cached);
    await field("Output").fill("x");
    await button("Add the price").click();
    await page.getByText("is no amount of credits").waitFor();
    await ensureUsable(page);
    await field("Output").fill("2.5");
    await button("Add the price").click();
    await page.getByRole("dialog").waitFor({ state: "detached" });
  }
  const prices = async (): Promise<unknown> =>
    ((await ask("GET", "/price_lists/partners"))["prices"] as readonly Json[]).map(
      ({ cached_input: cached, input }) => [input, cached],
    );
  expect(await prices()).toEqual([
    ["0.8", "0.8"],
    ["0.7", "0.07"],
    ["0.6", "0.6"],
  ]);
  const remove = new RegExp(`^Remove the price from ${String(laterYear)}-`);
  await page.getByRole("button", { name: remove }).click();
  await ensureUsable(page);
  await button("Remove the price").click();
  await page.getByRole("dialog").waitFor({ state: "detached" });
  expect(await prices()).toEqual([
    ["0.8", "0.8"],
    ["0.6", "0.6"],
  ]);
});

test("what a request was charged is given back from its receipt, at most that, and is seen where money is", async () => {
  const { secret } = await ask("POST", `/accounts/${account}/keys`, { name: "till" });
  const body = { model: "m", messages: [{ role: "user", content: "Hello" }] };
  const headers = { authorization: `Bearer ${String(secret)}`, "content-type": "application/json" };
  const url = `${service.url}/v1/chat/completions`;
  const answer = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
  await answer.text();
  await visit(`receipts/${answer.headers.get("x-request-id") ?? ""}`, "Receipt");
  await page.getByText("the last hash is the receipt's").waitFor();
  await button("Refund").click();
  const charged = await field("Amount in credits").inputValue();
  await field("Amount in credits").fill("1");
  await button("Give it back").click();
  await page.getByRole("dialog").locator(".error").waitFor();
  await ensureUsable(page);
  await field("Amount in credits").fill("0.000001");
  await field("Reference").fill("ticket 9");
  await button("Give it back").click();
  await page.getByRole("row", { name: /^Given back by refunds 0\.000001$/ }).waitFor();
  await button("Refund").click();
  expect(Number(await field("Amount in credits").inputValue())).toBeCloseTo(
    Number(charged) - 0.000_001,
    9,
  );
  await page.keyboard.press("Escape");

  await visit(`accounts/${account}?tab=entries`, "clinic");
  const refund = page.getByRole("row", { name: /refund .* operator 1 oper_\w+ .*ticket 9/ });
  await refund.waitFor();
  await page.locator(".plot canvas").waitFor();
  await page.getByText("As a table").click();
  await page
    .getByRole("region", { name: "Balance, as a table" })
    .getByText(/^209\.99/)
    .first()
    .waitFor();
  await ensureUsable(page);
  await page.getByRole("link", { name: "Statements" }).click();
  await page.getByRole("cell", { name: "ticket 9" }).waitFor();
  await ensureUsable(page);
  for (const [words, start] of [
    ["CSV", "what,at,amount"],
    ["JSON", "{"],
    ["Page to print", "<!doctype html>"],
  ] as const) {
    const link = await page.getByRole("link", { name: words }).getAttribute("href");
    const file = await page.request.get(new URL(link ?? "", service.operatorUrl).href);
    expect(await file.text()).toMatch(new RegExp(`^${start}`));
  }
  await visit("audit", "Audit");
  await page
    .getByRole("row", { name: /operator 1 oper_\w+ account\.credit/ })
    .first()
    .waitFor();
  await ensureUsable(page);
});

test("a webhook is made, tested, sent again, paused, resumed and deleted", async () => {
  let status = 500;
  await using receiver = await openReceiver((response) => void response.writeHead(status).end());
  await visit("webhooks", "Webhooks");
  await page.getByText("There is no webhook").waitFor();
  await button("New webhook").first().click();
  await field("Address").fill("not an address");
  await button("Make the webhook").click();
  await page.getByText("is no address").waitFor();
  await field("Address").fill(receiver.url);
  await field(/^account.low_balance:/).check();
  await field(/^key.expiring:/).check();
  await ensureUsable(page);
  await button("Make the webhook").click();
  const shown = await page.locator(".secret code").textContent();
  expect(shown).toMatch(/^whsec_/);
  await button("I have kept it").click();
  await page.getByText("account.low_balance, key.expiring").waitFor();
  await page.getByRole("button", { name: /^Change the webhook of / }).click();
  await field(/^account.low_balance:/).uncheck();
  await field("About").fill("the till");
  await ensureUsable(page);
  await button("Change the webhook").click();
  await page.getByRole("cell", { name: "key.expiring", exact: true }).waitFor();
  await page.getByRole("cell", { name: "the till" }).waitFor();
  await page.getByRole("button", { name: /^Rotate secret of / }).click();
  await field("The old secret signs too").selectOption("no longer");
  await ensureUsable(page);
  await button("Make a new secret").click();
  const rotated = await page.locator(".secret code").textContent();
  expect(rotated).toMatch(/^whsec_/);
  expect(rotated).not.toBe(shown);
  await button("I have kept it").click();
  await page.getByRole("link", { name: receiver.url }).click();
  await page.getByText("Nothing was sent yet").waitFor();
  await ensureUsable(page);
  await button("Send a test").click();
  const delivery = page.getByRole("row", { name: /webhook\.test/ });
  // An id may have these digits too.
  await delivery.getByRole("cell", { name: /^500/ }).waitFor();
  await delivery.getByText("pending").waitFor();
  await ensureUsable(page);
  status = 204;
  await delivery.getByRole("button", { name: /^Send again: webhook\.test evt_\w+$/ }).click();
  await delivery.getByText("delivered").waitFor();
  await delivery.getByRole("cell", { name: /^204/ }).waitFor();
  const types = receiver.received.map(({ body }) => (JSON.parse(body) as { type: string }).type);
  expect(new Set(types)).toEqual(new Set(["webhook.test"]));
  await page.getByRole("button", { name: /^Pause the webhook of / }).click();
  await page.getByText("What happens meanwhile waits for it").waitFor();
  await button("Pause the webhook").click();
  await page.getByRole("cell", { name: "paused" }).waitFor();
  await page.getByRole("button", { name: /^Resume the webhook of / }).click();
  await button("Resume the webhook").click();
  await page.getByRole("cell", { name: "active" }).waitFor();
  await page.getByRole("button", { name: /^Delete the webhook of / }).click();
  await page.getByText("also nothing of what it has not got yet").waitFor();
  await ensureUsable(page);
  await button("Delete the webhook").click();
  await page.getByText("There is no webhook").waitFor();
  // Its deliveries are gone from the page with it.
  await page.getByRole("heading", { name: "Deliveries" }).waitFor({ state: "detached" });
});

test("nothing was asked of another host, and the policy stopped nothing", () => {
  expect([...watched.strangers, ...watched.complaints]).toEqual([]);
});
