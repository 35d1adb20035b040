import type { Browser, Locator, Page } from "playwright-core";
import { unitsOf } from "../../console/src/exact.ts";
import { afterAll, afterEach, beforeAll, expect, inject, test } from "vitest";
import {
  followFragment,
  measureLoad,
  openPage,
  startBrowser,
  visitPlace,
  type Watched,
} from "./browser.ts";
import { writtenAccount, writtenKey } from "../doubles/many-receipts.ts";
import { hostileName } from "./fill-ledger.ts";
import { slowness } from "./hostile.ts";
import { look, sizes, watchWork } from "./look.ts";
import { inspectPages } from "./show-failures.ts";
import { placeOf } from "../../console/src/place.ts";
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
  refused: "refused",
  playground: "playground",
  prices: "prices",
  operators: "operators",
  webhooks: "webhooks",
  audit: "audit",
  settings: "settings",
};

beforeAll(async () => {
  [browser, service] = await Promise.all([startBrowser(), startConsole(inject("muchLedger"))]);
  ({ token } = await service.newOperator("owner"));
  const [receipt] = await list("/receipts?limit=1");
  const [hostile] = await list(`/accounts?search=${encodeURIComponent(hostileName)}`);
  // Thousands of receipts are of one account.
  const busy = writtenAccount(0);
  places["receipt"] = `receipts/${String(receipt?.["id"])}`;
  places["account"] = `accounts/${String(receipt?.["account"])}`;
  places["account-movements"] = `accounts/${String(receipt?.["account"])}?tab=entries`;
  places["account-statements"] = `accounts/${String(receipt?.["account"])}?tab=statements`;
  places["account-settings"] = `accounts/${String(receipt?.["account"])}?tab=settings`;
  places["key"] = `keys/${writtenKey(0).id}`;
  places["account-receipts"] = `accounts/${busy}?tab=receipts`;
  places["account-usage"] = `accounts/${busy}?tab=usage&range=30d`;
  const webhook = { url: "http://127.0.0.1:9/", description: hostileName };
  const made = await ask<{ id: string }>("/webhooks", webhook);
  await ask<unknown>(`/webhooks/${made.id}/test`, {});
  places["webhook"] = `webhooks?webhook=${made.id}`;
  places["hostile-account"] = `accounts/${String(hostile?.["id"])}`;
});
afterEach(inspectPages);
afterAll(async () => {
  await browser.close();
  await service[Symbol.asyncDispose]();
});

async function ask<Answer>(path: string, body?: object, method = "POST"): Promise<Answer> {
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const change = body === undefined ? {} : { method, body: JSON.stringify(body) };
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

test.each(sizes)(
  "at $width every page can be used by all, light and dark, loads little and shifts nothing",
  async (size) => {
    const { larger, width } = size;
    const { complaints, page, strangers } = await signIn({ width, dark: false });
    const workMs = await watchWork(page);
    const linked = new Set<string>();
    for (const [place, path] of Object.entries(places)) {
      const beforeMs = await workMs();
      await visit(page, path);
      expect((await workMs()) - beforeMs, place).toBeLessThanOrEqual(workMsMax);
      const { bytes, shift } = await page.evaluate(measureLoad, 0);
      expect(bytes, place).toBeLessThanOrEqual(firstLoadBytesMax);
      expect(shift, place).toBeLessThanOrEqual(shiftMax);
      expect(await page.locator("img").count(), place).toBe(0);
      expect(await page.title(), place).toMatch(/ · Tributary$/);
      await look(page, place, size);
      // Rows that are cards have nothing beside them.
      if (larger === null) expect(await page.evaluate(listWideCards), place).toEqual([]);
      for (const link of await page.evaluate(listLinks)) linked.add(pageOf(link));
    }
    // What a page leads to is looked at, too.
    const seen = new Set(Object.values(places).map((path) => pageOf(`#/${path}`)));
    expect([...linked].filter((link) => !seen.has(link))).toEqual([]);
    expect([...strangers, ...complaints]).toEqual([]);
    await page.context().close();
  },
);

test("a stored name that would be an element is text on every page, of operators and of callers", async () => {
  const account = places["hostile-account"] ?? "";
  const { secret, id: key } = await ask<{ secret: string; id: string }>(`/${account}/keys`, {
    name: hostileName,
  });
  const credit = { kind: "top_up", amount: "1", note: hostileName, reference: hostileName };
  await ask(`/${account}/credits`, credit);
  await ask("/operators", { name: hostileName, role: "viewer" });
  const metadata = { plan: hostileName };
  await ask(`/${account}`, { external_id: hostileName, metadata }, "PATCH");
  const answer = await fetch(`${service.url}/v1/chat/completions`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${secret}`,
      "content-type": "application/json",
      "x-tributary-label": hostileName,
    },
    body: JSON.stringify({ model: hostileName, messages: [{ role: "user", content: "Hello" }] }),
  });
  await answer.text();
  const request = answer.headers.get("x-request-id") ?? "";
  const label = encodeURIComponent(hostileName);
  const operators = await signIn({ width: 1440, dark: false });
  const callers = await openPage(browser);
  await callers.page.goto(service.url);
  await callers.page.getByLabel("API key").fill(secret);
  await callers.page.getByRole("button", { name: "Show the account" }).click();
  for (const [{ page }, named] of [
    [
      operators,
      [
        `accounts?search=${label}`,
        account,
        ...["entries", "usage", "receipts", "statements", "settings"].map(
          (tab) => `${account}?tab=${tab}`,
        ),
        `keys/${key}`,
        `receipts/${request}`,
        "operators",
        places["webhook"] ?? "",
        "audit",
      ],
    ],
    [callers, ["", `receipts/${request}`, "statements"]],
  ] as const)
    for (const place of named) {
      await page.evaluate(followFragment, `#/${place}`);
      await page.waitForFunction(() => document.querySelector(".state-loading") === null);
      await page.locator("main").getByText(hostileName).first().waitFor();
      expect(await page.locator("img").count(), place).toBe(0);
      expect(await page.title(), place).toMatch(/ · Tributary$/u);
    }
  // Where it is looked for.
  await operators.page.evaluate(followFragment, `#/receipts?label=${label}`);
  await operators.page.locator(`a[href="#/receipts/${request}"]`).waitFor();
  expect(await operators.page.getByLabel("Label").inputValue()).toBe(hostileName);
  for (const { complaints, page, strangers } of [operators, callers]) {
    expect([...strangers, ...complaints]).toEqual([]);
    await page.context().close();
  }
});

/** Runs in the browser: the tables that can be scrolled sideways although their rows are cards. */
function listWideCards(): readonly (string | null)[] {
  return [...document.querySelectorAll(".table:not(.table-window):has(tbody [data-head])")]
    .filter((table) => table.checkVisibility() && table.scrollWidth > table.clientWidth)
    .map((table) => table.getAttribute("aria-label"));
}

/** Which page an address is of, whatever thing it shows. */
function pageOf(address: string): string {
  const { path, query } = placeOf(address);
  const [section = "", id] = path;
  const parts = [query.get("tab") ?? "", query.has("webhook") ? "deliveries" : ""];
  return [section, id === undefined ? "" : "one", ...parts].join(" ").trim();
}

/** Runs in the browser: where the page leads to in the console. */
function listLinks(): readonly string[] {
  const links = document.querySelectorAll<HTMLAnchorElement>('a[href^="#/"]');
  return [...links].map((link) => link.getAttribute("href") ?? "");
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
  expect((await page.evaluate(measureLoad, 0)).bytes).toBeLessThanOrEqual(firstLoadBytesMax);
  const workMs = await watchWork(page);
  for (const [hash, heading] of [
    ["?range=30d", "Usage"],
    ["receipts", "Receipts"],
    [String(places["receipt"]), "What it cost"],
    ["statements", "Credit"],
    ["playground", "Playground"],
    ["clients", "Clients"],
  ] as const) {
    const beforeMs = await workMs();
    const sinceMs = await page.evaluate(() => performance.now());
    // A reload would forget the key.
    await page.evaluate(followFragment, `#/${hash}`);
    await page.getByRole("heading", { name: heading, exact: true }).first().waitFor();
    await page.waitForFunction(() => document.querySelector(".state-loading") === null);
    expect((await workMs()) - beforeMs, hash).toBeLessThanOrEqual(workMsMax);
    const { shift } = await page.evaluate(measureLoad, sinceMs);
    expect(shift, hash).toBeLessThanOrEqual(shiftMax);
    // Settings of the service are not theirs.
    expect(await page.locator("main").textContent(), hash).not.toContain("TRIBUTARY_");
    const place = `callers-${heading.replaceAll(" ", "-").toLowerCase()}`;
    for (const size of sizes) await look(page, place, size);
  }
  expect([...strangers, ...complaints]).toEqual([]);
  await page.context().close();
});

test("a point of a plot leads to the receipts that it counts, by a click where it is drawn", async () => {
  const { page } = await signIn({ width: 1440, dark: false });
  // No hour ends while it is looked at: the stretches stay the same ones.
  await page.clock.setFixedTime(Date.now());
  for (const place of ["", `accounts/${writtenAccount(0)}?tab=usage&range=30d`]) {
    await visit(page, place);
    const plot = (title: string) =>
      page.locator(".plot", { has: page.locator(".plot-title").getByText(title, { exact: true }) });
    await plot("Requests").locator(".u-over").waitFor();
    const rows = await plot("Requests").locator("tbody tr").evaluateAll(readCells);
    // A stretch that is over, with something in it: it stays as it is.
    const at = rows.findIndex(([, ended = ""]) => countOf(ended) > 0 && countOf(ended) < 400);
    expect(at).toBeGreaterThanOrEqual(0);
    expect(at).toBeLessThan(rows.length - 1);
    const said: Record<string, string> = {};
    const area = plot("Requests").locator(".u-over");
    for (const title of ["Credits", "Tokens out", "Requests"]) {
      await hoverColumn(plot(title).locator(".u-over"), at, rows.length);
      const when = rows[at]?.[0] ?? "";
      await plot(title).locator(".plot-when").getByText(when, { exact: true }).waitFor();
      said[title] = (await plot(title).locator(".plot-keys b").textContent()) ?? "";
    }
    expect(said["Requests"]).toBe(rows[at]?.[1]);
    await area.click({ position: await columnOf(area, at, rows.length) });
    await page.getByRole("form", { name: "Which receipts" }).getByText("Ended from").waitFor();
    const { charged, count, output } = await sumRows(page);
    expect(count, place).toBe(countOf(said["Requests"] ?? ""));
    expect(output, place).toBe(countOf(said["Tokens out"] ?? ""));
    expect(charged, place).toBe(unitsOf((said["Credits"] ?? "").replaceAll(",", ""), 9));
  }
  await page.context().close();
});

/** The last number of a text. */
function countOf(text: string): number {
  return Number(/([\d,]+)$/u.exec(text)?.[1]?.replaceAll(",", ""));
}

/** The middle of a stretch of a plot. */
async function columnOf(
  area: Locator,
  at: number,
  stretches: number,
): Promise<{ readonly x: number; readonly y: number }> {
  const box = await area.boundingBox();
  if (box === null) throw new Error("the plot is not drawn");
  return { x: (box.width * (at + 0.5)) / stretches, y: box.height / 2 };
}

async function hoverColumn(area: Locator, at: number, stretches: number): Promise<void> {
  await area.hover({ position: await columnOf(area, at, stretches) });
}

/** All pages of the list of receipts that is shown. */
async function sumRows(page: Page) {
  const sums = { count: 0, output: 0, charged: 0n };
  const table = page.getByRole("region", { name: "Receipts" });
  for (let number = 1; ; number += 1) {
    if (number > 1) await page.getByText(`Page ${String(number)}`).waitFor();
    await table.getByRole("rowheader").first().waitFor();
    for (const cells of await table.locator("tbody tr").evaluateAll(readCells)) {
      sums.count += 1;
      sums.output += cells.at(-3) === "–" ? 0 : countOf(cells.at(-3) ?? "");
      sums.charged += unitsOf((cells.at(-1) ?? "").replaceAll(",", ""), 9);
    }
    const older = page.getByRole("button", { name: "Older" });
    if (!(await older.isVisible()) || (await older.isDisabled())) return sums;
    await older.click();
  }
}

/** Runs in the browser: the texts of the cells of each row. */
function readCells(rows: readonly Element[]): readonly (readonly string[])[] {
  return rows.map((row) => [...row.children].map(({ textContent }) => textContent.trim()));
}

test("lists turn their pages, and an account is found among three hundred", async () => {
  const { page } = await signIn({ width: 1440, dark: false });
  await visit(page, "accounts");
  const first = await page.getByRole("rowheader").first().textContent();
  await page.getByRole("button", { name: "Older" }).click();
  await page.getByText("Page 2").waitFor();
  expect(await page.getByRole("rowheader").first().textContent()).not.toBe(first);
  await page.getByLabel("Search").fill("MANY 17");
  await page.keyboard.press("Enter");
  await page.getByRole("row", { name: "many 170" }).waitFor();
  expect(await page.getByRole("rowheader").count()).toBe(11);
  await page.getByRole("link", { name: "All", exact: true }).click();
  await page.getByRole("button", { name: "Older" }).click();
  await page.getByText("Page 2").waitFor();
  await page.getByRole("button", { name: "Newer" }).click();
  await page.getByText("Page 1").waitFor();
});
