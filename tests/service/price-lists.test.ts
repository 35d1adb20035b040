import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openGateway } from "../../src/gateway.ts";
import { openLog } from "../../src/telemetry/log.ts";
import { openTelemetry } from "../../src/telemetry/telemetry.ts";
import { textAnswer } from "../doubles/scripted-deployment.ts";
import { formats, startService, type TestService } from "./start-service.ts";

let service: TestService;
beforeAll(async () => {
  service = await startService();
});
afterAll(() => service[Symbol.asyncDispose]());

async function get(path: string, key: string): Promise<Record<string, unknown>> {
  const response = await fetch(service.url + path, {
    headers: { authorization: `Bearer ${key}`, accept: "application/json" },
  });
  expect(response.status).toBe(200);
  return (await response.json()) as Record<string, unknown>;
}

function credits(input: string, cached: string, output: string) {
  const nanos = (text: string): bigint => BigInt(Math.round(Number(text) * 1e9));
  return {
    effectiveFromMs: null,
    inputNanosPerMillion: nanos(input),
    cachedInputNanosPerMillion: nanos(cached),
    outputNanosPerMillion: nanos(output),
  };
}

describe("price lists of a service", () => {
  test.each(formats)(
    "cached input costs its own price, in the sum of the receipt of $name, rounded up once",
    async ({ body, name, path }) => {
      const list = `${name}-list`;
      await service.ledger.createPriceList({ name: list, prices: [credits("0.3", "0.03", "1.1")] });
      const { accountId, key } = await service.newKey("1");
      await service.ledger.changeAccount(accountId, { priceList: list });
      expect((await get("/account", key))["prices"]).toEqual({
        input: "0.3",
        cached_input: "0.03",
        output: "1.1",
      });
      const usage = { promptTokens: 13, completionTokens: 7, cachedTokens: 11 };
      service.deployment.answerNext(...textAnswer("Hello", { usage }));
      const response = await service.post(path, body, { key });
      await response.text();
      const receipt = await get(`/receipts/${response.headers.get("x-request-id") ?? ""}`, key);
      expect(receipt).toMatchObject({
        price_list: list,
        prices: { input: "0.3", cached_input: "0.03", output: "1.1" },
        usage: { input_tokens: 13, cached_input_tokens: 11, output_tokens: 7 },
        lines: [
          { item: "input", tokens: 2, price: "0.3", amount: "0.0000006" },
          { item: "cached_input", tokens: 11, price: "0.03", amount: "0.00000033" },
          { item: "output", tokens: 7, price: "1.1", amount: "0.0000077" },
        ],
        charged: "0.00000863",
      });
      expect((await service.settledCredit(accountId)).balance).toBe(10n ** 9n - 8_630n);
      expect((await service.ledger.verify([])).problems).toEqual([]);
    },
  );

  test("the sum of lines that are no whole nanos is rounded up once", async () => {
    await service.ledger.createPriceList({
      name: "odd",
      prices: [credits("0.000333334", "0.000333334", "0.000333334")],
    });
    const { accountId, key } = await service.newKey("1");
    await service.ledger.changeAccount(accountId, { priceList: "odd" });
    const usage = { promptTokens: 3, completionTokens: 1, cachedTokens: 1 };
    service.deployment.answerNext(...textAnswer("Hello", { usage }));
    const [chat] = formats;
    const response = await service.post(chat.path, chat.body, { key });
    await response.text();
    const receipt = await get(`/receipts/${response.headers.get("x-request-id") ?? ""}`, key);
    expect(receipt).toMatchObject({
      lines: [
        { amount: "0.000000000666668" },
        { amount: "0.000000000333334" },
        { amount: "0.000000000333334" },
      ],
      charged: "0.000000002",
    });
  });

  test("a start tells in its log that the ledger's prices hold, and not the settings'", async () => {
    const lines: string[] = [];
    const destination = { write: (text: string) => void lines.push(text), flush() {} };
    const log = openLog({ level: "info", format: "json", terminal: false, destination });
    const start = async (): Promise<string> => {
      lines.length = 0;
      using telemetry = openTelemetry({ log, secrets: [] });
      await using _ = await openGateway(service.config, { telemetry, onProgress: () => {} });
      return lines.join("");
    };
    expect(await start()).not.toContain("prices of the ledger");
    await service.ledger.createPriceList({ name: "default", prices: [credits("2", "1", "3")] });
    expect(await start()).toMatch(
      /"list":"default","from":"20[^"]+Z","remedy":"TRIBUTARY_INPUT_PRICE[^\n]+"event":"prices of the ledger"/,
    );
  });
});
