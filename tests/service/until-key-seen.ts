import { expect } from "vitest";
import type { TestService } from "./start-service.ts";

/** Sends, and waits until the service has looked at the key: one request fewer is left of its rate from then on. */
export async function untilKeySeen(
  service: TestService,
  key: string,
  send: () => void,
): Promise<void> {
  const remaining = async (): Promise<number> =>
    (await service.ledger.authorize(key, false)).rate.remaining;
  const before = await remaining();
  send();
  await expect.poll(remaining).toBe(before - 1);
}
