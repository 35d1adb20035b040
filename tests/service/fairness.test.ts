import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openRawConnection, type RawConnection, requestHead } from "./raw-connection.ts";
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

/** Opens connections that begin a request each and leave its body unfinished; resolves when all are under way. */
async function beginRequests(
  count: number,
  head: string,
): Promise<{ readonly connections: readonly RawConnection[] } & Disposable> {
  const connections = await Promise.all(
    Array.from({ length: count }, () => openRawConnection(service.url)),
  );
  for (const connection of connections) connection.write(`${head}{`);
  // Said only when the key was accepted, so each is counted by then.
  await Promise.all(connections.map((connection) => connection.waitFor(/100 Continue\r\n\r\n/)));
  return {
    connections,
    [Symbol.dispose]() {
      for (const connection of connections) connection[Symbol.dispose]();
    },
  };
}

const unfinished = (path: string, { key }: TestKey, length: number): string =>
  requestHead(`POST ${path}`, {
    authorization: `Bearer ${key}`,
    "content-length": length,
    expect: "100-continue",
  });

describe("requests whose bodies do not come", () => {
  it("take no place among the generations of the process, and no other account's", async () => {
    await using small = await startService({ environment: { TRIBUTARY_GENERATIONS_MAX: "1" } });
    const { key } = await small.newKey("1");
    using connection = await openRawConnection(small.url);
    connection.write(`${unfinished(chat.path, { key, accountId: "" }, 1_000)}{`);
    await connection.waitFor(/100 Continue/);
    expect((await small.post(chat.path, chat.body)).status).toBe(200);
  });

  it("are 64 an account; one more is refused, counts for no rate, and has room when they are gone", async () => {
    const account = await service.newKey("1");
    const { key } = account;
    {
      using begun = await beginRequests(64, unfinished(countPath, account, 1_000));
      expect(begun.connections).toHaveLength(64);
      for (const path of [chat.path, countPath])
        await expectRefusal(await service.post(path, messages.body, { key }), {
          code: "too_many_concurrent",
          shape: shapeOf(path),
          says: /has 64 requests under way already.*Wait until one has ended/,
        });
      expect((await service.post(chat.path, chat.body)).status).toBe(200);
    }
    const count = (): Promise<Response> => service.post(countPath, messages.body, { key });
    await expect.poll(async () => (await count()).status).toBe(200);
    // Those begun, those of the poll that were served, and this one; none that was refused.
    const left = Number((await count()).headers.get("x-ratelimit-remaining-requests"));
    expect(left).toBe(600 - 64 - 2);
  });

  it("are 24 MiB an account as announced, which small ones are not hurt by", async () => {
    const account = await service.newKey("1");
    const { key } = account;
    using begun = await beginRequests(6, unfinished(countPath, account, 4 * 1024 * 1024 - 200));
    expect(begun.connections).toHaveLength(6);
    const large = new Uint8Array(1024 * 1024).fill(32);
    await expectRefusal(await service.post(countPath, large, { key }), {
      code: "too_many_concurrent",
      shape: "messages",
      says: /larger than 24 MiB together/,
    });
    expect((await service.post(countPath, messages.body, { key })).status).toBe(200);
    expect((await service.post(countPath, large)).status).toBe(400);
  });
});

describe("32 small requests of one account at once", () => {
  it("are let in, count_tokens and generations alike", async () => {
    const { key } = await service.newKey("10");
    const answers = await Promise.all(
      Array.from({ length: 32 }, () => service.post(countPath, messages.body, { key })),
    );
    expect(answers.map(({ status }) => status)).toEqual(Array(32).fill(200));
    const bad = await Promise.all(
      Array.from({ length: 32 }, () => service.post(chat.path, {}, { key })),
    );
    expect(bad.map(({ status }) => status)).toEqual(Array(32).fill(400));
  });
});

describe("a body whose bytes alone pass the input bound", () => {
  const bytes = 2_000_000 - 63;

  it.each(formats)("is refused on $path whatever it holds", async ({ path }) => {
    await withoutTrace(service, async () => {
      for (const framing of ["announced", "chunked"] as const) {
        const body = new Uint8Array(bytes).fill(0xff);
        const answer =
          framing === "announced"
            ? await service.post(path, body)
            : await postInChunks(`${service.url}${path}`, body);
        const error = await expectRefusal(answer, {
          code: "input_too_large",
          shape: shapeOf(path),
          says:
            path === messages.path
              ? /^prompt is too long: 2000001 tokens > 2000000 max/
              : /2000001/,
        });
        expect(error).toBeDefined();
      }
    });
  });

  it("is one byte shorter when it is looked at", async () => {
    await expectRefusal(await service.post(chat.path, new Uint8Array(bytes - 1).fill(0xff)), {
      code: "invalid_request",
      shape: "openai",
      says: /not valid UTF-8/,
    });
  });

  it("is counted by count_tokens", async () => {
    const body = { messages: [{ role: "user", content: " ".repeat(bytes) }] };
    expect((await service.post(countPath, body)).status).toBe(200);
  });
});

function postInChunks(url: string, body: Uint8Array<ArrayBuffer>): Promise<Response> {
  return fetch(url, {
    method: "POST",
    headers: { authorization: `Bearer ${service.key}`, "content-type": "application/json" },
    body: new Blob([body]).stream(),
    duplex: "half",
  });
}

describe("looks at one's own account", () => {
  it("have a pace of their own, for receipts and balance together", async () => {
    const { key } = await service.newKey("1");
    const look = (path: string): Promise<Response> =>
      fetch(service.url + path, { headers: { authorization: `Bearer ${key}` } });
    const answers = await Promise.all(
      Array.from({ length: 64 }, (_, at) => look(at % 2 === 0 ? "/account" : "/receipts/req_x")),
    );
    const refused = answers.filter(({ status }) => status === 429);
    // More than four, were the answers so slow that the bucket filled again meanwhile.
    expect(refused.length).toBeLessThanOrEqual(4);
    const over = await Promise.all(Array.from({ length: 60 }, () => look("/account")));
    expect(over.some(({ status }) => status === 429)).toBe(true);
    expect((await service.post(chat.path, chat.body, { key })).status).toBe(200);
  });
});
