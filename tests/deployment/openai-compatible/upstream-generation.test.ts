import { describe, expect, test } from "vitest";
import { limits } from "../../../src/limits.ts";
import { type DrivenGeneration, driveGeneration, drivenTimes } from "../driven-generation.ts";

const { connectMs, firstEventMs, silenceMs } = drivenTimes;

const piece = (content: string, rest: object = {}): string =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content } }], ...rest })}\n\n`;
const finished = `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n`;
const done = "data: [DONE]\n\n";
const comment = ": alive\n\n";
const usageOf = (output: number) => ({ usage: { prompt_tokens: 5, completion_tokens: output } });

/** One that has its first frame. */
async function begun(most: { readonly outputTokensMax?: number } = {}) {
  const one = driveGeneration(most);
  one.ask();
  one.answer();
  await one.send(piece("a"));
  return one;
}

describe("the first event", () => {
  test("has a limit of its own that comments, bytes and the headers do not move", async () => {
    for (const life of [comment, "d", ": al", "\n", "data:\n\n", "event: x\n"]) {
      const one = driveGeneration({});
      one.ask();
      one.clock.advance(firstEventMs / 2);
      one.answer();
      for (let at = firstEventMs / 2; at < firstEventMs - 10; at += 10_000) {
        await one.send(life === "d" && at > firstEventMs / 2 ? "x" : life);
        expect(await one.outcome(), `${life} at ${String(at)}`).toBeNull();
        one.clock.advance(10_000);
      }
      one.clock.advance(10);
      expect(await one.outcome(), life).toBe("deployment_timeout");
      expect(one.ending).toMatchObject({ failure: { message: /did not begin/u } });
      expect(one.calls).toContain("drop first");
    }
  });

  test("may come at the last moment, after comments alone", async () => {
    const one = driveGeneration({});
    one.ask();
    one.answer();
    await one.send(comment);
    one.clock.advance(firstEventMs - 1);
    await one.send(piece("a"));
    one.clock.advance(silenceMs - 1);
    expect(await one.outcome()).toBeNull();
    await one.send(finished, done);
    expect(await one.outcome()).toBe("finished");
  });

  test("has the same limit when the request was sent twice", async () => {
    const one = driveGeneration({});
    one.ask();
    one.clock.advance(firstEventMs - 1_000);
    one.break();
    expect(one.calls).toEqual(["drop first"]);
    one.clock.advance(10);
    one.ask();
    one.clock.advance(989);
    expect(await one.outcome()).toBeNull();
    one.clock.advance(1);
    expect(await one.outcome()).toBe("deployment_timeout");
    expect(one.requests).toBe(2);
  });
});

describe("silence", () => {
  test("is ended by frames and comments that are whole, not by their bytes", async () => {
    const one = await begun();
    for (let round = 0; round < 4; round += 1) {
      one.clock.advance(silenceMs - 1);
      await one.send(round % 2 === 0 ? comment : piece("b"));
    }
    expect(await one.outcome()).toBeNull();
    for (const byte of "data: {") {
      one.clock.advance(silenceMs / 8);
      await one.send(byte);
    }
    expect(await one.outcome()).toBeNull();
    one.clock.advance(silenceMs / 8);
    expect(await one.outcome()).toBe("deployment_timeout");
    expect(one.ending).toMatchObject({ failure: { message: /in the middle/u } });
    expect(one.text).toBe("abb");
  });

  test.each([
    ["comments", comment],
    ["frames that bring nothing", 'data: {"choices":[]}\n\n'],
    ["empty pieces", piece("")],
  ])("is not filled by %s for longer than the first event may take", async (_what, life) => {
    const one = await begun();
    const step = silenceMs / 2;
    for (let waited = 0; waited + step < firstEventMs; waited += step) {
      one.clock.advance(step);
      await one.send(life);
      expect(await one.outcome()).toBeNull();
    }
    one.clock.advance(step);
    expect(await one.outcome()).toBe("deployment_timeout");
  });

  test("behind the finish ends the answer well, and comments do not put that off", async () => {
    const one = await begun();
    await one.send(finished);
    for (let waited = 0; waited < silenceMs - 1_000; waited += 10_000) {
      one.clock.advance(10_000);
      if (waited + 10_000 < silenceMs) await one.send(comment);
    }
    expect(await one.outcome()).toBe("finished");
  });

  test("is the deployment's only while it is listened to", async () => {
    const one = await begun();
    one.clock.advance(silenceMs - 1);
    one.generation.pause();
    one.generation.pause();
    one.clock.advance(10 * firstEventMs);
    expect(await one.outcome()).toBeNull();
    one.generation.resume();
    one.generation.resume();
    expect(await one.outcome()).toBeNull();
    one.clock.advance(1);
    expect(await one.outcome()).toBe("deployment_timeout");
    expect(one.calls.filter((call) => /pause|resume/u.test(call))).toEqual(["pause", "resume"]);
  });

  test("is not the deployment's while it is paused inside of its first events", async () => {
    const one = driveGeneration({ onEvents: (generation) => generation.pause() });
    one.ask();
    one.answer();
    await one.send(piece("a"));
    one.clock.advance(10 * silenceMs);
    expect(await one.outcome()).toBeNull();
    one.generation.resume();
    await one.send(finished, done);
    one.endBody();
    expect(await one.outcome()).toBe("finished");
  });

  test("before the first event counts no pause either, and no more than the rest of it", async () => {
    const one = driveGeneration({});
    one.generation.pause();
    one.generation.pause();
    one.ask();
    one.clock.advance(firstEventMs);
    one.answer();
    expect(one.calls).toEqual(["pause", "pause", "accepted"]);
    one.generation.resume();
    one.clock.advance(firstEventMs - 1);
    expect(await one.outcome()).toBeNull();
    one.clock.advance(1);
    expect(await one.outcome()).toBe("deployment_timeout");
  });
});

describe("the connection", () => {
  test.each<[string, (one: DrivenGeneration) => Promise<void> | void, string, readonly string[]]>([
    [
      "is kept when the body ends with the answer",
      async (one) => {
        await one.send(finished);
        one.endBody();
      },
      "finished",
      ["keep first"],
    ],
    [
      "is kept when the last word and the body's end come together",
      (one) => {
        void one.send(finished, done);
        one.endBody();
      },
      "finished",
      ["keep first"],
    ],
    [
      "is kept when the body ends soon after the last word",
      async (one) => {
        await one.send(finished, done);
        one.clock.advance(999);
        one.endBody();
        one.clock.advance(10_000);
      },
      "finished",
      ["resume", "keep first"],
    ],
    [
      "is dropped when the body does not end",
      async (one) => {
        await one.send(finished, done);
        one.clock.advance(1_000);
        one.break();
      },
      "finished",
      ["resume", "drop first", "drop first"],
    ],
    [
      "is dropped when it breaks behind the last word",
      async (one) => {
        await one.send(finished, done);
        one.break();
        expect(one.clock.waiting).toBe(0);
        one.clock.advance(10_000);
      },
      "finished",
      ["resume", "drop first"],
    ],
    [
      "is dropped when it breaks between finish and last word",
      async (one) => {
        await one.send(finished);
        one.break();
      },
      "finished",
      ["drop first"],
    ],
    [
      "is dropped when it breaks in the read that brought the finish",
      (one) => {
        void one.send(finished);
        one.break();
      },
      "finished",
      ["drop first"],
    ],
    [
      "is dropped when it breaks in the middle",
      (one) => one.break(),
      "deployment_failed",
      ["drop first"],
    ],
    [
      "is dropped when the answer is cancelled",
      (one) => one.generation.cancel(),
      "cancelled",
      ["drop first"],
    ],
    [
      "is dropped when the answer is nonsense",
      (one) => one.send("data: {\n\n"),
      "deployment_failed",
      ["drop first"],
    ],
    [
      "is kept when the body ends in nonsense",
      async (one) => {
        await one.send("data: x");
        one.endBody();
      },
      "deployment_failed",
      ["drop first"],
    ],
  ])("%s", async (_what, finish, outcome, fates) => {
    const one = await begun();
    await finish(one);
    expect(await one.outcome()).toBe(outcome);
    expect(one.calls).toEqual(["accepted", ...fates.slice(0, 1), "over", ...fates.slice(1)]);
    expect(one.clock.waiting).toBe(0);
  });

  test("is dropped, and the answer cut, when the deployment goes on beyond the limit", async () => {
    const one = await begun({ outputTokensMax: 10 });
    const over = 11 + limits.outputOvershootMax;
    await one.send(piece("b", usageOf(10)), piece("c", usageOf(over)), piece("d"), finished, done);
    expect(await one.outcome()).toBe("finished");
    expect(one.ending).toMatchObject({
      finish: { reason: "length" },
      usage: { outputTokens: 10 },
    });
    expect(one.text).toBe("abc");
    expect(one.calls).toEqual(["accepted", "drop first", "over"]);
  });

  test("that cannot be had in time is a deployment that is away", async () => {
    const one = driveGeneration({});
    one.clock.advance(connectMs - 1);
    expect(await one.outcome()).toBeNull();
    one.clock.advance(1);
    expect(await one.outcome()).toBe("overloaded");
    one.ask();
    expect(one.calls).toEqual(["drop first", "over", "abort"]);
  });

  test("that was never there is away too", async () => {
    const one = driveGeneration({});
    one.break("ECONNREFUSED");
    expect(await one.outcome()).toBe("overloaded");
  });
});

describe("a request that was lost without an answer", () => {
  test("is sent again once, on a fresh connection, when the old one had been used", async () => {
    const one = driveGeneration({});
    one.ask();
    one.break();
    expect(one.requests).toBe(2);
    one.ask();
    one.break();
    expect(await one.outcome()).toBe("overloaded");
    expect(one.requests).toBe(2);
    expect(one.calls).toEqual(["drop first", "drop fresh", "over"]);
  });

  test("is not sent again for a fault that is no closed connection, nor behind a status", async () => {
    const one = driveGeneration({});
    one.ask();
    one.break("UND_ERR_HEADERS_TIMEOUT");
    expect(await one.outcome()).toBe("deployment_failed");
    expect(one.requests).toBe(1);
    const other = driveGeneration({});
    other.ask();
    other.answer();
    other.break();
    expect(await other.outcome()).toBe("deployment_failed");
    expect(other.requests).toBe(1);
  });
});

describe("a refusal", () => {
  test("is told with its words, and the connection kept, when its body has ended", async () => {
    const one = driveGeneration({});
    one.ask();
    one.answer(400);
    const words = Buffer.from("too lóng");
    for (const byte of words) await one.send(String.fromCharCode(byte).replace(/[^\0-\x7f]/u, ""));
    expect(await one.outcome()).toBeNull();
    one.endBody();
    expect(await one.outcome()).toBe("refused_by_deployment");
    expect(one.calls).toEqual(["keep first", "over"]);
    expect(one.ending).toMatchObject({ failure: { message: "400 too lng" } });
  });

  test("whose words trickle in is told with those of its first seconds", async () => {
    const one = driveGeneration({});
    one.ask();
    one.answer(500);
    for (let waited = 0; waited < limits.upstreamRefusalMs; waited += 1_000) {
      expect(await one.outcome()).toBeNull();
      await one.send("x");
      one.clock.advance(1_000);
    }
    expect(await one.outcome()).toBe("refused_by_deployment");
    expect(one.calls).toEqual(["drop first", "over"]);
  });

  test("whose words do not end is told with the first of them", async () => {
    const one = driveGeneration({});
    one.ask();
    one.answer(500);
    await one.send("x".repeat(limits.upstreamRefusalBytesMax));
    expect(await one.outcome()).toBeNull();
    await one.send("y");
    expect(await one.outcome()).toBe("refused_by_deployment");
    const first = `500 ${"x".repeat(limits.upstreamRefusalBytesMax)}`;
    expect(one.ending).toMatchObject({ failure: { message: first } });
  });
});

test("usage that came behind the last events is told when the answer is cancelled", async () => {
  const one = await begun();
  await one.send(`data: ${JSON.stringify({ choices: [], ...usageOf(7) })}\n\n`);
  expect(one.usages).toEqual([null]);
  one.generation.cancel();
  expect(await one.outcome()).toBe("cancelled");
  expect(one.usages).toMatchObject([null, { inputTokens: 5, outputTokens: 7 }]);
});

test("what comes behind the end changes nothing", async () => {
  const one = await begun();
  one.generation.cancel();
  await one.send(piece("b"), finished);
  one.answer();
  one.endBody();
  one.break();
  one.generation.pause();
  one.generation.resume();
  one.generation.cancel();
  one.clock.advance(10 * firstEventMs);
  expect(await one.outcome()).toBe("cancelled");
  expect(one.text).toBe("a");
  expect(one.calls).toEqual(["accepted", "drop first", "over", "drop first"]);
});

test("what came in the read in which it is cancelled is told to nobody", async () => {
  const one = await begun();
  const sent = one.send(piece("b"));
  one.generation.cancel();
  await sent;
  expect(await one.outcome()).toBe("cancelled");
  expect(one.text).toBe("a");
});

test("a status before the answer's own is passed over", async () => {
  const one = driveGeneration({});
  one.ask();
  one.answer(103);
  expect(one.calls).toEqual([]);
  one.answer(200);
  await one.send(piece("a"), finished, done);
  expect(await one.outcome()).toBe("finished");
});

test("chunks of one read are one batch", async () => {
  const one = await begun();
  await one.send(piece("b"), piece("c"), "data: ", '{"choices":[]}\n\n');
  expect(one.text).toBe("abc");
  expect(one.usages).toHaveLength(2);
});
