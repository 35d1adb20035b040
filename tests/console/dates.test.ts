import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { placeOf } from "../../console/src/place.ts";
import { orderOf, settlementOf } from "../ledger/orders.ts";
import { followFragment, openPage, startBrowser } from "./browser.ts";
import { openLedgerAt } from "./fill-ledger.ts";
import { inspectPages } from "./show-failures.ts";
import { type ConsoleService, startConsole } from "./start-console.ts";

// Days and months are of UTC wherever the person looks from; the pages' clock stands on the first of a month there.

const nowText = "2026-03-01T04:30:00Z";
/** One that runs over the end of January, and those on both sides of it. */
const requests = [
  ["req_a", "2026-01-31T23:59:58.000Z", "2026-01-31T23:59:59.999Z"],
  ["req_b", "2026-01-31T23:59:59.500Z", "2026-02-01T00:00:00.000Z"],
  ["req_c", "2026-02-01T00:00:00.000Z", "2026-02-01T00:00:01.000Z"],
  ["req_d", "2026-02-28T23:59:59.000Z", "2026-02-28T23:59:59.500Z"],
] as const;

let browser: Browser;
let service: ConsoleService;
let token = "";
let account = "";
const folder = mkdtempSync(join(tmpdir(), "tributary-dates-"));

beforeAll(async () => {
  const clock = { nowMs: Date.parse("2026-01-31T12:00:00Z") };
  {
    await using ledger = openLedgerAt(join(folder, "ledger.sqlite"), clock);
    const { id } = await ledger.createAccount("dates", 10n ** 9n);
    account = id;
    const { secret } = await ledger.createKey(id, "web");
    const orders = new Map<string, ReturnType<typeof orderOf>>();
    const steps = requests.flatMap(([requestId, admitted, ended]) => [
      { requestId, at: admitted, ends: false },
      { requestId, at: ended, ends: true },
    ]);
    for (const { at, ends, requestId } of steps.toSorted((a, b) => a.at.localeCompare(b.at))) {
      clock.nowMs = Date.parse(at);
      const order = orders.get(requestId);
      if (ends && order !== undefined) await ledger.settle(settlementOf(order));
      if (ends) continue;
      const admitted = orderOf(await ledger.authorize(secret, false), { requestId });
      await ledger.admit(admitted);
      orders.set(requestId, admitted);
    }
  }
  [browser, service] = await Promise.all([startBrowser(), startConsole(folder)]);
  ({ token } = await service.newOperator("viewer"));
});
afterEach(inspectPages);
afterAll(async () => {
  await browser.close();
  await service[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

async function visit(page: Page, query: string): Promise<void> {
  await page.evaluate(followFragment, `#/accounts/${account}?${query}`);
  await page.waitForFunction(() => document.querySelector(".state-loading") === null);
}

/** The stretches of a plot in which something was: their name, what it says, and where it leads to. */
async function stretchesOf(page: Page, title: string): Promise<readonly (readonly string[])[]> {
  const plot = page.locator(".plot", { hasText: title }).first();
  await plot.waitFor();
  const rows = await plot
    .locator("tbody tr")
    .evaluateAll((all) =>
      all.map((row) => [
        ...[...row.children].map(({ textContent }) => textContent.trim()),
        row.querySelector("a")?.getAttribute("href") ?? "",
      ]),
    );
  return rows;
}

/** The requests that a link leads to, oldest first. */
async function behind(page: Page, link: string): Promise<readonly string[]> {
  await page.evaluate(followFragment, link);
  await page.getByRole("region", { name: "Receipts" }).waitFor();
  const ids = await page.locator('tbody a[href^="#/receipts/"]').allTextContents();
  return ids.toSorted();
}

test.each(["UTC", "America/Los_Angeles", "Asia/Kathmandu", "Pacific/Kiritimati"])(
  "in %s the days and months are those that are charged",
  async (zone) => {
    const { complaints, page } = await openPage(browser, { width: 1440, dark: false, zone });
    await page.clock.setFixedTime(nowText);
    await page.addInitScript(keepDayLabels);
    await page.goto(service.operatorUrl);
    await page.getByLabel("Operator's token").fill(token);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("heading", { name: "Overview" }).waitFor();

    await visit(page, "tab=statements");
    const months = page.getByLabel("Month").locator("option");
    expect(await months.allTextContents()).toEqual(["2026-03", "2026-02", "2026-01"]);
    await page.getByRole("heading", { name: "No request ended in this month" }).waitFor();
    for (const [month, days, charged] of [
      ["2026-01", 1, [["2026-01-31", ["req_a"]]]],
      [
        "2026-02",
        28,
        [
          ["2026-02-01", ["req_b", "req_c"]],
          ["2026-02-28", ["req_d"]],
        ],
      ],
    ] as const) {
      await visit(page, `tab=statements&month=${month}`);
      const stretches = await stretchesOf(page, "Charged by day");
      // Each day is named at one place below it, however few there are.
      const labels = await page.evaluate(takeDayLabels);
      expect(labels.length).toBeGreaterThan(0);
      expect(new Set(labels.map(([label]) => label)).size, month).toBe(
        new Set(labels.map(String)).size,
      );
      // The plot's sum is the statement's, to the last digit.
      const sum = page.locator(".figure", { hasText: "Charged" }).locator("dd");
      expect(await page.locator(".plot-keys b").first().textContent()).toBe(
        await sum.first().textContent(),
      );
      // From the first day with a request to the last one.
      expect(stretches).toHaveLength(days);
      const begins = stretches.map(([day = ""]) => Date.parse(day));
      const first = Date.parse(charged[0][0]);
      expect(begins).toEqual(begins.map((_begin, at) => first + at * 86_400_000));
      const spent = stretches.filter(([, amount = ""]) => !amount.startsWith("0 for"));
      expect(spent.map(([day]) => day)).toEqual(charged.map(([day]) => day));
      for (const [at, [, ids]] of charged.entries())
        expect(await behind(page, spent[at]?.at(-1) ?? "")).toEqual(ids);
    }

    await visit(page, "tab=usage&range=30d");
    const stretches = await stretchesOf(page, "Requests");
    expect([stretches.length, stretches[0]?.[0], stretches.at(-1)?.[0]]).toEqual([
      30,
      "2026-01-31",
      "2026-03-01",
    ]);
    const used = stretches.filter(([, count]) => count !== "0");
    expect(used.map(([day, count]) => [day, count])).toEqual([
      ["2026-01-31", "1"],
      ["2026-02-01", "2"],
      ["2026-02-28", "1"],
    ]);
    expect(placeOf(used[0]?.at(-1) ?? "").query.get("ended_until")).toBe(
      "2026-02-01T00:00:00.000Z",
    );
    expect(await behind(page, used[1]?.at(-1) ?? "")).toEqual(["req_b", "req_c"]);
    expect(complaints).toEqual([]);
    await page.context().close();
  },
);

/** Runs in the browser before the page: keeps where days are written in plots, of each canvas those of its last drawing. */
function keepDayLabels(): void {
  const labels = new Map<CanvasRenderingContext2D, (readonly [label: string, x: number])[]>();
  Object.assign(globalThis, { dayLabels: labels });
  const { prototype } = CanvasRenderingContext2D;
  const before = (method: "clearRect" | "fillText", keep: KeepCall): void => {
    const draw = Reflect.get(prototype, method);
    const kept = new Proxy(draw, {
      apply(call, canvas: CanvasRenderingContext2D, given: unknown[]) {
        keep(canvas, given);
        Reflect.apply(call, canvas, given);
      },
    });
    Reflect.set(prototype, method, kept);
  };
  type KeepCall = (canvas: CanvasRenderingContext2D, given: readonly unknown[]) => void;
  // A plot is drawn anew where its width changes, as with a scroll bar that comes: first it clears all of its canvas.
  before("clearRect", (canvas) => labels.set(canvas, []));
  before("fillText", (canvas, [text, x]) => {
    if (/^\d\d-\d\d$/u.test(String(text)))
      labels.get(canvas)?.push([String(text), Math.round(Number(x))]);
  });
}

/** Runs in the browser: takes what was kept since the last time of plots that are on the page. */
function takeDayLabels(): readonly (readonly [label: string, x: number])[] {
  type Kept = Map<CanvasRenderingContext2D, [string, number][]>;
  const { dayLabels } = globalThis as unknown as { dayLabels: Kept };
  const taken = [...dayLabels].flatMap(([{ canvas }, labels]) =>
    canvas.isConnected ? labels : [],
  );
  dayLabels.clear();
  return taken;
}
