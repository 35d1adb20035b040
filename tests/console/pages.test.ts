import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { findBarriers, openPage, startBrowser, visitPlace, type Watched } from "./browser.ts";
import { hostileName } from "./fill-ledger.ts";
import { slowness } from "./hostile.ts";
import { pictures, showFailure } from "./show-failures.ts";
import { type ConsoleService, startConsole } from "./start-console.ts";

// Every page on a ledger with much in it, as it looks light and dark, wide and narrow.

const firstLoadBytesMax = 150 * 1024;
/** Of the processor, for the page's own thread, until all is there: no other program of the machine counts. */
const workMsMax = 1_000 * slowness;
const shiftMax = 0.05;

let browser: Browser;
let service: ConsoleService;
let token = "";
/** Places of the console by the name of their picture. */
const places: Record<string, string> = {
  overview: "",
  "overview-30-days": "?range=30d",
  accounts: "accounts",
  receipts: "receipts",
  running: "running",
  playground: "playground",
  prices: "prices",
  operators: "operators",
  webhooks: "webhooks",
  audit: "audit",
  settings: "settings",
};

beforeAll(async () => {
  [browser, service] = await Promise.all([
    startBrowser(),
    startConsole({ accounts: 300, keys: 1_000, receipts: 6_000 }),
  ]);
  ({ token } = await service.newOperator("owner"));
  const [receipt] = await list("/receipts?limit=1");
  const accounts = await list("/accounts?limit=500");
  const hostile = accounts.find(({ name }) => name === hostileName);
  places["receipt"] = `receipts/${String(receipt?.["id"])}`;
  places["account"] = `accounts/${String(receipt?.["account"])}`;
  places["account-movements"] = `accounts/${String(receipt?.["account"])}?tab=entries`;
  places["account-statements"] = `accounts/${String(receipt?.["account"])}?tab=statements`;
  places["account-settings"] = `accounts/${String(receipt?.["account"])}?tab=settings`;
  places["key"] = `keys/${String(receipt?.["key"])}`;
  places["account-receipts"] = `accounts/${String(receipt?.["account"])}?tab=receipts`;
  const webhook = { url: "http://127.0.0.1:9/", description: hostileName };
  const made = await ask<{ id: string }>("/webhooks", webhook);
  await ask<unknown>(`/webhooks/${made.id}/test`, {});
  places["webhook"] = `webhooks?webhook=${made.id}`;
  places["hostile-account"] = `accounts/${String(hostile?.["id"])}`;
});
afterEach(showFailure);
afterAll(async () => {
  await browser.close();
  await service[Symbol.asyncDispose]();
});

async function ask<Answer>(path: string, body?: object): Promise<Answer> {
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const change = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
  const answer = await fetch(`${service.operatorUrl}/api/v1${path}`, { headers, ...change });
  if (!answer.ok) throw new Error(`${path}: ${String(answer.status)} ${await answer.text()}`);
  return (await answer.json()) as Answer;
}

async function list(path: string): Promise<readonly Readonly<Record<string, unknown>>[]> {
  return (await ask<{ data: Record<string, unknown>[] }>(path)).data;
}

async function signIn(look: { readonly width: number; readonly dark: boolean }): Promise<Watched> {
  const watched = await openPage(browser, look);
  await watched.page.goto(service.operatorUrl);
  await watched.page.getByLabel("Operator's token").fill(token);
  await watched.page.getByRole("button", { name: "Sign in" }).click();
  await watched.page.locator(".shell").waitFor();
  return watched;
}

function visit(page: Page, path: string): Promise<void> {
  return visitPlace(page, `${service.operatorUrl}/#/${path}`);
}

const looks = [
  { width: 1440, height: 900, dark: false },
  { width: 1440, height: 900, dark: true },
  { width: 390, height: 844, dark: false },
  { width: 390, height: 844, dark: true },
];

describe.each(looks)("at $width, dark: $dark", (look) => {
  const name = `${String(look.width)}-${look.dark ? "dark" : "light"}`;

  test("every page can be used by all, shifts nothing, and takes no name for an element", async () => {
    const { complaints, page, strangers } = await signIn(look);
    for (const [place, path] of Object.entries(places)) {
      await visit(page, path);
      expect(await findBarriers(page), place).toEqual([]);
      expect(await page.locator("img").count(), place).toBe(0);
      expect(await page.title(), place).toMatch(/ · Tributary$/);
      // Nothing but tables, which scroll by themselves, is wider than the screen.
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      expect(wide, place).toBeLessThanOrEqual(0);
      await page.screenshot({ path: join(pictures, `${place}-${name}.png`), fullPage: true });
    }
    await visit(page, places["hostile-account"] ?? "");
    expect(await page.locator("h1").textContent()).toContain(hostileName);
    expect([...strangers, ...complaints]).toEqual([]);
    await page.context().close();
  });
});

test("the pages of callers can be used by all in every look, ask nothing of another host, and load little", async () => {
  const id = String(places["account"]).replace("accounts/", "");
  const budget = { amount: "25", period: "month" };
  const { secret } = await ask<{ secret: string }>(`/accounts/${id}/keys`, { name: "c", budget });
  const { complaints, page, strangers } = await openPage(browser);
  await page.goto(service.url);
  await page.getByLabel("API key").fill(secret);
  await page.getByRole("button", { name: "Show the account" }).click();
  await page.getByRole("heading", { name: "Usage" }).waitFor();
  expect((await page.evaluate(measureLoad)).bytes).toBeLessThanOrEqual(firstLoadBytesMax);
  for (const [hash, heading] of [
    ["?range=30d", "Usage"],
    ["receipts", "Receipts"],
    [String(places["receipt"]), "What it cost"],
    ["statements", "Credit"],
    ["playground", "Playground"],
    ["clients", "Clients"],
  ] as const) {
    // A reload would forget the key.
    await page.evaluate((to) => void (location.hash = `#/${to}`), hash);
    await page.getByRole("heading", { name: heading, exact: true }).first().waitFor();
    await page.waitForFunction(() => document.querySelector(".state-loading") === null);
    for (const { dark, height, width } of looks) {
      await page.setViewportSize({ width, height });
      await page.emulateMedia({ colorScheme: dark ? "dark" : "light" });
      expect(await findBarriers(page), heading).toEqual([]);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      expect(wide, heading).toBeLessThanOrEqual(0);
      const name = `callers-${heading.replaceAll(" ", "-").toLowerCase()}-${String(width)}-${dark ? "dark" : "light"}`;
      await page.screenshot({ path: join(pictures, `${name}.png`), fullPage: true });
    }
  }
  expect([...strangers, ...complaints]).toEqual([]);
  await page.context().close();
});

test("the first load is small and is shown with less than a second of work, and no page shifts", async () => {
  const { page } = await signIn({ width: 1440, dark: false });
  const session = await page.context().newCDPSession(page);
  await session.send("Performance.enable", { timeDomain: "threadTicks" });
  const workMs = async (): Promise<number> => {
    const { metrics } = await session.send("Performance.getMetrics");
    return 1_000 * (metrics.find(({ name }) => name === "TaskDuration")?.value ?? NaN);
  };
  for (const [place, path] of Object.entries(places)) {
    const beforeMs = await workMs();
    await visit(page, path);
    expect((await workMs()) - beforeMs, place).toBeLessThanOrEqual(workMsMax);
    const seen = await page.evaluate(measureLoad);
    expect(seen.bytes, place).toBeLessThanOrEqual(firstLoadBytesMax);
    expect(seen.shift, place).toBeLessThanOrEqual(shiftMax);
  }
});

test("at 200 % everything is still there", async () => {
  const { page } = await signIn({ width: 720, dark: false });
  for (const [place, path] of Object.entries(places)) {
    await visit(page, path);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    expect(wide, place).toBeLessThanOrEqual(0);
  }
});

test("lists turn their pages, and an account is found among three hundred", async () => {
  const { page } = await signIn({ width: 1440, dark: false });
  await visit(page, "accounts");
  const first = await page.getByRole("rowheader").first().textContent();
  await page.getByRole("button", { name: "Older" }).click();
  await page.getByText("Page 2").waitFor();
  expect(await page.getByRole("rowheader").first().textContent()).not.toBe(first);
  await page.getByLabel("Search").fill("TEAM 17");
  await page.keyboard.press("Enter");
  await page.getByRole("row", { name: "team 170" }).waitFor();
  expect(await page.getByRole("rowheader").count()).toBe(11);
  await page.getByRole("link", { name: "All", exact: true }).click();
  await page.getByRole("button", { name: "Older" }).click();
  await page.getByText("Page 2").waitFor();
  await page.getByRole("button", { name: "Newer" }).click();
  await page.getByText("Page 1").waitFor();
});

/** Runs in the browser: what came over the network, and how much moved. */
async function measureLoad(): Promise<{ readonly bytes: number; readonly shift: number }> {
  const shift = await new Promise<number>((resolve) => {
    new PerformanceObserver((entries) => {
      const moved = entries.getEntries() as unknown as readonly { readonly value: number }[];
      resolve(moved.reduce((sum, { value }) => sum + value, 0));
    }).observe({ type: "layout-shift", buffered: true });
    // Where nothing moved there is nothing to observe.
    requestAnimationFrame(() => requestAnimationFrame(() => resolve(0)));
  });
  const files = performance.getEntriesByType("resource") as PerformanceResourceTiming[];
  const own = files.filter(({ name }) => new URL(name).pathname.startsWith("/console/"));
  const [start] = performance.getEntriesByType("navigation") as PerformanceNavigationTiming[];
  const bytes = own.reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0);
  return { bytes: bytes + (start?.encodedBodySize ?? 0), shift };
}
