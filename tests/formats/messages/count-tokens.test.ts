import { expect, test } from "vitest";
import { parseCountTokens } from "../../../src/formats/messages/count-tokens.ts";
import { refusalOf, signedOnly } from "../answer-context.ts";

const body = {
  model: "m",
  system: "S",
  messages: [
    { role: "user", content: "U" },
    {
      role: "assistant",
      content: [
        { type: "thinking", thinking: "R", signature: "" },
        { type: "text", text: "A" },
        { type: "tool_use", id: "t1", name: "f", input: { x: 1 } },
      ],
    },
    { role: "user", content: [{ type: "tool_result", tool_use_id: "t1", content: "T" }] },
  ],
  tools: [{ name: "f", description: "D", input_schema: { type: "object" } }],
};

const refused = (over: object) =>
  refusalOf(() => parseCountTokens({ ...body, ...over }, signedOnly)).facts.param;

test("everything that reaches the model counts", () => {
  const { texts, overheadTokens } = parseCountTokens(body, signedOnly);
  expect(texts).toEqual(["S", "U", "R", "A", "f", '{"x":1}', "T", "f", "D", '{"type":"object"}']);
  expect(overheadTokens).toBe(4 + 4 * 5 + 12 + 12);
});

test("options do not count, and their values are not looked at", () => {
  const counted = parseCountTokens(body, signedOnly);
  expect(parseCountTokens({ ...body, max_tokens: "x", stream: 5 }, signedOnly)).toEqual(counted);
  expect(
    parseCountTokens({ messages: [{ role: "user", content: "a" }], tools: [] }, signedOnly),
  ).toMatchObject({ texts: ["a"], overheadTokens: 9 });
});

test("a body that no message could have is refused by name", () => {
  const tooMany = Array.from({ length: 2_001 }, () => ({ role: "user", content: "" }));
  expect(refused({ messages: tooMany })).toBe("messages");
  expect(refused({ messages: undefined })).toBe("messages");
  expect(refused({ thread: "t" })).toBe("thread");
});
