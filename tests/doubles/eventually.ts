import { setTimeout as sleep } from "node:timers/promises";

const everyMs = 10;
const givenUpMs = 100_000;

/**
 * The first value that is not null, asked for again and again, for programs that run outside of the test runner; tests
 * have `expect.poll`. Its time is real, and long enough that only what never comes is given up.
 */
export async function eventually<Value>(
  find: () => Value | null | Promise<Value | null>,
  what: string,
): Promise<Value> {
  const untilMs = performance.now() + givenUpMs;
  for (;;) {
    const found = await find();
    if (found !== null) return found;
    if (performance.now() > untilMs) throw new Error(`it never came: ${what}`);
    await sleep(everyMs);
  }
}
