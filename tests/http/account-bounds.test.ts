import { describe, expect, it } from "vitest";
import { Failure } from "../../src/failure.ts";
import { type AccountEntry, openAccountBounds } from "../../src/http/account-bounds.ts";
import { limits } from "../../src/limits.ts";

const mebibyte = 1024 * 1024;

function account(accountId: string, concurrentRequests = 4) {
  return { accountId, concurrentRequests };
}

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
    const bounds = openAccountBounds();
    const entries = Array.from({ length: most }, () => bounds.enter(account("acct_a", slots)));
    expect(outcome(() => bounds.enter(account("acct_a", slots)))).toBe("too_many_concurrent");
    expect(outcome(() => bounds.enter(account("acct_b", slots)))).toBe("done");
    entries[0]?.[Symbol.dispose]();
    // Given back once, however often it is disposed.
    entries[0]?.[Symbol.dispose]();
    expect(outcome(() => bounds.enter(account("acct_a", slots)))).toBe("done");
    expect(outcome(() => bounds.enter(account("acct_a", slots)))).toBe("too_many_concurrent");
  });
});

it("an account with more slots than others may have more requests under way", () => {
  const bounds = openAccountBounds();
  for (let count = 0; count < 80; count += 1) bounds.enter(account("acct_a", 20));
  expect(outcome(() => bounds.enter(account("acct_a", 20)))).toBe("too_many_concurrent");
  // What the ledger says now is what counts now.
  expect(outcome(() => bounds.enter(account("acct_a", 21)))).toBe("done");
  for (let count = 0; count < 64; count += 1) bounds.enter(account("acct_b"));
  expect(outcome(() => bounds.enter(account("acct_b")))).toBe("too_many_concurrent");
});

describe("the bytes of an account", () => {
  it("are those announced, or those held where they are more", () => {
    const bounds = openAccountBounds();
    const most = limits.accountBodyBytesMax;
    const [one, other] = [bounds.enter(account("acct_a")), bounds.enter(account("acct_a"))];
    one.expect(most - 10);
    expect(outcome(() => other.expect(11))).toBe("too_many_concurrent");
    expect(outcome(() => other.expect(10))).toBe("done");
    // What was announced is there already.
    expect(outcome(() => one.hold(most - 10))).toBe("done");
    expect(outcome(() => one.hold(1))).toBe("too_many_concurrent");
    other.release();
    expect(outcome(() => one.hold(1))).toBe("done");
    expect(outcome(() => bounds.enter(account("acct_b")).expect(most))).toBe("done");
  });

  it("are free again when a body is released, refused half way, or its request over", () => {
    const bounds = openAccountBounds();
    const most = limits.accountBodyBytesMax;
    for (let times = 0; times < 3; times += 1) {
      const entry = bounds.enter(account("acct_a"));
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
    expect(outcome(() => bounds.enter(account("acct_a")).hold(most))).toBe("done");
  });
});

describe("the bytes of all accounts together", () => {
  function fill(bounds: ReturnType<typeof openAccountBounds>, use: (entry: AccountEntry) => void) {
    return Array.from(
      { length: limits.bodiesBytesMax / limits.accountBodyBytesMax },
      (_, number) => {
        const entry = bounds.enter(account(`acct_${String(number)}`));
        use(entry);
        return entry;
      },
    );
  }

  it("are those that came: announcing takes nothing from others", () => {
    const bounds = openAccountBounds();
    fill(bounds, (entry) => entry.expect(limits.accountBodyBytesMax));
    const late = bounds.enter(account("acct_late"));
    expect(outcome(() => late.hold(4 * mebibyte))).toBe("done");
  });

  it("end in 503, and are there again when one account has ended", () => {
    const bounds = openAccountBounds();
    const entries = fill(bounds, (entry) => entry.hold(limits.accountBodyBytesMax));
    const late = bounds.enter(account("acct_late"));
    expect(outcome(() => late.hold(1))).toBe("overloaded");
    entries[0]?.[Symbol.dispose]();
    expect(outcome(() => late.hold(limits.accountBodyBytesMax))).toBe("done");
    expect(outcome(() => bounds.enter(account("acct_later")).hold(1))).toBe("overloaded");
  });
});
