import type { Browser, Locator, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { followFragment, openPage, startBrowser, visitPlace } from "./browser.ts";
import { ensureUsable, sizes } from "./look.ts";
import { inspectPages } from "./show-failures.ts";
import { chunk, type ConsoleService, startConsole } from "./start-console.ts";

// Every dialog by the keyboard alone: opened, walked through, left in both ways, with the focus back where it was.

const tabsMax = 40;

let browser: Browser;
let service: ConsoleService;
let page: Page;
let token = "";
/** Of a key that pays. */
let secret = "";
/** An answer that goes on, once it has begun. */
let running: Response | null = null;
/** Ids that places name. */
const ids: Record<string, string> = {};

beforeAll(async () => {
  [browser, service] = await Promise.all([startBrowser(), startConsole(null)]);
  ({ page } = await openPage(browser));
  ({ token } = await service.newOperator("owner"));
  await service.newOperator("viewer");
  const account = await ask("/accounts", { name: "plain", credit: "10" });
  const granted = await ask("/accounts", { name: "granted" });
  const grant = { amount: "1", every: "month", timezone: "UTC", carry_over: false };
  await ask(`/accounts/${granted.id}`, { grant }, "PATCH");
  const key = await ask(`/accounts/${account.id}/keys`, { name: "web" });
  const paused = await ask(`/accounts/${granted.id}/keys`, { name: "rests" });
  await ask(`/keys/${paused.id}`, { status: "paused" }, "PATCH");
  const disabled = await ask("/accounts", { name: "disabled" });
  await ask(`/accounts/${disabled.id}`, { status: "disabled" }, "PATCH");
  const later = `${String(new Date().getUTCFullYear() + 2)}-01-01T00:00:00Z`;
  const prices = [
    { input: "1", output: "2" },
    { input: "2", output: "3", effective_from: later },
  ];
  await ask("/price_lists", { name: "partners", prices });
  await ask("/webhooks", { url: "http://127.0.0.1:9/" });
  const rests = await ask("/webhooks", { url: "http://127.0.0.1:9/rests" });
  await ask(`/webhooks/${rests.id}`, { status: "paused" }, "PATCH");
  secret = key.secret ?? "";
  const answer = await generate(false);
  await answer.text();
  ids["account"] = account.id;
  ids["granted"] = granted.id;
  ids["disabled"] = disabled.id;
  ids["key"] = key.id;
  ids["request"] = answer.headers.get("x-request-id") ?? "";
  await page.goto(service.operatorUrl);
  await page.getByLabel("Operator's token").fill(token);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Overview" }).waitFor();
});
afterEach(inspectPages);
afterAll(async () => {
  await browser.close();
  await running?.body?.cancel();
  await service[Symbol.asyncDispose]();
});

function generate(stream: boolean): Promise<Response> {
  return fetch(`${service.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${secret}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "m", messages: [{ role: "user", content: "Hello" }], stream }),
  });
}

/** Only when it is needed: a deployment that is silent for minutes is given up. */
async function beginEndlessAnswer(): Promise<void> {
  service.deployment.answerNext(
    { type: "write", bytes: chunk({ content: "Endless" }) },
    { type: "hang" },
  );
  running = await generate(true);
}

async function ask(
  path: string,
  body: object,
  method = "POST",
): Promise<{ readonly id: string; readonly secret?: string }> {
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const order = { method, headers, body: JSON.stringify(body) };
  const answer = await fetch(`${service.operatorUrl}/api/v1${path}`, order);
  if (!answer.ok) throw new Error(`${path}: ${String(answer.status)} ${await answer.text()}`);
  return (await answer.json()) as { readonly id: string };
}

/** By place what opens a dialog there; `{name}` stands for an id. */
const dialogs: readonly (readonly [place: string, openers: readonly (string | RegExp)[]])[] = [
  ["accounts", ["New account"]],
  ["accounts/{account}", ["Top up", "Take back", "Disable", "New key"]],
  ["accounts/{account}", ["Budget the key web", "Pause the key web", "Rotate the key web"]],
  ["accounts/{disabled}", ["Enable"]],
  ["accounts/{account}?tab=settings", ["Change the name, prices and more", "Change the limits"]],
  ["accounts/{account}?tab=settings", ["Set a grant"]],
  ["accounts/{granted}?tab=settings", ["Change the grant", "Stop the grant"]],
  ["accounts/{granted}", ["Resume the key rests"]],
  ["keys/{key}", ["Change the key web", "Revoke the key web"]],
  ["receipts/{request}", ["Refund"]],
  ["prices", ["New price list", "Add a price to partners", /^Remove the price from /]],
  ["operators", ["New operator", "Revoke the operator operator 2"]],
  ["webhooks", ["New webhook", /^Change the webhook of .*:9\/$/, /^Rotate secret of .*:9\/$/]],
  ["webhooks", [/^Pause the webhook of /, /^Delete the webhook of .*:9\/$/]],
  ["webhooks", [/^Resume the webhook of /]],
  ["running", [/^Cancel the request /]],
  ["settings", [/^Drain the replica /]],
];

test.each(dialogs)("the dialogs of %s (%#)", async (place, openers) => {
  const path = place.replace(/\{(\w+)\}/u, (_all, name: string) => ids[name] ?? "");
  if (place === "running") await beginEndlessAnswer();
  await visitPlace(page, `${service.operatorUrl}/#/${path}`);
  for (const name of openers) {
    const opener = page.getByRole("button", { name, exact: true });
    const dialog = page.getByRole("dialog");
    for (const leave of ["Escape", "Cancel"]) {
      await opener.focus();
      await page.keyboard.press("Enter");
      await dialog.waitFor();
      // What is typed goes into the dialog from the first key on.
      expect(await has(dialog, ":focus"), `${String(name)}, opened`).toBe(true);
      if (leave === "Escape") await lookAtDialog(String(name));
      await tabTo(dialog.locator("button[type=submit]"));
      if (leave === "Escape") await page.keyboard.press("Escape");
      else {
        await page.keyboard.press("Shift+Tab");
        await page.keyboard.press("Enter");
      }
      await dialog.waitFor({ state: "detached" });
      const back = await opener.evaluate((element) => element === document.activeElement);
      expect(back, `${String(name)}, left by ${leave}`).toBe(true);
    }
  }
});

/** Wide, and as a telephone has it. */
async function lookAtDialog(name: string): Promise<void> {
  const before = page.viewportSize();
  for (const { height, width } of sizes) {
    await page.setViewportSize({ width, height });
    await ensureUsable(page, `${name} at ${String(width)}`);
    const box = await page.getByRole("dialog").boundingBox();
    expect(box?.x, name).toBeGreaterThanOrEqual(0);
    expect((box?.x ?? 0) + (box?.width ?? width), name).toBeLessThanOrEqual(width);
  }
  if (before !== null) await page.setViewportSize(before);
}

/** Places without a dialog, too: their links, fields and buttons. */
const places = [
  ...new Set(dialogs.map(([place]) => place)),
  ...["", "receipts", "playground", "audit", "accounts/{account}?tab=entries"],
  ...["accounts/{account}?tab=usage", "accounts/{account}?tab=statements"],
];

test.each(places)(
  "the tabulator comes to all that can be used on %s, and shows it",
  async (place) => {
    const path = place.replace(/\{(\w+)\}/u, (_all, name: string) => ids[name] ?? "");
    await visitPlace(page, `${service.operatorUrl}/#/${path}`);
    await goAround(page, place);
  },
);

test("callers come by the keyboard alone to their pages, and to all that can be used there", async () => {
  const caller = (await openPage(browser)).page;
  await caller.goto(service.url);
  await caller.getByLabel("API key").waitFor();
  await caller.keyboard.type(secret);
  await caller.keyboard.press("Enter");
  await caller.getByRole("heading", { name: "plain" }).waitFor();
  const request = ids["request"] ?? "";
  for (const place of [
    "",
    "receipts",
    `receipts/${request}`,
    "statements",
    "playground",
    "clients",
  ]) {
    await caller.evaluate(followFragment, `#/${place}`);
    await caller.waitForFunction(() => document.querySelector(".state-loading") === null);
    await goAround(caller, `callers' ${place}`);
  }
  await caller.context().close();
});

/** Once around with the tabulator: all that can be used on the page has the focus once, and shows it. */
async function goAround(by: Page, place: string): Promise<void> {
  await by.evaluate(watchFocus);
  const usable = await by.evaluate(countUnreached);
  expect(usable.length, place).toBeGreaterThan(6);
  // The document itself comes after the last one.
  for (let pressed = 0; pressed < 2 * usable.length + 10; pressed += 1) {
    await by.keyboard.press("Tab");
    if (pressed >= usable.length && (await by.evaluate(countUnreached)).length === 0) break;
  }
  expect(await by.evaluate(countUnreached), place).toEqual([]);
  expect(await by.evaluate(listUnseen), place).toEqual([]);
}

/** Runs in the browser: keeps what gets the focus, and whether that can be seen. */
function watchFocus(): void {
  const reached = new Set<Element>();
  const unseen: string[] = [];
  Object.assign(globalThis, { reached, unseen });
  addEventListener("focusin", ({ target }) => {
    if (!(target instanceof HTMLElement)) return;
    reached.add(target);
    const { boxShadow, outlineStyle } = getComputedStyle(target);
    if (outlineStyle === "none" && boxShadow === "none")
      unseen.push(target.outerHTML.slice(0, 160));
  });
}

/** Runs in the browser: what can be used, is shown, and has not had the focus since `watchFocus`. */
function countUnreached(): readonly string[] {
  const { reached } = globalThis as unknown as { readonly reached: ReadonlySet<Element> };
  const all = document.querySelectorAll<HTMLElement>(
    "a[href], button, input, select, textarea, summary, [tabindex='0']",
  );
  return [...all]
    .filter((element) => element.checkVisibility() && !element.matches(":disabled"))
    .filter((element) => !reached.has(element))
    .map((element) => element.outerHTML.slice(0, 160));
}

/** Runs in the browser: what had the focus and did not show it. */
function listUnseen(): readonly string[] {
  return (globalThis as unknown as { readonly unseen: readonly string[] }).unseen;
}

function has(place: Locator, selector: string): Promise<boolean> {
  return place.evaluate((element, wanted) => element.querySelector(wanted) !== null, selector);
}

/** Presses the tabulator until the element has the focus. */
async function tabTo(element: Locator): Promise<void> {
  for (let pressed = 0; pressed < tabsMax; pressed += 1) {
    if (await element.evaluate((one) => one === document.activeElement)) return;
    await page.keyboard.press("Tab");
  }
  throw new Error(`the tabulator does not come to ${element.toString()}`);
}
