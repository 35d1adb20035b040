import { DatabaseSync } from "node:sqlite";
import { describe, expect, it } from "vitest";
import { occupy } from "../service/occupy.ts";
import { expectRefusal } from "../service/refusals.ts";
import { formats, startService, type TestService } from "../service/start-service.ts";

const [chat, , messages] = formats;

describe("a ledger that cannot be reached", () => {
  it("is an overload with advice before anything is sent, and holds up no answer that runs", async () => {
    await using service = await startService();
    const before = await service.credit();
    const running = await occupy(service, [service.key]);
    const lock = lockLedger(service);
    try {
      // One is enough: each try waits for seconds, as the lock may be gone in a moment.
      const asked = service.post(messages.path, messages.body);
      expect((await fetch(`${service.url}/healthz`)).status).toBe(200);
      const startMs = performance.now();
      running.open();
      // The settlement has to wait for the store, its caller only for a quarter of a second.
      expect(await running.answers[0]).toContain("[DONE]");
      expect(performance.now() - startMs).toBeLessThan(1_500);
      await expectRefusal(await asked, {
        code: "overloaded",
        shape: "messages",
        says: /cannot reach its ledger.*Try again/,
      });
      expect(service.deployment.requests).toHaveLength(1);
    } finally {
      lock.close();
    }
    await expect.poll(async () => (await service.credit()).held, { timeout: 5_000 }).toBe(0n);
    expect((await service.credit()).balance).toBeLessThan(before.balance);
    expect((await service.post(chat.path, chat.body)).status).toBe(200);
  }, 30_000);
});

/** What a backup or a forgotten shell in another process does to the file. */
function lockLedger(service: TestService): DatabaseSync {
  const database = openFile(service);
  database.exec("begin immediate");
  return database;
}

function openFile(service: TestService): DatabaseSync {
  if (service.config.database.kind !== "sqlite") throw new Error("there is no file");
  return new DatabaseSync(service.config.database.path);
}
