import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startService, type TestService } from "./start-service.ts";
import { processorMs } from "../doubles/processor-clock.ts";

let service: TestService;
beforeAll(async () => {
  service = await startService({ deployment: { contextTokens: null } });
});
afterAll(() => service[Symbol.asyncDispose]());

type Build = (repeat: (one: unknown) => readonly unknown[]) => Record<string, unknown>;

const text = { type: "text", text: "a" };
const hi = { role: "user", content: "Hi" };
const call = { id: "c", type: "function", function: { name: "f", arguments: "" } };
const schema = (repeat: (one: unknown) => readonly unknown[]) => ({ type: "object", x: repeat(0) });

/** Requests in which one list is as long as the body lets it be. */
const crowds: Readonly<Record<string, Readonly<Record<string, Build>>>> = {
  "/v1/chat/completions": {
    "parts of a user": (repeat) => ({ messages: [{ role: "user", content: repeat(text) }] }),
    "parts of an assistant": (repeat) => ({
      messages: [hi, { role: "assistant", content: repeat(text) }],
    }),
    "parts of a system": (repeat) => ({
      messages: [{ role: "system", content: repeat(text) }, hi],
    }),
    calls: (repeat) => ({ messages: [hi, { role: "assistant", tool_calls: repeat(call) }] }),
    "parts of a result": (repeat) => ({
      messages: [
        hi,
        { role: "assistant", tool_calls: [call] },
        { role: "tool", tool_call_id: "c", content: repeat(text) },
      ],
    }),
    stops: (repeat) => ({ messages: [hi], stop: repeat("x") }),
    "numbers in a schema": (repeat) => ({
      messages: [hi],
      tools: [{ type: "function", function: { name: "f", parameters: schema(repeat) } }],
    }),
    "ignored things": (repeat) => ({ messages: [hi], x_unknown: repeat({}) }),
    messages: (repeat) => ({ messages: repeat({}) }),
    tools: (repeat) => ({ messages: [hi], tools: repeat({}) }),
  },
  "/v1/responses": {
    "parts of a user": (repeat) => ({ input: [{ role: "user", content: repeat(text) }] }),
    "parts of an assistant": (repeat) => ({
      input: [hi, { role: "assistant", content: repeat(text) }],
    }),
    "parts of a result": (repeat) => ({
      input: [
        hi,
        { type: "function_call", call_id: "c", name: "f", arguments: "" },
        { type: "function_call_output", call_id: "c", output: repeat(text) },
      ],
    }),
    "parts of reasoning": (repeat) => ({
      input: [hi, { type: "reasoning", summary: repeat({ type: "summary_text", text: "s" }) }],
    }),
    include: (repeat) => ({ input: "Hi", include: repeat("") }),
    metadata: (repeat) => ({ input: "Hi", metadata: { a: repeat("") } }),
    items: (repeat) => ({ input: repeat({}) }),
    tools: (repeat) => ({ input: "Hi", tools: repeat({ type: "web_search" }) }),
    "tools of namespaces": (repeat) => ({
      input: "Hi",
      tools: [{ type: "namespace", name: "n", tools: repeat({}) }],
    }),
    "additional tools": (repeat) => ({
      input: [{ type: "additional_tools", role: "developer", tools: repeat({}) }, hi],
    }),
  },
  "/v1/messages": {
    "blocks of a user": (repeat) => ({ messages: [{ role: "user", content: repeat(text) }] }),
    "blocks of an assistant": (repeat) => ({
      messages: [hi, { role: "assistant", content: repeat(text) }],
    }),
    system: (repeat) => ({ messages: [hi], system: repeat(text) }),
    calls: (repeat) => ({
      messages: [
        hi,
        { role: "assistant", content: repeat({ type: "tool_use", id: "c", name: "f", input: {} }) },
      ],
    }),
    results: (repeat) => ({
      messages: [
        hi,
        { role: "assistant", content: [{ type: "tool_use", id: "c", name: "f", input: {} }] },
        { role: "user", content: repeat({ type: "tool_result", tool_use_id: "c" }) },
      ],
    }),
    "blocks of a result": (repeat) => ({
      messages: [
        hi,
        { role: "assistant", content: [{ type: "tool_use", id: "c", name: "f", input: {} }] },
        {
          role: "user",
          content: [{ type: "tool_result", tool_use_id: "c", content: repeat(text) }],
        },
      ],
    }),
    thinking: (repeat) => ({
      messages: [
        hi,
        { role: "assistant", content: repeat({ type: "thinking", thinking: "t", signature: "" }) },
      ],
    }),
    "input of a call": (repeat) => ({
      messages: [
        hi,
        {
          role: "assistant",
          content: [{ type: "tool_use", id: "c", name: "f", input: { a: repeat(0) } }],
        },
      ],
    }),
    stops: (repeat) => ({ messages: [hi], stop_sequences: repeat("x") }),
    tools: (repeat) => ({ messages: [hi], tools: repeat({}) }),
  },
};

const cases = Object.entries(crowds).flatMap(([path, builds]) =>
  Object.entries(builds).map(([name, build]) => ({ path, name, build })),
);
const counted = cases
  .filter(
    ({ name, path }) => path === "/v1/messages" && /^(?:blocks of a user|calls|tools)$/.test(name),
  )
  .map(({ build, name }) => ({ path: "/v1/messages/count_tokens", name, build }));

/** The JSON of a request in which the list has as many elements as fit into so many bytes. */
function crowd(build: Build, bytes: number): string {
  const mark = "@@@";
  let one = "";
  const frame = JSON.stringify(
    build((element) => {
      one = JSON.stringify(element);
      return [mark];
    }),
  );
  const [before = "", after = ""] = frame.split(`"${mark}"`);
  const count = Math.floor((bytes - frame.length) / (one.length + 1));
  return `${before}${`${one},`.repeat(count)}${one}${after}`;
}

describe("a list as long as a body can be", () => {
  it.each([...cases, ...counted])("of $name is no trouble for $path", async ({ path, build }) => {
    const bytes = path.endsWith("count_tokens") ? 4 * 1024 * 1024 - 100 : 1_999_000;
    const startMs = processorMs();
    const response = await service.post(path, crowd(build, bytes));
    const answer = await response.text();
    expect([200, 400], answer.slice(0, 300)).toContain(response.status);
    expect(processorMs() - startMs).toBeLessThan(5_000);
    expect((await service.settledCredit()).held).toBe(0n);
  });
});
