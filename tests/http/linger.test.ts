import { IncomingMessage } from "node:http";
import { Socket } from "node:net";
import { describe, expect, it } from "vitest";
import type { Exchange } from "../../src/http/exchange.ts";
import { openLingering } from "../../src/http/linger.ts";
import { openManualTimers } from "../doubles/manual-timers.ts";

const mebibyte = 1024 * 1024;
const cases = [
  { who: "anybody", known: false, failureCode: "authentication", bytes: 4 * mebibyte, ms: 1_000 },
  { who: "a caller", known: true, failureCode: "body_too_large", bytes: 16 * mebibyte, ms: 5_000 },
  {
    who: "a caller who sends too much at once",
    known: true,
    failureCode: "too_many_concurrent",
    bytes: mebibyte,
    ms: 1_000,
  },
] as const;

describe.each(cases)("$who who was answered early", ({ bytes, failureCode, known, ms }) => {
  function open() {
    const request = new IncomingMessage(new Socket());
    const record = {
      caller: known ? { accountId: "acct_a" } : null,
      failureCode,
      generation: null,
    };
    const timers = openManualTimers();
    openLingering(timers).begin({ request, record } as unknown as Exchange);
    const push = async (piece: Buffer): Promise<void> => {
      request.push(piece);
      await new Promise((resolve) => setImmediate(resolve));
    };
    return { request, timers, push };
  }

  it(`may send ${String(bytes)} bytes more, and no more`, async () => {
    const { push, request } = open();
    await push(Buffer.alloc(bytes));
    expect(request.destroyed).toBe(false);
    await push(Buffer.alloc(1));
    expect(request.destroyed).toBe(true);
  });

  it(`may do so for ${String(ms)} ms`, () => {
    const { request, timers } = open();
    timers.advance(ms - 1);
    expect(request.destroyed).toBe(false);
    timers.advance(1);
    expect(request.destroyed).toBe(true);
  });

  it("may not do so byte by byte", async () => {
    const { push, request } = open();
    for (let piece = 0; piece <= 2_048; piece += 1) await push(Buffer.from(" "));
    expect(request.destroyed).toBe(true);
  });

  it("has no timer left when the rest has come", async () => {
    const { push, request, timers } = open();
    await push(Buffer.from("rest"));
    request.push(null);
    await new Promise((resolve) => setImmediate(resolve));
    expect(timers.waiting).toBe(0);
  });
});

describe("an account that sends more at once than it may", () => {
  it("has four of its requests read at a time, and the others closed unread after a second", async () => {
    const timers = openManualTimers();
    const lingering = openLingering(timers);
    function begin(accountId: string): IncomingMessage {
      const request = new IncomingMessage(new Socket());
      const record = {
        caller: { accountId },
        failureCode: "too_many_concurrent",
        generation: null,
      };
      lingering.begin({ request, record } as unknown as Exchange);
      return request;
    }
    const read = Array.from({ length: 4 }, () => begin("acct_a"));
    const unread = begin("acct_a");
    expect(read.map(({ readableFlowing }) => readableFlowing)).toEqual([true, true, true, true]);
    expect(unread.readableFlowing).toBe(null);
    expect(begin("acct_b").readableFlowing).toBe(true);
    read[0]?.destroy();
    await new Promise((resolve) => setImmediate(resolve));
    expect(begin("acct_a").readableFlowing).toBe(true);
    expect(begin("acct_a").readableFlowing).toBe(null);
    expect(unread.destroyed).toBe(false);
    timers.advance(1_000);
    expect(unread.destroyed).toBe(true);
  });
});
