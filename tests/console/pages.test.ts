import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
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

/** Wide, where twice as large is half as wide; and as a telephone has it. */
const sizes = [
  { width: 1440, height: 900, larger: 720 },
  { width: 390, height: 844, larger: null },
];

test.each(sizes)(
  "at $width every page can be used by all, light and dark, loads little and shifts nothing, and takes no name for an element",
  async ({ height, larger, width }) => {
    const { complaints, page, strangers } = await signIn({ width, dark: false });
    const workMs = await watchWork(page);
    for (const [place, path] of Object.entries(places)) {
      const beforeMs = await workMs();
      await visit(page, path);
      expect((await workMs()) - beforeMs, place).toBeLessThanOrEqual(workMsMax);
      const { bytes, shift } = await page.evaluate(measureLoad);
      expect(bytes, place).toBeLessThanOrEqual(firstLoadBytesMax);
      expect(shift, place).toBeLessThanOrEqual(shiftMax);
      expect(await page.locator("img").count(), place).toBe(0);
      expect(await page.title(), place).toMatch(/ · Tributary$/);
      await look(page, place, { width, height });
      if (larger === null) continue;
      // At 200 % everything is still there.
      await page.setViewportSize({ width: larger, height });
      expect(await page.evaluate(measureOverflow), place).toBeLessThanOrEqual(0);
      await page.setViewportSize({ width, height });
    }
    await visit(page, places["hostile-account"] ?? "");
    expect(await page.locator("h1").textContent()).toContain(hostileName);
    expect([...strangers, ...complaints]).toEqual([]);
    await page.context().close();
  },
);

/** Looks at what a page shows, light and dark, and keeps a picture of each. */
async function look(
  page: Page,
  place: string,
  { height, width }: { readonly width: number; readonly height: number },
): Promise<void> {
  await page.setViewportSize({ width, height });
  for (const scheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme: scheme });
    // Nothing but tables, which scroll by themselves, is wider than the screen.
    expect(await page.evaluate(measureOverflow), place).toBeLessThanOrEqual(0);
    const barriers = await findBarriers(page, scheme === "light" ? "all" : "colours");
    expect(barriers, `${place}, ${scheme}`).toEqual([]);
    const name = `${place}-${String(width)}-${scheme}.png`;
    await page.screenshot({ path: join(pictures, name), fullPage: true });
  }
  await page.emulateMedia({ colorScheme: "light" });
}

/** The processor's time that the thread of the page's scripts and layout took, up to each call. */
async function watchWork(page: Page): Promise<() => Promise<number>> {
  const session = await page.context().newCDPSession(page);
  await session.send("Performance.enable", { timeDomain: "threadTicks" });
  return async () => {
    const { metrics } = await session.send("Performance.getMetrics");
    return 1_000 * (metrics.find(({ name }) => name === "TaskDuration")?.value ?? NaN);
  };
}

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
    await page.evaluate(followFragment, `#/${hash}`);
    await page.getByRole("heading", { name: heading, exact: true }).first().waitFor();
    await page.waitForFunction(() => document.querySelector(".state-loading") === null);
    const place = `callers-${heading.replaceAll(" ", "-").toLowerCase()}`;
    for (const size of sizes) await look(page, place, size);
  }
  expect([...strangers, ...complaints]).toEqual([]);
  await page.context().close();
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

/** Runs in the browser: pixels by which the page is wider than the screen, once it is drawn. */
async function measureOverflow(): Promise<number> {
  await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
  return document.documentElement.scrollWidth - innerWidth;
}

/** Runs in the browser: goes to another place of the same document, and waits until that is drawn. */
async function followFragment(fragment: string): Promise<void> {
  const gone = new Promise((resolve) => addEventListener("hashchange", resolve, { once: true }));
  location.hash = fragment;
  await gone;
  await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
}
