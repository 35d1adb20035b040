import type { Browser, Page, Request } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { openPage, startBrowser, type Watched } from "./browser.ts";
import { inspectPages } from "./show-failures.ts";
import { chunk, type ConsoleService, startConsole } from "./start-console.ts";

// What happens now, in several tabs of one browser, and thousands of rows of it.

const runningBefore = 3_000;

let browser: Browser;
let service: ConsoleService;
let watched: Watched;
let secret = "";
let token = "";
/** Live streams that tabs have opened, each with the number of its tab. */
const streams: number[] = [];

beforeAll(async () => {
  const size = { accounts: 20, keys: 60, receipts: 60, running: runningBefore };
  [browser, service] = await Promise.all([startBrowser(), startConsole(size)]);
  const [operator, account] = await Promise.all([
    service.newOperator("billing"),
    service.command("account", "create", "live", "--credit", "10"),
  ]);
  const key = await service.command("key", "create", account["id"] ?? "", "--name", "live");
  secret = key["key"] ?? "";
  ({ token } = operator);
  watched = await openPage(browser);
  await watched.page.goto(service.operatorUrl);
  await watched.page.getByLabel("Operator's token").fill(token);
  watchStreams(watched.page, 0);
  await watched.page.getByRole("button", { name: "Sign in" }).click();
  await watched.page.getByText("Running requests").waitFor();
});
afterEach(inspectPages);
afterAll(async () => {
  await browser.close();
  await service[Symbol.asyncDispose]();
});

function watchStreams(page: Page, tab: number): void {
  page.on("request", (request) => {
    if (isLive(request)) streams.push(tab);
  });
}

/** Begins an answer that goes on until it is released. */
async function beginAnswer(): Promise<{ release(): Promise<void> }> {
  const { promise: held, resolve } = Promise.withResolvers<undefined>();
  service.deployment.answerNext(
    { type: "write", bytes: chunk({ content: "Hel" }) },
    { type: "wait", until: held },
    { type: "write", bytes: "data: [DONE]\n\n" },
  );
  const answer = await fetch(`${service.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${secret}`, "content-type": "application/json" },
    body: JSON.stringify({
      model: "service-llm",
      messages: [{ role: "user", content: "Say hello." }],
      stream: true,
    }),
  });
  return {
    async release() {
      resolve(undefined);
      await answer.text();
    },
  };
}

function runs(page: Page, count: number): Promise<void> {
  const figure = page.locator(".figure", { hasText: "Running requests" });
  return figure.getByText(new Intl.NumberFormat("en-US").format(count), { exact: true }).waitFor();
}

test("ten tabs have one connection, show the same, and another one takes over when its tab is closed", async () => {
  const { page } = watched;
  await runs(page, runningBefore);
  const others: Page[] = [];
  for (let tab = 1; tab < 10; tab += 1) {
    const other = await page.context().newPage();
    watchStreams(other, tab);
    await other.goto(service.operatorUrl);
    others.push(other);
  }
  await Promise.all(others.map((other) => runs(other, runningBefore)));
  expect(streams).toEqual([0]);
  const answer = await beginAnswer();
  await Promise.all([page, ...others].map((one) => runs(one, runningBefore + 1)));
  expect(streams).toEqual([0]);
  await page.close();
  await answer.release();
  await Promise.all(others.map((other) => runs(other, runningBefore)));
  expect(streams).toHaveLength(2);
  const [first, ...rest] = others;
  if (first === undefined) throw new Error("there is no other tab");
  watched = { ...watched, page: first };
  await Promise.all(rest.map((other) => other.close()));
  await runs(first, runningBefore);
});

test("of thousands of rows those are there that are seen, the tokens of this replica among them, and the last one can be reached", async () => {
  const { page } = watched;
  const answer = await beginAnswer();
  await page.goto(`${service.operatorUrl}/#/running`);
  const table = page.getByRole("region", { name: "Running requests" });
  await table.getByText("1 of ").waitFor();
  await page.getByText("3,001 run.").waitFor();
  const rows = table.getByRole("rowheader");
  expect(await rows.count()).toBeLessThan(100);
  expect(await table.getByRole("table").getAttribute("aria-rowcount")).toBe("3002");
  // However far it is scrolled: what is drawn at once stays as little.
  const most = await table.evaluate(async (element) => {
    let found = 0;
    for (let at = 0; at <= element.scrollHeight; at += 10_000) {
      element.scrollTop = at;
      await new Promise((resolve) => requestAnimationFrame(resolve));
      found = Math.max(found, element.querySelectorAll("tbody th").length);
    }
    return found;
  });
  expect(most).toBeLessThan(100);
  await table.evaluate((element) => element.scrollTo(0, element.scrollHeight));
  await table.locator('[aria-rowindex="3002"]').waitFor();
  expect(await rows.count()).toBeLessThan(100);
  // The keyboard alone reaches the table and scrolls it.
  await table.focus();
  await page.keyboard.press("Home");
  await table.locator('[aria-rowindex="2"]').waitFor();
  await answer.release();
  await page.getByText("3,000 run.").waitFor();
});

test("while the service is away the console says so, and goes on when it is back", async () => {
  const { page } = watched;
  await page.goto(`${service.operatorUrl}/#/`);
  await runs(page, runningBefore);
  await page.route("**/api/v1/live", (route) => route.abort());
  await page.reload();
  await page.getByRole("alert").getByText("The service does not answer.").waitFor();
  await page.unroute("**/api/v1/live");
  await runs(page, runningBefore);
  expect([...watched.strangers, ...watched.complaints]).toEqual([]);
});

test("a page without live figures gives the connection back", async () => {
  const { page } = watched;
  await page.goto("about:blank");
  const opened = page.waitForRequest((request) => isLive(request));
  await page.goto(`${service.operatorUrl}/#/`);
  const stream = await opened;
  await runs(page, runningBefore);
  const ended = page.waitForEvent("requestfailed", (request) => request === stream);
  await page.evaluate(() => (location.hash = "#/audit"));
  await ended;
  await page.evaluate(() => (location.hash = "#/running"));
  await page.getByText("3,000 run.").waitFor();
});

test("a point of a plot that is looked at stays so while figures come anew, and in other colours", async () => {
  const page = await watched.page.context().newPage();
  await page.clock.install();
  await page.goto(service.operatorUrl);
  const plot = page.locator(".plot", { has: page.getByText("Requests", { exact: true }) });
  await plot.locator(".u-over").hover({ position: { x: 20, y: 50 } });
  const shown = plot.locator("figcaption");
  expect(await shown.locator(".plot-when").textContent()).toMatch(/^\d{4}-\d\d-\d\d /u);
  await shown.evaluate(keepTexts);
  const answer = await beginAnswer();
  await runs(page, runningBefore + 1);
  await answer.release();
  await runs(page, runningBefore);
  const last = plot.locator("tbody td").last();
  const before = await last.textContent();
  await page.clock.fastForward(30_000);
  await expect.poll(() => last.textContent()).not.toBe(before);
  const drawn = await plot.locator("canvas").evaluateHandle((canvas) => canvas);
  await page.emulateMedia({ colorScheme: "dark" });
  await page.waitForFunction((canvas) => !canvas.isConnected, drawn);
  // What follows from it is there after two frames.
  const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
  await page.evaluate(frame);
  await page.evaluate(frame);
  expect(await page.evaluate(() => (globalThis as { texts?: readonly string[] }).texts)).toEqual(
    [],
  );
  await page.close();
});

test("what another tab says of now is kept by one that does not know the rows yet", async () => {
  const own = await openPage(browser);
  await own.page.goto(`${service.operatorUrl}/healthz`);
  await own.page.evaluate(leadInItsPlace);
  const tab = await own.page.context().newPage();
  await tab.goto(service.operatorUrl);
  await tab.getByLabel("Operator's token").fill(token);
  await tab.getByRole("button", { name: "Sign in" }).click();
  await runs(tab, 7);
  await own.page.context().close();
});

function isLive(request: Request): boolean {
  return new URL(request.url()).pathname === "/api/v1/live";
}

/** Runs in the browser: what an element says after it has said something else. */
function keepTexts(element: Element): void {
  const texts: string[] = [];
  Object.assign(globalThis, { texts });
  new MutationObserver(() => texts.push(element.textContent)).observe(element, {
    characterData: true,
    childList: true,
    subtree: true,
  });
}

/** Runs in the browser: has the lock of the tab that leads, and tells one that asks what happens now before what runs. */
function leadInItsPlace(): Promise<void> {
  const name = "tributary-live";
  const channel = new BroadcastChannel(name);
  const now = {
    running: 7,
    replica: "rep_1",
    since: "2026-01-01T00:00:00.000Z",
    output_tokens_per_second: null,
    first_output: { requests: 0, p50_ms: null, p95_ms: null },
    failures: [],
    deployment: { ready: true, model: "m", reasons: {} },
    replicas: [],
  };
  const generations = { reset: true, running: 7, data: [], removed: [], output_tokens: {} };
  channel.addEventListener("message", ({ data }: MessageEvent<{ readonly type: string }>) => {
    if (data.type !== "hello") return;
    channel.postMessage({ type: "event", event: { name: "now", data: now } });
    channel.postMessage({ type: "event", event: { name: "generations", data: generations } });
  });
  return new Promise((resolve) => {
    void navigator.locks.request(name, () => {
      resolve();
      return new Promise(() => undefined);
    });
  });
}
