import { setTimeout as delay } from "node:timers/promises";
import type { BrowserContext, Page } from "playwright-core";
import { openRandom } from "../doubles/random.ts";

// Makes the lane hard for a developer who looks for races; what waits here waits in real time, and only when asked to.

const delayMsMax = Number(process.env["CONSOLE_DELAY_MS"] ?? 0);
/** How many times slower the scripts of pages are than the machine. */
export const slowness = Number(process.env["CONSOLE_SLOWNESS"] ?? 1);
const seed = Number(process.env["CONSOLE_SEED"] ?? Date.now() % 1_000_000);
const random = openRandom(seed);
const apiCall = /\/(?:api\/v1|v1)\//u;

if (delayMsMax > 0) console.log(`calls are delayed: CONSOLE_SEED=${String(seed)}`);

/** Delays each call of the context's pages by chance, and slows their scripts, as the variables of the environment say. */
export async function makeHostile(context: BrowserContext): Promise<void> {
  if (slowness > 1) {
    const slow = async (page: Page): Promise<void> => {
      const session = await context.newCDPSession(page);
      await session.send("Emulation.setCPUThrottlingRate", { rate: slowness });
    };
    context.on("page", (page) => void slow(page).catch(() => undefined));
  }
  if (delayMsMax > 0)
    await context.route(apiCall, async (route) => {
      await delay(random() * delayMsMax);
      // A page that has left asks no more.
      await route.continue().catch(() => undefined);
    });
}
