import { DatabaseSync } from "node:sqlite";
import { describe, expect, it } from "vitest";
import { expectRefusal, shapeOf } from "./refusals.ts";
import { formats, startService, type TestService } from "./start-service.ts";

const [chat] = formats;

describe("a ledger that is broken", () => {
  it("is 500 for the caller, who hears nothing of the inside, and a cause in the log", async () => {
    await using service = await startService();
    using database = openFile(service);
    // No path of the service does this; it stands for any bug.
    database.exec("pragma foreign_keys = off; alter table reservation rename to misplaced");
    for (const { path, body } of formats) {
      const response = await service.post(path, body);
      const id = response.headers.get("x-request-id");
      const error = await expectRefusal(response, {
        code: "internal",
        shape: shapeOf(path),
        says: /Something went wrong inside the service. Try again./,
      });
      expect(JSON.stringify(error)).not.toMatch(/reservation|sqlite|table/i);
      const told = service.logLines.filter((line) => line.includes(`"requestId":"${String(id)}"`));
      expect(told.some((line) => line.includes("no such table"))).toBe(true);
    }
    database.exec("alter table misplaced rename to reservation");
    expect((await service.post(chat.path, chat.body)).status).toBe(200);
    expect((await service.settledCredit()).held).toBe(0n);
    expect(service.deployment.requests).toHaveLength(1);
  });
});

function openFile(service: TestService): DatabaseSync {
  if (service.config.database.kind !== "sqlite") throw new Error("there is no file");
  return new DatabaseSync(service.config.database.path);
}
