import { describe, expect, it } from "vitest";
import { limits } from "../../src/limits.ts";
import { openManualTimers } from "../doubles/manual-timers.ts";
import { expectPlainRefusal, shapeOf } from "./refusals.ts";
import { formats, post, startService, type TestService } from "./start-service.ts";

const [chat] = formats;
const wrongKey = (index: number): string =>
  `trib_unknown_${String(index)}_${"0123456789".repeat(4)}abc`;

/** Statuses of so many requests with wrong keys, a few at a time. */
async function sendWrong(
  service: TestService,
  count: number,
  headers: Readonly<Record<string, string>> = {},
): Promise<readonly number[]> {
  const statuses: number[] = [];
  let next = 0;
  async function some(): Promise<void> {
    while (next < count) {
      next += 1;
      const answer = await post(`${service.url}${chat.path}`, chat.body, {
        key: wrongKey(next),
        headers,
      });
      statuses.push(answer.status);
      await answer.arrayBuffer();
    }
  }
  await Promise.all(Array.from({ length: 8 }, some));
  return statuses;
}

const countOf = (statuses: readonly number[], status: number): number =>
  statuses.filter((one) => one === status).length;

function lines(service: TestService, event: string): readonly Record<string, unknown>[] {
  return service.logLines
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .filter((line) => line["event"] === event);
}

describe("wrong keys from one address", () => {
  it("are refused 429 beyond 20, fill no log, and cost a right key nothing", async () => {
    const telemetryTimers = openManualTimers();
    await using service = await startService({
      telemetryTimers,
      environment: { TRIBUTARY_LOG_LEVEL: "info" },
    });
    const header = { "x-forwarded-for": "198.51.100.1", forwarded: "for=198.51.100.1" };
    // Without a trusted proxy no header is anything but the word of whoever sends it.
    const statuses = [...(await sendWrong(service, 50)), ...(await sendWrong(service, 50, header))];
    expect([countOf(statuses, 401), countOf(statuses, 429)]).toEqual([limits.wrongKeysMax, 80]);
    for (const { body, path } of formats) {
      const answer = await service.post(path, body, { key: wrongKey(0) });
      const headers = answer.headers;
      expectPlainRefusal(
        { status: answer.status, headers, text: await answer.text() },
        { code: "too_many_wrong_keys", shape: shapeOf(path), says: /a right one is served/ },
      );
      expect(headers.get("x-should-retry")).toBe("false");
      const served = await service.post(path, body);
      expect(served.status).toBe(200);
      await served.arrayBuffer();
    }
    telemetryTimers.advance(60_000);
    await expect.poll(() => lines(service, "requests not shown")).toHaveLength(2);
    const shown = lines(service, "request").filter(({ failureCode }) => failureCode !== null);
    // One a second of each code; the clock stood still.
    expect(shown).toHaveLength(2);
    expect(shown.map(({ client }) => client)).toEqual(["127.0.0.1", "127.0.0.1"]);
    const sums = lines(service, "requests not shown").map(({ count }) => Number(count));
    expect(sums.reduce((sum, one) => sum + one, 0)).toBe(103 - 2);
    await service.gateway[Symbol.asyncDispose]();
    expect(lines(service, "wrong keys")).toMatchObject([
      { level: "warn", count: 83, addresses: 1, client: "127.0.0.1", clientCount: 83 },
    ]);
  });

  it("behind a trusted proxy are those of the address that it names, whatever stood there before", async () => {
    await using service = await startService({
      environment: { TRIBUTARY_TRUSTED_PROXIES: "127.0.0.1, ::1" },
    });
    const forwarded = (index: number, address: string): Record<string, string> => ({
      "x-forwarded-for": `203.0.113.${String(index)}, ${address}`,
      forwarded: `for=203.0.113.${String(index)}`,
    });
    for (let index = 0; index < limits.wrongKeysMax; index += 1)
      expect(await sendWrong(service, 1, forwarded(index, "198.51.100.1"))).toEqual([401]);
    expect(await sendWrong(service, 1, forwarded(99, "198.51.100.1"))).toEqual([429]);
    expect(await sendWrong(service, 1, forwarded(99, "198.51.100.2"))).toEqual([401]);
    expect(await sendWrong(service, 1)).toEqual([401]);
    const clients = lines(service, "request").map(({ client }) => client);
    expect(new Set(clients)).toEqual(new Set(["198.51.100.1", "198.51.100.2", "127.0.0.1"]));
  });
});
