import { describe, expect, test } from "vitest";
import { openBurstTurns } from "../../../src/deployment/openai-compatible/burst-turns.ts";
import { limits } from "../../../src/limits.ts";
import { openManualTimers } from "../../doubles/manual-timers.ts";
import { driveGeneration } from "../driven-generation.ts";

const { burstBytes, burstMs, burstTurns } = limits;

/** The event loop in the hands of the test. */
function open() {
  const clock = openManualTimers();
  const next: (() => void)[] = [];
  const turns = openBurstTurns({
    monotonicMs: clock.monotonicMs,
    nextTurn: (callback) => void next.push(callback),
  });
  const pass = (count: number): void => {
    for (let turn = 0; turn < count; turn += 1) for (const call of next.splice(0)) call();
  };
  return { clock, next, pass, turns };
}

describe("turns of bursts", () => {
  test("come to one answer in so many turns of the loop, in the order in which they began to wait", () => {
    const { next, pass, turns } = open();
    const taken: string[] = [];
    const bursts = ["a", "b", "c"].map((name) => turns.open(() => void taken.push(name)));
    for (const burst of bursts) expect(burst.add(burstBytes)).toBe(true);
    expect(bursts.map(({ waits }) => waits)).toEqual([true, true, true]);
    const [first] = bursts;
    pass(burstTurns - 1);
    expect(taken).toEqual([]);
    pass(1);
    expect([taken, first?.waits]).toEqual([["a"], false]);
    // Whoever brings a burst again goes behind the others.
    expect(first?.add(burstBytes)).toBe(true);
    pass(burstTurns);
    expect(taken).toEqual(["a", "b"]);
    pass(2 * burstTurns);
    // No turn is asked for in which nothing waits.
    expect([taken, next]).toEqual([["a", "b", "c", "a"], []]);
  });

  test("are not needed by an answer at an engine's pace, however long it is", () => {
    const { clock, next, turns } = open();
    const paced = turns.open(() => undefined);
    for (let sent = 0; sent < 20 * burstBytes; sent += burstBytes / 50) {
      clock.advance(burstMs / 50 + 0.01);
      expect(paced.add(burstBytes / 50)).toBe(false);
    }
    expect(next).toEqual([]);
  });

  test("do not come to an answer that has ended, nor cost those behind it theirs", () => {
    const { pass, turns } = open();
    const taken: string[] = [];
    const [first, second] = ["a", "b"].map((name) => turns.open(() => void taken.push(name)));
    for (const burst of [first, second]) burst?.add(burstBytes);
    first?.end();
    pass(burstTurns);
    expect(taken).toEqual(["b"]);
  });
});

describe("an answer that comes faster than any engine makes one", () => {
  const held = (calls: readonly string[]): readonly string[] =>
    calls.filter((call) => /^(?:pause|resume)$/u.test(call));
  const burst = (): string =>
    `data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n`.repeat(
      Math.ceil(burstBytes / 54),
    );

  async function bursting(options: Pick<Parameters<typeof driveGeneration>[0], "turns"> = {}) {
    const one = driveGeneration({ outputTokensMax: 65_536, ...options });
    one.ask();
    one.answer();
    await one.send(burst());
    return one;
  }

  test("waits for its turn behind each burst, and loses nothing of it", async () => {
    const one = await bursting();
    expect(held(one.calls)).toEqual(["pause"]);
    one.clock.advance(0);
    expect(held(one.calls)).toEqual(["pause", "resume"]);
    await one.send(burst());
    expect(held(one.calls)).toEqual(["pause", "resume", "pause"]);
    one.clock.advance(0);
    await one.send("data: [DONE]\n\n");
    expect(one.text).toBe("a".repeat(2 * Math.ceil(burstBytes / 54)));
  });

  test("stays paused for its reader when its turn comes, and for its turn when its reader goes on", async () => {
    const one = await bursting();
    one.generation.pause();
    one.clock.advance(0);
    expect(held(one.calls)).toEqual(["pause", "pause"]);
    one.generation.resume();
    expect(held(one.calls)).toEqual(["pause", "pause", "resume"]);
    await one.send(burst());
    one.generation.pause();
    one.generation.resume();
    expect(held(one.calls).at(-1)).toBe("pause");
    one.clock.advance(0);
    expect(held(one.calls).at(-1)).toBe("resume");
  });

  test("takes no turn when it was cancelled while it waited", async () => {
    const one = await bursting();
    one.generation.cancel();
    one.clock.advance(0);
    expect([await one.outcome(), held(one.calls), one.clock.waiting]).toEqual([
      "cancelled",
      ["pause"],
      0,
    ]);
  });

  test("leaves its turn to the next one when it was cancelled while it waited", async () => {
    const { pass, turns } = open();
    const first = await bursting({ turns });
    const second = await bursting({ turns });
    first.generation.cancel();
    pass(burstTurns);
    expect(held(second.calls)).toEqual(["pause", "resume"]);
  });
});
