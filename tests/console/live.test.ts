import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { openPage, startBrowser, type Watched } from "./browser.ts";
import { showFailure } from "./show-failures.ts";
import { type ConsoleService, startConsole } from "./start-console.ts";

// What happens now, in several tabs of one browser, and thousands of rows of it.

const runningBefore = 3_000;

let browser: Browser;
let service: ConsoleService;
let watched: Watched;
let secret = "";
/** Live streams that tabs have opened, each with the number of its tab. */
const streams: number[] = [];

beforeAll(async () => {
  const size = { accounts: 20, keys: 60, receipts: 60, running: runningBefore };
  [browser, service] = await Promise.all([startBrowser(), startConsole(size)]);
  const [{ token }, account] = await Promise.all([
    service.newOperator("billing"),
    service.command("account", "create", "live", "--credit", "10"),
  ]);
  const key = await service.command("key", "create", account["id"] ?? "", "--name", "live");
  secret = key["key"] ?? "";
  watched = await openPage(browser);
  await watched.page.goto(service.operatorUrl);
  await watched.page.getByLabel("Operator's token").fill(token);
  watchStreams(watched.page, 0);
  await watched.page.getByRole("button", { name: "Sign in" }).click();
  await watched.page.getByText("Running requests").waitFor();
});
afterEach(showFailure);
afterAll(async () => {
  await browser.close();
  await service[Symbol.asyncDispose]();
});

function watchStreams(page: Page, tab: number): void {
  page.on("request", (request) => {
    if (new URL(request.url()).pathname === "/api/v1/live") streams.push(tab);
  });
}

/** Begins an answer that goes on until it is released. */
async function beginAnswer(): Promise<{ release(): Promise<void> }> {
  const { promise: held, resolve } = Promise.withResolvers<undefined>();
  const choices = [{ index: 0, delta: { content: "Hel" }, finish_reason: null }];
  const begin = { id: "c", object: "chat.completion.chunk", choices };
  service.deployment.answerNext(
    { type: "write", bytes: `data: ${JSON.stringify(begin)}\n\n` },
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
