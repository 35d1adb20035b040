import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { expect, type TestContext } from "vitest";
import { openPages } from "./browser.ts";

/** What the pages look like is kept here; it is for people to look at, and is not in the repository. */
export const pictures = join(import.meta.dirname, "../../coverage/console");

mkdirSync(pictures, { recursive: true });

/**
 * After each test: no page asked another host or met an error or what its policy stops, in whatever flow; and a test that
 * failed on another machine has to say there what its pages showed.
 */
export async function inspectPages({ task }: TestContext): Promise<void> {
  const strays = openPages().flatMap(({ complaints, strangers }) => [...strangers, ...complaints]);
  if (task.result?.state !== "fail") return expect(strays).toEqual([]);
  for (const [number, { calls, complaints, page }] of openPages().entries()) {
    const name = task.name.replaceAll(/\W+/gu, "-").slice(0, 60);
    const picture = join(pictures, `failed-${name}-${String(number)}.png`);
    await page.screenshot({ path: picture, timeout: 10_000 }).catch(() => undefined);
    const text = await page
      .locator("body")
      .innerText({ timeout: 5_000 })
      .catch((error: unknown) => String(error));
    console.error(
      [
        `page ${String(number)} of "${task.name}": ${page.url()}`,
        `picture: ${picture}`,
        ...complaints.map((line) => `complaint: ${line}`),
        ...calls.map((line) => `call: ${line}`),
        `shown: ${text.slice(0, 2_000)}`,
      ].join("\n"),
    );
  }
}
