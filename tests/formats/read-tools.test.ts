import { expect, test } from "vitest";
import type { Tool } from "../../src/conversation/conversation.ts";
import {
  ensureDistinctTools,
  readToolName,
  resolveToolChoice,
} from "../../src/formats/read-tools.ts";
import { refusalOf } from "./answer-context.ts";

const tool = (name: string): Tool => ({ name, description: null, parameters: null });

test.each(["a", "A-Za_z.0-9", "mcp__server__tool", "x".repeat(128)])("%s names a tool", (name) => {
  expect(readToolName(name, "tools[0].name")).toBe(name);
});

test.each(["", "a b", "é", "a\n", "x".repeat(129), "\ud800"])("%j names no tool", (name) => {
  const failure = refusalOf(() => readToolName(name, "tools[0].function.name"));
  expect(failure.facts.param).toBe("tools");
  expect(failure.message).toContain("tools[0].function.name");
});

test("two tools of one name are refused", () => {
  expect(() => ensureDistinctTools([tool("a"), tool("b")])).not.toThrow();
  expect(refusalOf(() => ensureDistinctTools([tool("a"), tool("a")])).facts.param).toBe("tools");
});

test("a choice is checked against the tools", () => {
  const some = { tools: [tool("a")], hosted: new Set(["web_search"]) };
  const hostedOnly = { tools: [], hosted: new Set(["web_search"]) };
  expect(resolveToolChoice({ type: "tool", name: "a" }, some)).toEqual({ type: "tool", name: "a" });
  expect(resolveToolChoice({ type: "required" }, some)).toEqual({ type: "required" });
  expect(resolveToolChoice({ type: "none" }, some)).toEqual({ type: "none" });
  expect(resolveToolChoice({ type: "required" }, hostedOnly)).toEqual({ type: "auto" });
  expect(refusalOf(() => resolveToolChoice({ type: "tool", name: "b" }, some)).code).toBe(
    "invalid_request",
  );
  for (const offered of [some, hostedOnly])
    expect(
      refusalOf(() => resolveToolChoice({ type: "tool", name: "web_search" }, offered)),
    ).toMatchObject({ code: "not_offered", facts: { param: "tool_choice" } });
  const nothing = { tools: [], hosted: new Set<string>() };
  expect(refusalOf(() => resolveToolChoice({ type: "tool", name: "a" }, nothing)).code).toBe(
    "invalid_request",
  );
});
