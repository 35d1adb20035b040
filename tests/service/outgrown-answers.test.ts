import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { costNanos } from "../../src/admission/price.ts";
import { inputBound } from "../../src/admission/input-bound.ts";
import { limits } from "../../src/limits.ts";
import { delta, finish, type Step } from "../doubles/scripted-deployment.ts";
import { formats, startService, type TestService } from "./start-service.ts";

let service: TestService;
beforeAll(async () => {
  service = await startService({ deployment: { contextTokens: null } });
});
afterAll(() => service[Symbol.asyncDispose]());

const lengths = {
  "chat-completions": /"finish_reason":"length"/u,
  responses: /"status":"incomplete"/u,
  messages: /"stop_reason":"max_tokens"/u,
} as const;

describe.each(formats)("an answer of $name that the deployment does not end", (format) => {
  const { body, name, outputField, path } = format;

  it.each([false, true])(
    "is cancelled and told as cut, streamed %s, and costs no more than was reserved",
    async (stream) => {
      const { accountId, key } = await service.newKey("1");
      const before = await service.settledCredit(accountId);
      const endless: Step = { type: "numbers", count: 1_000_000, text: () => "word " };
      service.deployment.answerNext(endless);
      const sent = service.deployment.requests.length;
      const options = { stream_options: { include_usage: true } };
      const asked = { ...body, [outputField]: 10, stream };
      const order = stream && name === "chat-completions" ? { ...asked, ...options } : asked;
      const response = await service.post(path, order, { key });
      expect(response.status).toBe(200);
      const text = await response.text();
      expect(text).toMatch(lengths[name]);
      expect(text.match(/"(?:completion|output)_tokens":\s*\d+/gu)?.at(-1)).toMatch(/:\s*10$/u);
      expect((await (await service.deployment.request(sent)).ended).byPeer).toBe(true);
      const { balance } = await service.settledCredit(accountId);
      const bound = inputBound(Buffer.byteLength(JSON.stringify(order)), 1, 0);
      const reserved = costNanos(bound, 10, service.config.prices);
      expect(before.balance - balance).toBeGreaterThan(0n);
      expect(before.balance - balance).toBeLessThanOrEqual(reserved);
    },
  );

  it("never shows usage that cannot be", async () => {
    const { key } = await service.newKey("1");
    const most = Number.MAX_SAFE_INTEGER;
    service.deployment.answerNext(
      delta({ content: "one" }),
      finish("stop", { promptTokens: most, completionTokens: most }),
    );
    const response = await service.post(path, { ...body, [outputField]: 10 }, { key });
    const text = await response.text();
    for (const [, figure] of text.matchAll(/_tokens":\s*(\d+)/gu))
      expect(Number(figure)).toBeLessThan(1_000);
  });
});

it("the longest answer that an allowance can be arrives whole in a stream of Responses", async () => {
  const count = 1_024;
  const piece = "x".repeat(Math.floor((65_536 * limits.charactersPerTokenMax) / count));
  service.deployment.answerNext({ type: "numbers", count, text: () => piece }, finish("stop"));
  const response = await service.post("/v1/responses", {
    ...formats[1].body,
    max_output_tokens: 65_536,
    stream: true,
  });
  const text = await response.text();
  // Its last events repeat the whole of it.
  expect(text.length).toBeGreaterThan(5 * count * piece.length);
  expect(text).toMatch(/"status":"completed"/u);
});
