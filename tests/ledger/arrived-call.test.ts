import { expect, test } from "vitest";
import { arrivedCall } from "../../src/ledger/sqlite/thread-messages.ts";
import { openStore } from "../../src/ledger/sqlite/store.ts";
import { defaultSettings, openTill, refusal } from "./support.ts";

test("a call of a process that stood still makes no room in another one's window", () => {
  using store = openStore({ ...defaultSettings, path: ":memory:", requestsPerMinute: 2 });
  const till = openTill(store, "a", 1_000_000n);
  const stopped = { name: "expire", argument: null, nowMs: 500 } as const;
  till.authorize(61_000);
  till.authorize(62_000);
  // Sent at 500, stopped, and let on at 63,000.
  const [answer] = store.execute([arrivedCall(stopped, 62_500)]);
  expect(answer).toEqual({ ok: true, value: 0 });
  expect(refusal(() => till.authorize(63_000))).toBe("rate_limited");
});

test("an ordinary wait leaves the time of a call as it is", () => {
  const call = { name: "expire", argument: null, nowMs: 500 } as const;
  expect(arrivedCall(call, 20)).toBe(call);
});
