import { describe, expect, it } from "vitest";
import { Failure } from "../../src/failure.ts";
import { type AccountEntry, openAccountBounds } from "../../src/http/account-bounds.ts";
import { limits } from "../../src/limits.ts";

const mebibyte = 1024 * 1024;

/** The code with which a step is refused, or "done". */
function outcome(step: () => unknown): string {
  try {
    step();
    return "done";
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    expect(error.facts.retryAfterSeconds).toBe(2);
    return error.code;
  }
}

describe("the requests of an account", () => {
  it.each([
    [4, 64],
    [16, 64],
    [17, 68],
    [1_000, 4_000],
  ])("with %d slots may be %d at once, those of others aside", (slots, most) => {
    const bounds = openAccountBounds(slots);
    const entries = Array.from({ length: most }, () => bounds.enter("acct_a"));
    expect(outcome(() => bounds.enter("acct_a"))).toBe("too_many_concurrent");
    expect(outcome(() => bounds.enter("acct_b"))).toBe("done");
    entries[0]?.[Symbol.dispose]();
    // Given back once, however often it is disposed.
    entries[0]?.[Symbol.dispose]();
    expect(outcome(() => bounds.enter("acct_a"))).toBe("done");
    expect(outcome(() => bounds.enter("acct_a"))).toBe("too_many_concurrent");
  });
});

describe("the bytes of an account", () => {
  it("are those announced, or those held where they are more", () => {
    const bounds = openAccountBounds(4);
    const most = limits.accountBodyBytesMax;
    const [one, other] = [bounds.enter("acct_a"), bounds.enter("acct_a")];
    one.expect(most - 10);
    expect(outcome(() => other.expect(11))).toBe("too_many_concurrent");
    expect(outcome(() => other.expect(10))).toBe("done");
    // What was announced is there already.
    expect(outcome(() => one.hold(most - 10))).toBe("done");
    expect(outcome(() => one.hold(1))).toBe("too_many_concurrent");
    other.release();
    expect(outcome(() => one.hold(1))).toBe("done");
    expect(outcome(() => bounds.enter("acct_b").expect(most))).toBe("done");
  });

  it("are free again when a body is released, refused half way, or its request over", () => {
    const bounds = openAccountBounds(4);
    const most = limits.accountBodyBytesMax;
    for (let times = 0; times < 3; times += 1) {
      const entry = bounds.enter("acct_a");
      entry.expect(most / 2);
      entry.hold(most);
      expect(outcome(() => entry.hold(1))).toBe("too_many_concurrent");
      entry.release();
      entry.release();
      entry.hold(most);
      entry[Symbol.dispose]();
      // Pieces that come behind the end of their request count nowhere.
      entry.hold(most);
      entry.hold(most);
    }
    expect(outcome(() => bounds.enter("acct_a").hold(most))).toBe("done");
  });
});

describe("the bytes of all accounts together", () => {
  function fill(bounds: ReturnType<typeof openAccountBounds>, use: (entry: AccountEntry) => void) {
    return Array.from(
      { length: limits.bodiesBytesMax / limits.accountBodyBytesMax },
      (_, account) => {
        const entry = bounds.enter(`acct_${String(account)}`);
        use(entry);
        return entry;
      },
    );
  }

  it("are those that came: announcing takes nothing from others", () => {
    const bounds = openAccountBounds(4);
    fill(bounds, (entry) => entry.expect(limits.accountBodyBytesMax));
    const late = bounds.enter("acct_late");
    expect(outcome(() => late.hold(4 * mebibyte))).toBe("done");
  });

  it("end in 503, and are there again when one account has ended", () => {
    const bounds = openAccountBounds(4);
    const entries = fill(bounds, (entry) => entry.hold(limits.accountBodyBytesMax));
    const late = bounds.enter("acct_late");
    expect(outcome(() => late.hold(1))).toBe("overloaded");
    entries[0]?.[Symbol.dispose]();
    expect(outcome(() => late.hold(limits.accountBodyBytesMax))).toBe("done");
    expect(outcome(() => bounds.enter("acct_later").hold(1))).toBe("overloaded");
  });
});
