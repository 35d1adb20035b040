import { expect, test } from "vitest";
import { openCallRegister } from "../../src/formats/call-register.ts";
import { refusalOf } from "./answer-context.ts";

test("a result answers a call that came before it", () => {
  const register = openCallRegister();
  const place = { param: "messages[4].tool_call_id", item: "messages[4]" };
  const failure = refusalOf(() => register.ensureAnswers("c1", place));
  expect(failure.facts.param).toBe(place.param);
  expect(failure.message).toContain('messages[4] is the result of the call "c1"');
  register.add("c1");
  expect(() => register.ensureAnswers("c1", place)).not.toThrow();
  expect(refusalOf(() => register.ensureAnswers("__proto__", place)).facts.param).toBe(place.param);
});
