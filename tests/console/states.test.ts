import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, test } from "vitest";
import { followFragment, openPage, startBrowser } from "./browser.ts";
import { ensureUsable } from "./look.ts";
import { inspectPages } from "./show-failures.ts";
import { type ConsoleService, startConsole } from "./start-console.ts";

// Every page without anything on it, while it waits, where its answers fail and where they are refused; on a telephone.

type Mode = "answered" | "waits" | "fails" | "refused";

let browser: Browser;
let service: ConsoleService;
let page: Page;
let token = "";
let mode: Mode = "answered";
/** What is answered in every mode. */
let passes = /\/session$/u;
/** Ids that places name. */
const ids: Record<string, string> = {};

beforeAll(async () => {
  [browser, service] = await Promise.all([startBrowser(), startConsole(null)]);
  ({ token } = await service.newOperator("owner"));
  ({ page } = await openPage(browser, { width: 390, dark: false }));
  await page.route("**/api/v1/**", (route) => {
    const { pathname } = new URL(route.request().url());
    if (mode === "answered" || passes.test(pathname)) return route.fallback();
    // It is never answered.
    if (mode === "waits") return Promise.resolve();
    const [status, code] = mode === "fails" ? [500, "internal"] : [403, "role_missing"];
    const detail = `An answer of a test: ${code}.`;
    return route.fulfill({ status, json: { status, code, detail, request_id: "req_test" } });
  });
});
afterEach(inspectPages);
afterAll(async () => {
  await page.unrouteAll({ behavior: "ignoreErrors" });
  await browser.close();
  await service[Symbol.asyncDispose]();
});

async function ask(path: string, body: object): Promise<Readonly<Record<string, string>>> {
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const order = { method: "POST", headers, body: JSON.stringify(body) };
  const answer = await fetch(`${service.operatorUrl}/api/v1${path}`, order);
  if (!answer.ok) throw new Error(`${path}: ${String(answer.status)} ${await answer.text()}`);
  return (await answer.json()) as Readonly<Record<string, string>>;
}

/** The address with the ids that `{name}` stands for. */
function placeOf(path: string): string {
  return `#/${path.replace(/\{(\w+)\}/u, (_all, name: string) => ids[name] ?? "")}`;
}

/** The document anew, so that nothing is left of the mode before. */
async function openIn(next: Mode, answered: RegExp): Promise<void> {
  mode = next;
  passes = answered;
  await page.goto("about:blank");
  await page.goto(`${service.operatorUrl}/#/nowhere`);
  await page.getByRole("heading", { name: "There is no such page" }).waitFor();
}

const session = /\/session$/u;
const sessionAndThings = /\/(?:session|accounts\/acct_\w+|keys\/key_\w+|webhooks)$/u;

/** Pages that ask for something; then parts of pages whose other part is answered. */
const asking: readonly (readonly [answered: RegExp, places: readonly string[]])[] = [
  [
    session,
    [
      "",
      "accounts",
      "accounts/{account}",
      "keys/{key}",
      "receipts",
      "receipts/{request}",
      "running",
      "refused",
      "prices",
      "operators",
      "webhooks",
      "audit",
      "settings",
    ],
  ],
  [
    sessionAndThings,
    [
      "accounts/{account}",
      "accounts/{account}?tab=entries",
      "accounts/{account}?tab=usage",
      "accounts/{account}?tab=receipts",
      "accounts/{account}?tab=statements",
      "keys/{key}",
      "webhooks?webhook={webhook}",
    ],
  ],
];

test("without a session that can be looked up the console says so, and a wrong token is refused", async () => {
  mode = "fails";
  passes = /^$/u;
  await page.goto(service.operatorUrl);
  await page.getByRole("heading", { name: "Could not load the console" }).waitFor();
  await ensureUsable(page, "failed session");
  mode = "answered";
  await page.getByRole("button", { name: "Try again" }).click();
  await page.getByLabel("Operator's token").fill("trop_wrong_token");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.locator(".field .error").waitFor();
  await ensureUsable(page, "wrong token");
  await page.getByLabel("Operator's token").fill(token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "Overview" }).waitFor();
});

/** What an empty page says; the account is made after the first ones. */
const emptyPages: readonly (readonly [place: string, words: string])[] = [
  ["", "No request ended in this time"],
  ["accounts", "There is no account yet"],
  ["receipts", "No request yet"],
  ["receipts?label=none", "No receipt is like that"],
  ["running", "Nothing runs at the moment"],
  ["refused", "Nothing was refused, and nothing failed"],
  ["webhooks", "There is no webhook"],
  ["audit?action=none", "No change is like that"],
  ["prices", "default"],
  ["operators", "Operators"],
  ["settings", "Settings"],
  ["playground", "Playground"],
  ["accounts/acct_x", "Could not load the account"],
  ["nowhere", "There is no such page"],
];
const emptyAccount: readonly (readonly [place: string, words: string])[] = [
  ["accounts?search=none", "No account is like that"],
  ["accounts/{account}", "This account has no key"],
  ["accounts/{account}?tab=entries", "Nothing has moved yet"],
  ["accounts/{account}?tab=usage", "No request of this account ended in this time"],
  ["accounts/{account}?tab=receipts", "No request yet"],
  ["accounts/{account}?tab=statements", "No request ended in this month"],
  ["accounts/{account}?tab=settings", "Grant"],
];

async function lookAt(by: Page, places: typeof emptyPages): Promise<void> {
  for (const [place, words] of places) {
    await by.evaluate(followFragment, placeOf(place));
    await by.getByRole("heading", { name: words, exact: true }).first().waitFor();
    await by.waitForFunction(() => document.querySelector(".state-loading") === null);
    await ensureUsable(by, place);
  }
}

test("empty pages say what to do next", async () => {
  await openIn("answered", session);
  await lookAt(page, emptyPages);
  ids["account"] = (await ask("/accounts", { name: "bare" }))["id"] ?? "";
  await lookAt(page, emptyAccount);
});

test("a page that waits, that fails or that is refused says so, whole or in a part", async () => {
  const key = await ask(`/accounts/${ids["account"] ?? ""}/keys`, { name: "web" });
  const webhook = await ask("/webhooks", { url: "http://127.0.0.1:9/" });
  Object.assign(ids, { key: key["id"], webhook: webhook["id"], request: "req_none" });
  for (const [answered, places] of asking)
    for (const next of ["waits", "fails", "refused"] as const) {
      await openIn(next, answered);
      for (const place of places) {
        await page.evaluate(followFragment, placeOf(place));
        await waitForState(page, next, "Not with your role");
        await ensureUsable(page, `${place}, ${next}`);
      }
    }
});

/** Waits until a page waits, or says what failed or was refused; it waits for that no longer then, in any part. */
async function waitForState(by: Page, state: Mode, refused: string): Promise<void> {
  if (state === "waits") return by.locator("main .state-loading").first().waitFor();
  const words = state === "fails" ? "Try again" : refused;
  await by.locator("main [role=alert]").getByText(words).first().waitFor();
  await by.waitForFunction(() => document.querySelector(".state-loading") === null);
}

test("what failed is asked for again by its button, and a page that was shown stays with what is newer missing", async () => {
  await page.clock.install();
  await openIn("fails", session);
  await page.evaluate(followFragment, "#/accounts");
  await page.getByRole("heading", { name: "Could not load accounts" }).waitFor();
  mode = "answered";
  await page.getByRole("button", { name: "Try again" }).click();
  await page.getByRole("link", { name: "bare" }).click();
  await page.getByRole("heading", { name: "bare" }).waitFor();
  await page.evaluate(followFragment, "#/settings");
  await page.getByText("TRIBUTARY_PORT").first().waitFor();
  // It asks again every few seconds.
  mode = "fails";
  await page.clock.fastForward(10_000);
  await page.getByText("What is shown is older.").first().waitFor();
  await ensureUsable(page, "settings, older");
  mode = "answered";
});

test("the pages of callers are empty, wait, fail and are refused as operators' are", async () => {
  const { secret = "" } = await ask(`/accounts/${ids["account"] ?? ""}/keys`, { name: "caller" });
  const scopes = ["generate"];
  const blind = await ask(`/accounts/${ids["account"] ?? ""}/keys`, { name: "blind", scopes });
  const caller = (await openPage(browser, { width: 390, dark: false })).page;
  await caller.route(/\/(?:account|receipts)(?:[/?].*)?$/u, (route) => {
    if (mode === "answered") return route.fallback();
    if (mode === "waits") return Promise.resolve();
    const error = { message: "An answer of a test.", type: "server_error", code: "internal" };
    return route.fulfill({ status: 500, json: { error } });
  });
  const enter = async (key: string): Promise<void> => {
    await caller.goto("about:blank");
    await caller.goto(`${service.url}/#/nowhere`);
    await caller.getByLabel("API key").fill(key);
    await caller.getByRole("button", { name: "Show the account" }).click();
    await caller.getByRole("heading", { name: "There is no such page" }).waitFor();
  };
  mode = "answered";
  await enter(secret);
  await ensureUsable(caller, "nowhere");
  await lookAt(caller, [
    ["", "No request ended in this time"],
    ["receipts", "No request yet"],
    ["receipts?label=none", "No receipt is like that"],
    ["receipts/req_none", "Could not load the receipt"],
    ["statements", "No request ended in this month"],
    ["playground", "Playground"],
    ["clients", "Clients"],
  ]);
  for (const next of ["waits", "fails", "refused"] as const) {
    mode = next === "refused" ? "answered" : next;
    // One that may generate and not look.
    await enter((next === "refused" ? blind["secret"] : secret) ?? "");
    for (const place of ["", "receipts", "receipts/req_none", "statements"]) {
      await caller.evaluate(followFragment, `#/${place}`);
      await waitForState(caller, next, "Not allowed");
      await ensureUsable(caller, `callers' ${place}, ${next}`);
    }
  }
  mode = "answered";
  await caller.unrouteAll({ behavior: "ignoreErrors" });
  await caller.context().close();
});
