import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { openPage, startBrowser, visitPlace, type Watched } from "./browser.ts";
import { ensureUsable } from "./look.ts";
import { inspectPages } from "./show-failures.ts";
import { chunk, type ConsoleService, startConsole } from "./start-console.ts";

// What goes wrong in a dialog and is mended, the playground, and an account by the keyboard alone.

let browser: Browser;
let service: ConsoleService;
let watched: Watched;
let page: Page;

beforeAll(async () => {
  [browser, service] = await Promise.all([startBrowser(), startConsole(null)]);
  watched = await openPage(browser);
  page = watched.page;
  await page.goto(await service.loginLink());
  await page.getByRole("heading", { name: "Overview" }).waitFor();
});
afterEach(inspectPages);
afterAll(async () => {
  await browser.close();
  await service[Symbol.asyncDispose]();
});

function button(name: string) {
  return page.getByRole("button", { name, exact: true });
}

function visit(path: string): Promise<void> {
  return visitPlace(page, `${service.operatorUrl}/#/${path}`);
}

test("what was refused is another change when it is mended; what got no answer is the same one, and happens once", async () => {
  const seen: (string | undefined)[] = [];
  const answered: number[] = [];
  await page.route("**/api/v1/accounts", async (route) => {
    if (route.request().method() !== "POST") return route.continue();
    seen.push(route.request().headers()["idempotency-key"]);
    if (seen.length !== 2) return route.continue();
    answered.push((await route.fetch()).status());
    return route.abort();
  });
  await visit("accounts");
  await button("New account").first().click();
  await page.getByLabel("Name").fill("once");
  await page.getByLabel("Credit to begin with").fill("ten");
  await button("Make the account").click();
  await page.getByText("is no amount of credits").waitFor();
  await page.getByLabel("Credit to begin with").fill("1");
  await button("Make the account").click();
  await page.getByRole("alert").getByText("The service does not answer.").waitFor();
  await button("Make the account").click();
  await page.getByRole("heading", { name: "once" }).waitFor();
  await page.unroute("**/api/v1/accounts");
  expect(answered).toEqual([200]);
  expect(seen).toHaveLength(3);
  expect(seen[1]).toBe(seen[2]);
  expect(seen[0]).not.toBe(seen[1]);
  const accounts = await service.list("account");
  expect(accounts.filter(({ name }) => name === "once")).toHaveLength(1);
});

test("what is wrong with no field of a dialog is said above its buttons", async () => {
  const detail = "The account changed meanwhile.";
  const problem = { status: 409, code: "conflict", detail, param: "version" };
  await page.route("**/api/v1/accounts/*", (route) =>
    route.request().method() === "PATCH"
      ? route.fulfill({ status: 409, json: problem })
      : route.continue(),
  );
  await page
    .getByRole("navigation", { name: "Parts of the account" })
    .getByRole("link", { name: "Settings" })
    .click();
  await button("Change the name, prices and more").click();
  await button("Change the account").click();
  await page.getByRole("alert").getByText(detail).waitFor();
  await ensureUsable(page);
  await page.unroute("**/api/v1/accounts/*");
  await button("Cancel").click();
});

test.each(["Chat Completions", "Responses", "Messages"])(
  "the playground asks in %s with a key of its own, and shows answer, frames and cost",
  async (format) => {
    const [{ id } = { id: "" }] = await service.list("account");
    await visit("playground");
    await page.getByText("Make a key that expires in an hour").click();
    await page.getByLabel("Account that pays").fill(id);
    await button("Make the key").click();
    await page.getByLabel("Format").selectOption(format);
    await page.getByText("Tools", { exact: true }).click();
    await button("An example").click();
    await button("Send").click();
    await page.locator(".said").getByText("Hello from the deployment.").waitFor();
    await page.locator(".answer .badge").getByText("done").waitFor();
    await page.locator(".figure", { hasText: "Cost" }).getByRole("link").waitFor();
    await page.getByText("curl", { exact: true }).click();
    await ensureUsable(page);
    service.deployment.answerNext(
      { type: "write", bytes: chunk({ content: "Begun" }) },
      { type: "hang" },
    );
    await button("Send").click();
    await page.locator(".said").getByText("Begun").waitFor();
    await button("Cancel").click();
    await page.locator(".answer .badge").getByText("cancelled").waitFor();
  },
);

test("the playground asks all three formats side by side, and says of each what it cost and why", async () => {
  const [{ id } = { id: "" }] = await service.list("account");
  await visit("playground");
  await page.getByText("Make a key that expires in an hour").click();
  await page.getByLabel("Account that pays").fill(id);
  await button("Make the key").click();
  await page.getByLabel("Format").selectOption("All three, side by side");
  await button("Send").click();
  for (const title of ["Chat Completions", "Responses", "Messages"]) {
    const answer = page.locator(".answers .section", { hasText: title });
    await answer.getByText("done", { exact: true }).waitFor();
    await answer.locator(".said").getByText("Hello from the deployment.").waitFor();
    await answer.getByText("12 tokens in at 1, 7 tokens out at 4 credits a million").waitFor();
  }
  await page.getByText("Messages: Anthropic, Python").click();
  await ensureUsable(page);
});

test("a receipt whose entries were changed afterwards is said to be broken, and at which entry", async () => {
  await visit("receipts");
  await page.getByRole("rowheader").first().getByRole("link").click();
  await page.locator(".chain").getByText("verified", { exact: true }).waitFor();
  await page.route("**/entries?*", async (route) => {
    const answer = await route.fetch();
    const body = (await answer.json()) as { data: { kind: string; amount: string }[] };
    const changed = body.data.map((one) =>
      one.kind === "settle" ? { ...one, amount: "-7" } : one,
    );
    await route.fulfill({ response: answer, json: { ...body, data: changed } });
  });
  await page.reload();
  await page.locator(".chain").getByText("broken", { exact: true }).waitFor();
  await page.getByText(/breaks at entry \d+: its hash is not that of its text/).waitFor();
  await ensureUsable(page);
  await page.unroute("**/entries?*");
});

test("a sum of the overview leads to the receipts that it is of", async () => {
  await visit("");
  const named = page.getByText("Requests", { exact: true });
  const sum = page.locator(".figure", { has: named }).getByRole("link");
  const count = Number(await sum.textContent());
  expect(count).toBeGreaterThan(0);
  await sum.click();
  const receipts = page.getByRole("region", { name: "Receipts" }).getByRole("rowheader");
  await receipts.first().waitFor();
  expect(await receipts.count()).toBe(count);
});

test("an id is found from every page, and other words among the accounts", async () => {
  const [{ id } = { id: "" }] = await service.list("account");
  await visit("audit");
  const find = page.getByRole("searchbox", { name: "Find" });
  await find.fill(`  ${id} `);
  await find.press("Enter");
  await page.getByRole("navigation", { name: "Parts of the account" }).waitFor();
  await find.fill("ONC");
  await find.press("Enter");
  await page.getByRole("link", { name: "once", exact: true }).waitFor();
  await find.fill("req_none");
  await find.press("Enter");
  await page.getByText("leaves no receipt").waitFor();
});

test("an account is made with the keyboard alone", async () => {
  await visit("accounts");
  await page.getByRole("link", { name: "once" }).waitFor();
  const focused = (): Promise<string> =>
    page.evaluate(() => document.activeElement?.textContent ?? "");
  await page.keyboard.press("Tab");
  expect(await focused()).toContain("To the content");
  await page.keyboard.press("Enter");
  await page.keyboard.press("Tab");
  expect(await focused()).toBe("New account");
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").waitFor();
  await page.keyboard.type("typed");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "typed" }).waitFor();
});

test("the playground asks once for the receipt of a request that was not admitted, and says why", async () => {
  const { id = "" } = await service.command("account", "create", "poor");
  const { key = "" } = await service.command("key", "create", id, "--name", "poor");
  const own = (await openPage(browser)).page;
  await own.clock.install();
  await own.goto(await service.loginLink());
  await own.getByRole("heading", { name: "Overview" }).waitFor();
  const asked: number[] = [];
  own.on("response", (answer) => {
    if (answer.url().includes("/api/v1/receipts/")) asked.push(answer.status());
  });
  await own.evaluate(() => (location.hash = "#/playground"));
  await own.getByLabel("API key").fill(key);
  await own.getByRole("button", { name: "Send" }).click();
  await own.getByText("The balance of this account is 0 credits").first().waitFor();
  await expect.poll(() => asked).toEqual([404]);
  for (let times = 0; times < 3; times += 1) await own.clock.fastForward(1_000);
  // What is asked after it comes after it.
  await own.evaluate(async () => (await fetch("/api/v1/session")).text());
  expect(asked).toEqual([404]);
  await own.context().close();
});

test("nothing was asked of another host, and the policy stopped nothing", () => {
  expect(watched.strangers).toEqual([]);
  expect(watched.complaints).toEqual([]);
});
