import { expect, test } from "vitest";
import { onePress } from "../../src/cli/one-press.ts";

test("a signal that npm repeats is one, and a second Ctrl-C of a person is a second one", () => {
  let nowMs = 10;
  const heard: string[] = [];
  const listener = onePress<string>(
    (signal) => void heard.push(signal),
    () => nowMs,
  );
  listener("SIGINT");
  nowMs += 30;
  listener("SIGINT");
  expect(heard).toEqual(["SIGINT"]);
  nowMs += 700;
  listener("SIGINT");
  listener("SIGTERM");
  expect(heard).toEqual(["SIGINT", "SIGINT"]);
});
