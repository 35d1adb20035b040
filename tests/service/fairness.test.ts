import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openRawConnection, requestHead } from "./raw-connection.ts";
import { expectPlainRefusal, expectRefusal, shapeOf, withoutTrace } from "./refusals.ts";
import { formats, startService, type TestKey, type TestService } from "./start-service.ts";

const [chat, , messages] = formats;
const countPath = "/v1/messages/count_tokens";

let service: TestService;
beforeAll(async () => {
  service = await startService();
});
afterAll(() => service[Symbol.asyncDispose]());

/** The head of a request whose body does not come. */
function head(path: string, { key }: { readonly key: string }, length = 1_000): string {
  return requestHead(`POST ${path}`, { authorization: `Bearer ${key}`, "content-length": length });
}

describe("an account that cannot pay for the smallest request", () => {
  let poor: TestKey;
  beforeAll(async () => {
    // 64 tokens of input at 1 and one of output at 4 are 68 millionths.
    poor = await service.newKey("0.000067");
  });

  it.each(formats)("is told so before its body is read, on $path", async ({ path }) => {
    await withoutTrace(service, async () => {
      using connection = await openRawConnection(service.url);
      connection.write(head(path, poor));
      const error = expectPlainRefusal(await connection.answer(), {
        code: "insufficient_credit",
        shape: shapeOf(path),
        says: /balance of this account is 0.000067 credits.*smallest request needs 0.000068.*Add credit/,
      });
      expect(error).toMatchObject({
        balance: "0.000067",
        held: "0",
        needed: "0.000068",
        affordable_output_tokens: 0,
        waiting_helps: false,
      });
    });
  });

  it("has used up one of its requests a minute by that, and may count tokens", async () => {
    const refused = await service.post(chat.path, chat.body, { key: poor.key });
    await refused.text();
    const counted = await service.post(countPath, messages.body, { key: poor.key });
    expect(counted.status).toBe(200);
    const left = (answer: Response): number =>
      Number(answer.headers.get("x-ratelimit-remaining-requests"));
    expect(left(counted)).toBe(left(refused) - 1);
  });

  it("is served once it has that much", async () => {
    await service.ledger.creditAccount(poor.accountId, 1_000n, null);
    // Its bound is higher than that of a body without bytes, which is for `admit` to say.
    await expectRefusal(await service.post(chat.path, chat.body, { key: poor.key }), {
      code: "insufficient_credit",
      shape: "openai",
      says: /counted as at most \d+ tokens/,
    });
  });

  it("is served whatever it has where requests are free", async () => {
    await using free = await startService({
      environment: {
        TRIBUTARY_INPUT_PRICE: "0",
        TRIBUTARY_OUTPUT_PRICE: "0",
        TRIBUTARY_STARTING_CREDIT: "0",
      },
    });
    expect((await free.post(chat.path, chat.body)).status).toBe(200);
  });
});
