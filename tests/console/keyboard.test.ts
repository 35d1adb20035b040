import type { Browser, Locator, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { openPage, startBrowser, visitPlace } from "./browser.ts";
import { showFailure } from "./show-failures.ts";
import { type ConsoleService, startConsole } from "./start-console.ts";

// Every dialog by the keyboard alone: opened, walked through, left in both ways, with the focus back where it was.

const tabsMax = 40;

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
  const account = await ask("/accounts", { name: "plain", credit: "10" });
  const granted = await ask("/accounts", { name: "granted" });
  const grant = { amount: "1", every: "month", timezone: "UTC", carry_over: false };
  await ask(`/accounts/${granted.id}`, { grant }, "PATCH");
  const key = await ask(`/accounts/${account.id}/keys`, { name: "web" });
  const later = `${String(new Date().getUTCFullYear() + 2)}-01-01T00:00:00Z`;
  const prices = [
    { input: "1", output: "2" },
    { input: "2", output: "3", effective_from: later },
  ];
  await ask("/price_lists", { name: "partners", prices });
  await ask("/webhooks", { url: "http://127.0.0.1:9/" });
  const answer = await fetch(`${service.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key.secret ?? ""}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "m", messages: [{ role: "user", content: "Hello" }] }),
  });
  await answer.text();
  ids["account"] = account.id;
  ids["granted"] = granted.id;
  ids["key"] = key.id;
  ids["request"] = answer.headers.get("x-request-id") ?? "";
  await page.goto(service.operatorUrl);
  await page.getByLabel("Operator's token").fill(token);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Overview" }).waitFor();
});
afterEach(showFailure);
afterAll(async () => {
  await browser.close();
  await service[Symbol.asyncDispose]();
});

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
  ["accounts/{account}?tab=settings", ["Change the name, prices and more", "Change the limits"]],
  ["accounts/{granted}?tab=settings", ["Change the grant", "Stop the grant"]],
  ["keys/{key}", ["Change the key web", "Revoke the key web"]],
  ["receipts/{request}", ["Refund"]],
  ["prices", ["New price list", "Add a price to partners", /^Remove the price from /]],
  ["operators", ["New operator", "Revoke the operator operator 2"]],
  ["webhooks", ["New webhook", /^Change the webhook of /, /^Rotate the secret of /]],
  ["webhooks", [/^Pause the webhook of /, /^Delete the webhook of /]],
];

test.each(dialogs)("the dialogs of %s (%#)", async (place, openers) => {
  const path = place.replace(/\{(\w+)\}/u, (_all, name: string) => ids[name] ?? "");
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
