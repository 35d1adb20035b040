import axe from "axe-core";
import { type Browser, chromium, type Page } from "playwright-core";

/** Debian's Chromium; another one is named by this variable. */
const program = process.env["CHROMIUM"] ?? "/usr/bin/chromium";

/** What must not happen while a page is looked at. */
export interface Watched {
  readonly page: Page;
  /** Requests to another address than the page's own. */
  readonly strangers: readonly string[];
  /** What the browser complained about: errors of scripts, and what the content security policy stopped. */
  readonly complaints: readonly string[];
}

/** Starts the browser. */
export function startBrowser(): Promise<Browser> {
  return chromium.launch({ executablePath: program });
}

/** A page in a profile of its own, watched from its first request on. */
export async function openPage(
  browser: Browser,
  look: { readonly width: number; readonly dark: boolean } = { width: 1440, dark: false },
): Promise<Watched> {
  const context = await browser.newContext({
    viewport: { width: look.width, height: look.width < 600 ? 844 : 900 },
    colorScheme: look.dark ? "dark" : "light",
    reducedMotion: "reduce",
  });
  const page = await context.newPage();
  const strangers: string[] = [];
  const complaints: string[] = [];
  page.on("request", (request) => {
    const own = page.url() === "about:blank" ? null : new URL(page.url()).origin;
    if (own !== null && new URL(request.url()).origin !== own && !request.isNavigationRequest())
      strangers.push(request.url());
  });
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("console", (message) => {
    // A refused request is an answer that the page shows.
    if (message.type() === "error" && !message.text().startsWith("Failed to load resource"))
      complaints.push(message.text());
  });
  return { page, strangers, complaints };
}

/** Opens a place of the console and waits until it shows what it asked for. */
export async function visitPlace(page: Page, address: string): Promise<void> {
  // Another document first: a change of the fragment alone would leave the heading of the place before for a moment.
  await page.goto("about:blank");
  await page.goto(address);
  await page.locator("main h1").waitFor();
  await page.waitForFunction(() => document.querySelector(".state-loading") === null);
}

/** What axe-core finds wrong, a line each. */
export async function findBarriers(page: Page): Promise<readonly string[]> {
  // By the debugger's way in: the page's policy lets no script in that is not its own. It stays until the next load.
  if (!(await page.evaluate(() => "axe" in globalThis))) await page.evaluate(axe.source);
  return page.evaluate(async () => {
    const run = (globalThis as unknown as { axe: { run(options: object): Promise<AxeResult> } })
      .axe;
    const { violations } = await run.run({
      runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
    });
    return violations.flatMap(({ id, nodes }) =>
      nodes.map(({ html, failureSummary }) => `${id}: ${html.slice(0, 160)} ${failureSummary}`),
    );
  });
}

interface AxeResult {
  readonly violations: readonly {
    readonly id: string;
    readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[];
  }[];
}
