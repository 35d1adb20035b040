import type { LookupAddress } from "node:dns";
import { createServer } from "node:net";
import { Webhook } from "standardwebhooks";
import { describe, expect, test } from "vitest";
import type { DueDelivery } from "../../src/ledger/webhook.ts";
import { openPostEvent, type PostParts } from "../../src/webhooks/post-event.ts";
import { openManualTimers } from "../doubles/manual-timers.ts";
import { openReceiver } from "./receiver.ts";

const secret = new Uint8Array(32).fill(7);
const older = new Uint8Array(32).fill(8);
const shown = (bytes: Uint8Array): string => `whsec_${Buffer.from(bytes).toString("base64")}`;

function deliveryTo(url: string, secrets: readonly Uint8Array[] = [secret]): DueDelivery {
  return {
    webhookId: "hook_1",
    url,
    secrets,
    tries: 0,
    event: {
      position: 1,
      id: "evt_1",
      atMs: 1_000,
      type: "account.low_balance",
      accountId: "acct_1",
      keyId: null,
      facts: { balance_nanos: "4990000000", low_balance_at_nanos: "5000000000" },
    },
  };
}

function open(parts: Partial<PostParts> = {}) {
  const timers = openManualTimers();
  const post = openPostEvent({ privateAddresses: "allow", now: Date.now, timers, ...parts });
  return { timers, post: (delivery: DueDelivery) => post(delivery, new AbortController().signal) };
}

const leadsTo =
  (...addresses: readonly string[]) =>
  (): Promise<readonly LookupAddress[]> =>
    Promise.resolve(
      addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 })),
    );

test("an event arrives as Standard Webhooks has it, and the library verifies it", async () => {
  await using receiver = await openReceiver();
  const { post } = open();
  expect(await post(deliveryTo(receiver.url))).toEqual({
    delivered: true,
    statusCode: 204,
    error: null,
  });
  const [one] = receiver.received;
  const headers = (one?.headers ?? {}) as Record<string, string>;
  expect(new Webhook(shown(secret)).verify(one?.body ?? "", headers)).toEqual({
    id: "evt_1",
    type: "account.low_balance",
    timestamp: "1970-01-01T00:00:01.000Z",
    data: { account: "acct_1", balance: "4.99", low_balance_at: "5" },
  });
  expect(headers["webhook-id"]).toBe("evt_1");
  expect(headers["content-type"]).toBe("application/json");
  expect(() => new Webhook(shown(older)).verify(one?.body ?? "", headers)).toThrow("matching");
});

test("while a secret is replaced both verify", async () => {
  await using receiver = await openReceiver();
  await open().post(deliveryTo(receiver.url, [secret, older]));
  const [one] = receiver.received;
  for (const each of [secret, older])
    new Webhook(shown(each)).verify(one?.body ?? "", one?.headers as Record<string, string>);
});

describe("what is no success", () => {
  test.each([
    [500, "answered 500"],
    [404, "answered 404"],
    [302, "redirects are not followed"],
  ])("%i", async (status, words) => {
    await using elsewhere = await openReceiver();
    await using receiver = await openReceiver(
      (response) => void response.writeHead(status, { location: elsewhere.url }).end(),
    );
    const outcome = await open().post(deliveryTo(receiver.url));
    expect(outcome).toMatchObject({ delivered: false, statusCode: status });
    expect(outcome.error).toContain(words);
    expect(elsewhere.received).toEqual([]);
  });

  test("no answer within 15 seconds", async () => {
    await using receiver = await openReceiver(() => undefined);
    const { post, timers } = open();
    const outcome = post(deliveryTo(receiver.url));
    await receiver.waitFor(1);
    timers.advance(14_999);
    timers.advance(1);
    expect(await outcome).toMatchObject({
      delivered: false,
      error: "there was no answer within 15 seconds",
    });
    expect(timers.waiting).toBe(0);
  });

  test("nothing listens, and the name has no address", async () => {
    const refused = createServer();
    await new Promise<void>((resolve) => refused.listen(0, "127.0.0.1", resolve));
    const { port } = refused.address() as { port: number };
    await new Promise((resolve) => refused.close(resolve));
    const { post } = open();
    expect(await post(deliveryTo(`http://127.0.0.1:${String(port)}/`))).toMatchObject({
      error: "the connection was refused",
    });
    const nowhere = open({ resolve: leadsTo() });
    expect(await nowhere.post(deliveryTo("http://shop.example/"))).toMatchObject({
      error: "the name has no address",
    });
  });
});

test("what is behind 64 KiB of an answer is not read", async () => {
  let ended: () => void = () => undefined;
  const closed = new Promise<void>((resolve) => (ended = resolve));
  await using receiver = await openReceiver((response) => {
    response.writeHead(200);
    response.once("close", ended);
    const more = (): void => {
      while (response.writable && response.write(Buffer.alloc(65_536)));
      response.once("drain", more);
    };
    more();
  });
  expect(await open().post(deliveryTo(receiver.url))).toMatchObject({ delivered: true });
  await closed;
});

describe("an address inside", () => {
  const refuse = { privateAddresses: "refuse" } as const;

  test("is refused as a number, and nothing is sent", async () => {
    await using receiver = await openReceiver();
    const url = receiver.url.replace("http:", "https:");
    expect(await open(refuse).post(deliveryTo(url))).toMatchObject({
      delivered: false,
      statusCode: null,
    });
    expect(receiver.received).toEqual([]);
  });

  test.each([[["127.0.0.1"]], [["8.8.8.8", "10.0.0.1"]], [["::ffff:169.254.169.254"]]])(
    "is refused where a name leads there: %s",
    async (addresses) => {
      const { post } = open({ ...refuse, resolve: leadsTo(...addresses) });
      const outcome = await post(deliveryTo("https://shop.example:1/"));
      expect(outcome.error).toContain(`the name leads to ${addresses.at(-1) ?? ""}`);
    },
  );

  test("is asked for once, and the connection goes to what was checked", async () => {
    await using receiver = await openReceiver();
    const { port } = new URL(receiver.url);
    let asked = 0;
    const { post } = open({
      resolve(name) {
        asked += 1;
        expect(name).toBe("shop.example");
        // A second look-up would lead where nothing listens.
        return leadsTo(asked === 1 ? "127.0.0.1" : "127.0.0.2")();
      },
    });
    const outcome = await post(deliveryTo(`http://shop.example:${port}/`));
    expect([outcome.delivered, asked]).toEqual([true, 1]);
    expect(receiver.received[0]?.headers.host).toBe(`shop.example:${port}`);
  });
});
