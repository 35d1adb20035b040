import type { Browser, Page, Route } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { drawTwice, measureLoad, openPage, startBrowser, visitPlace } from "./browser.ts";
import { inspectPages } from "./show-failures.ts";
import { type ConsoleService, startConsole } from "./start-console.ts";

// Answers that come late: what waits for them, and what they must not undo.

const shiftMax = 0.05;

let browser: Browser;
let service: ConsoleService;
let page: Page;
let token = "";
/** Ids that places name. */
const ids: Record<string, string> = {};

beforeAll(async () => {
  [browser, service] = await Promise.all([startBrowser(), startConsole(null)]);
  ({ page } = await openPage(browser));
  ({ token } = await service.newOperator("owner"));
  await service.newOperator("viewer");
  const account = await ask("/accounts", { name: "shop", credit: "10" });
  const key = await ask(`/accounts/${account.id}/keys`, { name: "web" });
  const webhook = await ask("/webhooks", { url: "http://127.0.0.1:9/" });
  await ask("/price_lists", { name: "partners", prices: [{ input: "1", output: "2" }] });
  const answer = await fetch(`${service.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key.secret ?? ""}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "m", messages: [{ role: "user", content: "Hello" }] }),
  });
  await answer.text();
  ids["account"] = account.id;
  ids["key"] = key.id;
  ids["webhook"] = webhook.id;
  ids["request"] = answer.headers.get("x-request-id") ?? "";
  await signIn(page);
});
afterEach(inspectPages);
afterAll(async () => {
  await browser.close();
  await service[Symbol.asyncDispose]();
});

async function ask(path: string, body: object): Promise<{ readonly id: string; secret?: string }> {
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const order = { method: "POST", headers, body: JSON.stringify(body) };
  const answer = await fetch(`${service.operatorUrl}/api/v1${path}`, order);
  if (!answer.ok) throw new Error(`${path}: ${String(answer.status)} ${await answer.text()}`);
  return (await answer.json()) as { readonly id: string };
}

/** The place with the ids that `{name}` stands for. */
function pathOf(place: string): string {
  return place.replace(/\{(\w+)\}/u, (_all, name: string) => ids[name] ?? "");
}

async function signIn(by: Page): Promise<void> {
  await by.goto(service.operatorUrl);
  await by.getByLabel("Operator's token").fill(token);
  await by.keyboard.press("Enter");
  await by.locator(".shell").waitFor();
}

/** Places that ask for more than one thing. */
const readingSeveral = [
  "",
  "running",
  "accounts",
  "accounts/{account}",
  "accounts/{account}?tab=entries",
  "accounts/{account}?tab=usage",
  "accounts/{account}?tab=statements",
  "keys/{key}",
  "receipts/{request}",
  "webhooks?webhook={webhook}",
  "audit",
  "settings",
];

test("nothing moves, whichever answer comes last", async () => {
  const own = (await openPage(browser, { width: 390, dark: false })).page;
  await signIn(own);
  const asked = new Set<string>();
  const unanswered = new Set<unknown>();
  const held: Route[] = [];
  let last = "";
  for (const event of ["response", "requestfailed"] as const)
    own.on(event as "requestfailed", (one) =>
      unanswered.delete("request" in one ? (one as { request(): unknown }).request() : one),
    );
  await own.route("**/api/v1/**", (route) => {
    const { pathname } = new URL(route.request().url());
    asked.add(pathname);
    if (pathname === last) {
      held.push(route);
      return Promise.resolve();
    }
    unanswered.add(route.request());
    return route.fallback();
  });
  const settle = async (): Promise<void> => {
    await expect.poll(() => unanswered.size).toBe(0);
    await own.evaluate(drawTwice);
  };
  const open = async (place: string): Promise<void> => {
    await own.goto("about:blank");
    // What the page before had asked for is of no account.
    for (const set of [asked, unanswered]) set.clear();
    await own.goto(`${service.operatorUrl}/#/${pathOf(place)}`);
    await own.locator("main h1").waitFor();
  };
  for (const place of readingSeveral) {
    await open(place);
    await own.waitForFunction(() => document.querySelector(".state-loading") === null);
    const questions = [...asked].filter((name) => !name.endsWith("/session"));
    // Where there is one answer, nothing comes before it.
    for (const question of questions.length > 1 ? questions : []) {
      last = question;
      await open(place);
      await expect.poll(async () => held.length > 0 || (await isWhole(own))).toBe(true);
      await settle();
      last = "";
      await Promise.all(held.splice(0).map((route) => route.fallback()));
      await own.waitForFunction(() => document.querySelector(".state-loading") === null);
      await settle();
      const { shift } = await own.evaluate(measureLoad, 0);
      expect.soft(shift, `${place}, ${question} last`).toBeLessThanOrEqual(shiftMax);
    }
  }
  await own.unrouteAll({ behavior: "ignoreErrors" });
  await own.context().close();
});

/** Whether a page waits for nothing, as far as is seen. */
async function isWhole(by: Page): Promise<boolean> {
  return (await by.locator(".state-loading").count()) === 0;
}

/** By place a change that is made there, and whether its dialog has a field to fill first. */
const changes: readonly (readonly [
  place: string,
  opener: string | RegExp,
  fields: Readonly<Record<string, string>>,
])[] = [
  ["accounts/{account}", "Top up", { "Amount in credits": "1" }],
  ["accounts/{account}", "Pause the key web", {}],
  ["accounts/{account}", "Budget the key web", { "Amount in credits": "5" }],
  ["accounts/{account}?tab=settings", "Change the name, prices and more", {}],
  ["accounts/{account}?tab=settings", "Change the limits", {}],
  ["accounts/{account}?tab=settings", "Set a grant", { "Amount in credits": "5" }],
  ["accounts/{account}?tab=settings", "Stop the grant", {}],
  ["accounts/{account}", "Disable", {}],
  ["keys/{key}", "Change the key web", {}],
  ["keys/{key}", "Revoke the key web", {}],
  ["receipts/{request}", "Refund", {}],
  ["prices", "Add a price to partners", { From: "2100-01-01T00:00", Input: "1", Output: "1" }],
  ["prices", /^Remove the price from /u, {}],
  ["webhooks", /^Change the webhook of /u, {}],
  ["webhooks", /^Pause the webhook of /u, {}],
  ["webhooks", /^Delete the webhook of /u, {}],
  ["operators", "Revoke the operator operator 2", {}],
];

test.each(changes)(
  "on %s the dialog of %s stays until the page has read what it changed",
  async (place, opener, fields) => {
    await visitPlace(page, `${service.operatorUrl}/#/${pathOf(place)}`);
    await page.getByRole("button", { name: opener, exact: true }).click();
    const dialog = page.getByRole("dialog");
    for (const [label, value] of Object.entries(fields))
      await dialog.getByLabel(label, { exact: true }).fill(value);
    const held: Route[] = [];
    let holds = false;
    await page.route("**/api/v1/**", async (route) => {
      if (holds) {
        held.push(route);
        return;
      }
      if (route.request().method() === "GET") return route.continue();
      const response = await route.fetch();
      expect(response.ok(), await response.text()).toBe(true);
      holds = true;
      await route.fulfill({ response });
    });
    await dialog.locator("button[type=submit]").click();
    await expect.poll(() => held.length).toBeGreaterThan(0);
    expect(await dialog.count()).toBe(1);
    expect(await dialog.locator("button[type=submit]").isDisabled()).toBe(true);
    holds = false;
    await Promise.all(held.map((route) => route.continue()));
    await dialog.waitFor({ state: "detached" });
    await page.unroute("**/api/v1/**");
  },
);

test("a page that asks every few seconds waits for an answer that takes longer", async () => {
  const own = await openPage(browser);
  await own.page.clock.install();
  await signIn(own.page);
  await own.page.getByRole("heading", { name: "Overview" }).waitFor();
  const held: Route[] = [];
  await own.page.route("**/api/v1/status", (route) => {
    held.push(route);
    return Promise.resolve();
  });
  await own.page.evaluate(() => (location.hash = "#/settings"));
  await expect.poll(() => held.length).toBe(1);
  for (let times = 0; times < 3; times += 1) await own.page.clock.fastForward(6_000);
  // What is asked after it comes after it.
  await own.page.evaluate(async () => (await fetch("/api/v1/settings")).text());
  expect(held).toHaveLength(1);
  await held[0]?.continue();
  await own.page.getByRole("region", { name: "Replicas" }).waitFor();
  await own.page.clock.fastForward(6_000);
  await expect.poll(() => held.length).toBe(2);
  await own.page.unrouteAll({ behavior: "ignoreErrors" });
  await own.page.context().close();
});

test("a place that is gone to while the page begins is not missed", async () => {
  const { page: other } = await openPage(browser);
  await signIn(other);
  await other.addInitScript(goWhilePlacesAreListenedFor);
  await other.goto("about:blank");
  await other.goto(`${service.operatorUrl}/#/`);
  await other.getByRole("heading", { name: "Accounts", exact: true }).waitFor();
  await other.context().close();
});

/** Runs in the browser, before the page: the place changes, and no event of it reaches who listens a moment later. */
function goWhilePlacesAreListenedFor(): void {
  const add = globalThis.addEventListener.bind(globalThis);
  const goFirst = (type: string, listener: EventListenerOrEventListenerObject): void => {
    if (type === "hashchange") history.replaceState(null, "", "#/accounts");
    add(type, listener);
  };
  Object.assign(globalThis, { addEventListener: goFirst });
}
