import axe from "axe-core";
import { type Browser, chromium, type Page } from "playwright-core";
import { makeHostile } from "./hostile.ts";

/** Debian's Chromium; another one is named by this variable. */
const program = process.env["CHROMIUM"] ?? "/usr/bin/chromium";
/** Nothing that a test waits for takes so long, on whatever machine. */
const patienceMs = 90_000;
/** Calls of a page that are told where a test fails. */
const callsKept = 30;

/** What must not happen while a page is looked at. */
export interface Watched {
  readonly page: Page;
  /** Requests to another address than the page's own. */
  readonly strangers: readonly string[];
  /** What the browser complained about: errors of scripts, and what the content security policy stopped. */
  readonly complaints: readonly string[];
  /** The last calls of the page, with what was answered. */
  readonly calls: readonly string[];
}

const opened = new Set<Watched>();

/** The pages that are open, for what a test that failed tells. */
export function openPages(): readonly Watched[] {
  return [...opened].filter(({ page }) => !page.isClosed());
}

/** Starts the browser. */
export function startBrowser(): Promise<Browser> {
  return chromium.launch({ executablePath: program, timeout: patienceMs });
}

/** A page in a profile of its own, watched from its first request on. */
export async function openPage(
  browser: Browser,
  look: {
    readonly width: number;
    readonly dark: boolean;
    /** Of the person; absent: UTC, so that times that a test types are the same wherever it runs. */
    readonly zone?: string;
  } = { width: 1440, dark: false },
): Promise<Watched> {
  const context = await browser.newContext({
    viewport: { width: look.width, height: look.width < 600 ? 844 : 900 },
    colorScheme: look.dark ? "dark" : "light",
    reducedMotion: "reduce",
    timezoneId: look.zone ?? "UTC",
  });
  context.setDefaultTimeout(patienceMs);
  await makeHostile(context);
  await context.addInitScript(keepToasts);
  return watch(await context.newPage());
}

function watch(page: Page): Watched {
  const strangers: string[] = [];
  const complaints: string[] = [];
  const calls: string[] = [];
  page.on("request", (request) => {
    const own = page.url() === "about:blank" ? null : new URL(page.url()).origin;
    if (own !== null && new URL(request.url()).origin !== own && !request.isNavigationRequest())
      strangers.push(request.url());
  });
  const keep = (line: string): void => {
    calls.push(line);
    if (calls.length > callsKept) calls.shift();
  };
  page.on("response", (response) =>
    keep(`${String(response.status())} ${response.request().method()} ${response.url()}`),
  );
  page.on("requestfailed", (request) =>
    keep(`${request.failure()?.errorText ?? "failed"} ${request.method()} ${request.url()}`),
  );
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("console", (message) => {
    // A refused request is an answer that the page shows.
    if (message.type() === "error" && !message.text().startsWith("Failed to load resource"))
      complaints.push(message.text());
  });
  const watched = { page, strangers, complaints, calls };
  opened.add(watched);
  page.on("close", () => opened.delete(watched));
  return watched;
}

/** Opens a place of the console and waits until it shows what it asked for. */
export async function visitPlace(page: Page, address: string): Promise<void> {
  // Another document first: a change of the fragment alone would leave the heading of the place before for a moment.
  await page.goto("about:blank");
  await page.goto(address);
  await page.locator("main h1").waitFor();
  // Now and then: a look at every frame would be counted as work of the page.
  const loaded = () =>
    document.querySelector(".state-loading") === null &&
    ![...document.querySelectorAll("main *")].some(({ textContent }) => textContent.trim() === "…");
  await page.waitForFunction(loaded, null, { polling: 200 });
}

/** Runs in the browser before each page: what is said for a few seconds is kept, so that a slow test misses nothing. */
function keepToasts(): void {
  const said: string[] = [];
  Object.assign(globalThis, { said });
  const keep = (node: Node): void => {
    if (node instanceof Element && node.matches(".toast")) said.push(node.textContent);
  };
  new MutationObserver((changes) => {
    for (const { addedNodes } of changes) addedNodes.forEach(keep);
  }).observe(document, { childList: true, subtree: true });
}

/** Waits until the page has said something for a few seconds, or finds that it did. */
export async function waitForToast(page: Page, text: string): Promise<void> {
  await page.waitForFunction(
    (wanted) => (globalThis as unknown as { said: readonly string[] }).said.includes(wanted),
    text,
  );
}

/** Runs in the browser: goes to another place of the same document, and waits until that is drawn. */
export async function followFragment(fragment: string): Promise<void> {
  if (location.hash === fragment) return;
  const gone = new Promise((resolve) => addEventListener("hashchange", resolve, { once: true }));
  location.hash = fragment;
  await gone;
  await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
}

/** Runs in the browser: waits until what is there is drawn. */
export async function drawTwice(): Promise<void> {
  await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
}

interface Shift {
  readonly value: number;
  readonly startTime: number;
  readonly hadRecentInput: boolean;
}

/** Runs in the browser: what came over the network, and how much has moved by itself since a time. */
export async function measureLoad(
  sinceMs: number,
): Promise<{ readonly bytes: number; readonly shift: number }> {
  const shift = await new Promise<number>((resolve) => {
    new PerformanceObserver((entries) => {
      const moved = (entries.getEntries() as unknown as readonly Shift[]).filter(
        ({ hadRecentInput, startTime }) => startTime >= sinceMs && !hadRecentInput,
      );
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
export async function measureOverflow(): Promise<number> {
  await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
  return document.documentElement.scrollWidth - innerWidth;
}

/** What axe-core finds wrong, a line each; `colours`: of what a look in other colours can change. */
export async function findBarriers(
  page: Page,
  what: "all" | "colours" = "all",
): Promise<readonly string[]> {
  // By the debugger's way in: the page's policy lets no script in that is not its own. It stays until the next load.
  if (!(await page.evaluate(() => "axe" in globalThis))) await page.evaluate(axe.source);
  return page.evaluate(async (rules) => {
    const run = (globalThis as unknown as { axe: { run(options: object): Promise<AxeResult> } })
      .axe;
    const { violations } = await run.run({ runOnly: rules, resultTypes: ["violations"] });
    return violations.flatMap(({ id, nodes }) =>
      nodes.map(({ html, failureSummary }) => `${id}: ${html.slice(0, 160)} ${failureSummary}`),
    );
  }, axeRules[what]);
}

const axeRules = {
  all: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
  colours: ["color-contrast"],
};

interface AxeResult {
  readonly violations: readonly {
    readonly id: string;
    readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[];
  }[];
}
