import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { attacks } from "../../bench/attacks.ts";
import { openRawConnection, requestHead } from "./raw-connection.ts";
import { formats, startService, type TestKey, type TestService } from "./start-service.ts";

// The attacks of the bench with an eighth of their connections, without its clock: what an account is served while another
// does its worst, and that all which was taken for the other is given back.

const share = 1 / 8;
const countPath = "/v1/messages/count_tokens";
const [chat] = formats;
const large = { messages: [{ role: "user", content: "All work and no play. ".repeat(5_000) }] };

let service: TestService;
beforeAll(async () => {
  service = await startService({
    environment: {
      TRIBUTARY_REQUESTS_PER_MINUTE: "1000000",
      // Fewer than any of the attacks begins.
      TRIBUTARY_GENERATIONS_MAX: "7",
    },
  });
  // Long enough for a reader that stops to be waited for.
  service.deployment.answerFor("intervalMs", {
    type: "numbers",
    count: 100_000,
    text: (index) => String(index).padStart(32, "."),
  });
});
afterAll(() => service[Symbol.asyncDispose]());

/** All that an account may have before admission, at once: its places, and its bytes as announced. */
async function takeAll({ key }: TestKey): Promise<void> {
  const lengths = Array.from({ length: 64 }, (_, at) => (at < 5 ? 4 * 1024 * 1024 : 64 * 1024));
  using connections = new DisposableStack();
  await Promise.all(
    lengths.map(async (length) => {
      const connection = connections.use(await openRawConnection(service.url));
      connection.write(
        requestHead(`POST ${countPath}`, {
          authorization: `Bearer ${key}`,
          "content-length": length,
          expect: "100-continue",
        }),
      );
      await connection.waitFor(/100 Continue|HTTP\/1.1 4\d\d/);
      if (!connection.text.includes("100 Continue")) throw new Error(connection.text);
    }),
  );
}

describe.each(attacks)("while another account sends $name", (attack) => {
  it("an account is served, and what the other took is given back after it", async () => {
    const attacker = await service.newKey("100");
    const ended = new AbortController();
    const connected = Promise.withResolvers<void>();
    const attacking = attack.run(
      {
        origin: service.url,
        key: attacker.key,
        share,
        onConnected: () => connected.resolve(),
      },
      ended.signal,
    );
    await connected.promise;
    try {
      for (const { body, path } of formats) {
        const answer = await service.post(path, { ...body, stream: true });
        expect([answer.status, await answer.text()]).toEqual([200, expect.stringMatching(/\S/)]);
      }
      expect((await service.post(chat.path, large)).status).toBe(200);
      expect((await service.post(countPath, large)).status).toBe(200);
    } finally {
      ended.abort();
      await attacking;
    }
    expect((await service.settledCredit(attacker.accountId)).held).toBe(0n);
    const taken = async (): Promise<string> => await takeAll(attacker).then(() => "all", String);
    await expect.poll(taken).toBe("all");
  });
});
