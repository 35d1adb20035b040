import { join } from "node:path";
import type { Page } from "playwright-core";
import { expect } from "vitest";
import { findBarriers, measureOverflow } from "./browser.ts";
import { pictures } from "./show-failures.ts";

/** A size that a page is looked at in; `larger`: as wide as a page of this size is at 200 %. */
export interface Size {
  readonly width: number;
  readonly height: number;
  readonly larger: number | null;
}

/** Wide, where twice as large is half as wide; and as a telephone has it. */
export const sizes: readonly Size[] = [
  { width: 1440, height: 900, larger: 720 },
  { width: 390, height: 844, larger: null },
];

/** Finds nothing in the way of those who use what a page shows at its present size, light and dark. */
export async function ensureUsable(page: Page, place = ""): Promise<void> {
  for (const scheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme: scheme });
    // Nothing but tables, which scroll by themselves, is wider than the screen.
    expect(await page.evaluate(measureOverflow), place).toBeLessThanOrEqual(0);
    const barriers = await findBarriers(page, scheme === "light" ? "all" : "colours");
    expect(barriers, `${place}, ${scheme}`).toEqual([]);
  }
  await page.emulateMedia({ colorScheme: "light" });
}

/** Looks at what a page shows, light and dark, and keeps a picture of each; at 200 % everything is still there. */
export async function look(
  page: Page,
  place: string,
  { height, larger, width }: Size,
): Promise<void> {
  await page.setViewportSize({ width, height });
  await ensureUsable(page, place);
  for (const scheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme: scheme });
    const name = `${place}-${String(width)}-${scheme}.png`;
    await page.screenshot({ path: join(pictures, name), fullPage: true });
  }
  await page.emulateMedia({ colorScheme: "light" });
  if (larger === null) return;
  const shown = await page.evaluate(listShown);
  await page.setViewportSize({ width: larger, height });
  expect(await page.evaluate(measureOverflow), `${place}, at 200 %`).toBeLessThanOrEqual(0);
  expect(await page.evaluate(listShown), `${place}, at 200 %`).toEqual(shown);
  await page.setViewportSize({ width, height });
}

/** Runs in the browser: the texts of the page that are shown and not cut off, but for times that go on. */
function listShown(): readonly string[] {
  const all = document.querySelectorAll<HTMLElement>("main *:not(time, script, style, option)");
  return [...all].flatMap((element) => {
    const own = [...element.childNodes].filter((node) => node.nodeType === Node.TEXT_NODE);
    const text = own
      .map(({ textContent }) => textContent ?? "")
      .join("")
      .trim();
    if (text === "" || !element.checkVisibility()) return [];
    const { overflowX } = getComputedStyle(element);
    const isCut = overflowX === "hidden" && element.scrollWidth > element.clientWidth + 1;
    return isCut && element.title === "" && !element.matches(".unseen")
      ? [`cut off: ${text}`]
      : [text];
  });
}

/** The processor's time that the thread of the page's scripts and layout took, up to each call. */
export async function watchWork(page: Page): Promise<() => Promise<number>> {
  const session = await page.context().newCDPSession(page);
  await session.send("Performance.enable", { timeDomain: "threadTicks" });
  return async () => {
    const { metrics } = await session.send("Performance.getMetrics");
    return 1_000 * (metrics.find(({ name }) => name === "TaskDuration")?.value ?? NaN);
  };
}
