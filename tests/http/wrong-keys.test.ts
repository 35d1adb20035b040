import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { Failure } from "../../src/failure.ts";
import { openWrongKeys, type WrongKeys } from "../../src/http/wrong-keys.ts";
import type { Caller } from "../../src/ledger/ledger.ts";
import { revokedKey, unknownKey } from "../../src/ledger/refusals.ts";
import { limits } from "../../src/limits.ts";
import { openManualTimers } from "../doubles/manual-timers.ts";

const right = (id: string): Caller => ({ keyId: `key_${id}` }) as Caller;
const keyOf = (id: string): string => `trib_account_${id}_secret`;

function open() {
  const clock = openManualTimers();
  const sums: object[] = [];
  const keys = openWrongKeys({
    timers: clock,
    monotonicMs: clock.monotonicMs,
    telemetry: {
      lifecycle(event, sum) {
        expect(event).toBe("wrong keys");
        sums.push(sum);
      },
    },
  });
  return { clock, sums, keys };
}

async function codeOf(answer: Promise<unknown>): Promise<string> {
  return answer.then(
    () => "ok",
    (error: unknown) => (error instanceof Failure ? error.code : String(error)),
  );
}

function sendWrong(keys: WrongKeys, address: string, failure = unknownKey()): Promise<string> {
  return codeOf(keys.guard({ address, key: keyOf("wrong") }, () => Promise.reject(failure)));
}

describe("wrong keys of one address", () => {
  it("are answered 401, beyond 20 in a minute 429, and 401 again when that is over", async () => {
    const { clock, keys } = open();
    for (let count = 0; count < limits.wrongKeysMax; count += 1)
      expect(await sendWrong(keys, "192.0.2.1")).toBe("authentication");
    expect(await sendWrong(keys, "192.0.2.1")).toBe("too_many_wrong_keys");
    expect(await sendWrong(keys, "192.0.2.1", revokedKey())).toBe("too_many_wrong_keys");
    expect(await sendWrong(keys, "192.0.2.2")).toBe("authentication");
    clock.advance(limits.wrongKeysWindowMs);
    expect(await sendWrong(keys, "192.0.2.1")).toBe("authentication");
  });

  it("count for the network of IPv6 that one machine may have", async () => {
    const { keys } = open();
    for (let count = 0; count < limits.wrongKeysMax; count += 1)
      await sendWrong(keys, `2001:db8::${count.toString(16)}`);
    expect(await sendWrong(keys, "2001:db8::ffff")).toBe("too_many_wrong_keys");
    expect(await sendWrong(keys, "2001:db8:0:1::1")).toBe("authentication");
  });

  it("refuse no right key, nor what is refused for another reason, nor a request without a key", async () => {
    const { keys } = open();
    const address = "192.0.2.1";
    for (let count = 0; count < 2 * limits.wrongKeysMax; count += 1) await sendWrong(keys, address);
    const asked = keys.guard({ address, key: keyOf("a") }, () => Promise.resolve(right("a")));
    expect(await asked).toEqual(right("a"));
    const limited = new Failure("rate_limited", "Wait.", { retryAfterSeconds: 1 });
    const refused = keys.guard({ address, key: keyOf("a") }, () => Promise.reject(limited));
    expect(await codeOf(refused)).toBe("rate_limited");
    const without = keys.guard({ address, key: "" }, () => Promise.reject(unknownKey()));
    expect(await codeOf(without)).toBe("authentication");
    const { keys: others } = open();
    for (let count = 0; count < 2 * limits.wrongKeysMax; count += 1)
      await codeOf(others.guard({ address, key: "" }, () => Promise.reject(unknownKey())));
    expect(await sendWrong(others, address)).toBe("authentication");
  });

  it("are asked for one after another, while keys that were right before go past them", async () => {
    const { keys } = open();
    const address = "192.0.2.1";
    for (let count = 0; count < limits.wrongKeysMax; count += 1) await sendWrong(keys, address);
    let under = 0;
    let most = 0;
    const first = Promise.withResolvers<void>();
    const wrong = Array.from({ length: 1_000 }, (_, index) =>
      codeOf(
        keys.guard({ address, key: keyOf(`wrong${String(index)}`) }, async () => {
          under += 1;
          most = Math.max(most, under);
          await first.promise;
          under -= 1;
          throw unknownKey();
        }),
      ),
    );
    const late = keys.guard({ address, key: keyOf("a") }, () => Promise.resolve(right("a")));
    let isKnown = false;
    void late.then(() => (isKnown = true));
    await nextTurn();
    expect([under, isKnown]).toEqual([1, false]);
    // Another address waits for none of them.
    const other = { address: "192.0.2.2", key: keyOf("b") };
    expect(await keys.guard(other, () => Promise.resolve(right("b")))).toEqual(right("b"));
    first.resolve();
    expect(await late).toEqual(right("a"));
    expect(new Set(await Promise.all(wrong))).toEqual(new Set(["too_many_wrong_keys"]));
    expect(most).toBe(1);

    const held = Promise.withResolvers<never>();
    void codeOf(keys.guard({ address, key: keyOf("wrong") }, () => held.promise));
    const again = keys.guard({ address, key: keyOf("a") }, () => Promise.resolve(right("a")));
    expect(await again).toEqual(right("a"));
    // With another secret it is asked for behind the others again.
    held.reject(unknownKey());
    await sendWrong(keys, address);
    const misspelt = { address, key: keyOf("a") };
    await codeOf(keys.guard(misspelt, () => Promise.reject(unknownKey())));
    const next = Promise.withResolvers<never>();
    void codeOf(keys.guard({ address, key: keyOf("wrong") }, () => next.promise));
    let isServed = false;
    const behind = keys.guard(misspelt, () => Promise.resolve(right("a")));
    void behind.then(() => (isServed = true));
    await nextTurn();
    expect(isServed).toBe(false);
    next.reject(unknownKey());
    expect(await behind).toEqual(right("a"));
  });

  it("are summed up once a minute, and what is not yet said at the end", async () => {
    const { clock, keys, sums } = open();
    for (let count = 0; count < 10_000; count += 1) await sendWrong(keys, "192.0.2.1");
    for (let count = 0; count < 30; count += 1) await sendWrong(keys, "192.0.2.2");
    await sendWrong(keys, "192.0.2.3");
    expect([sums, clock.waiting]).toEqual([[], 1]);
    clock.advance(limits.wrongKeysWindowMs);
    expect(sums).toEqual([{ count: 9_990, addresses: 2, client: "192.0.2.1", clientCount: 9_980 }]);
    for (let count = 0; count < 21; count += 1) await sendWrong(keys, "192.0.2.1");
    keys[Symbol.dispose]();
    keys[Symbol.dispose]();
    expect(sums.slice(1)).toEqual([
      { count: 1, addresses: 1, client: "192.0.2.1", clientCount: 1 },
    ]);
    expect(clock.waiting).toBe(0);
  });

  it("are remembered of so many addresses at most, those forgotten that sent none for longest", async () => {
    const { keys } = open();
    for (let count = 0; count < limits.wrongKeysMax; count += 1) await sendWrong(keys, "192.0.2.1");
    for (let count = 0; count < limits.wrongKeysMax; count += 1) await sendWrong(keys, "192.0.2.2");
    await sendWrong(keys, "192.0.2.1");
    for (let index = 0; index < limits.wrongKeysAddressesMax - 1; index += 1)
      await sendWrong(keys, `10.0.${String(index >> 8)}.${String(index & 255)}`);
    expect(await sendWrong(keys, "192.0.2.1")).toBe("too_many_wrong_keys");
    expect(await sendWrong(keys, "192.0.2.2")).toBe("authentication");
  });
});
