import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { describe, expect } from "vitest";
import type { Laws } from "./laws.ts";
import type { Served } from "./served.ts";

const parameters = {
  type: "object" as const,
  properties: { city: { type: "string", enum: ["Paris", "Rome"] }, days: { type: "integer" } },
  required: ["city", "days"],
  additionalProperties: false,
};
const question = "What will the weather be in Rome for 3 days?";
const description = "Tells the weather of a city.";
const model = "service-llm";

function checkArguments(written: unknown): void {
  const { city, days } = (typeof written === "string" ? JSON.parse(written) : written) as {
    readonly city: string;
    readonly days: number;
  };
  expect(["Paris", "Rome"]).toContain(city);
  expect(days).toBeTypeOf("number");
}

/** A forced call, its result, and the next turn, as applications have them: with the vendors' own SDKs. */
export function describeSdks(served: () => Served, law: Laws): void {
  describe.each([false, true])("tool loops of the official SDKs, streamed: %s", (stream) => {
    const { because, test } = law("forcedCalls");

    test(`Chat Completions${because}`, async () => {
      const client = openai(served());
      const tools = [
        {
          type: "function" as const,
          function: { name: "weather", description, parameters, strict: true },
        },
      ];
      const messages: OpenAI.Chat.ChatCompletionMessageParam[] = [
        { role: "user", content: question },
      ];
      const asked = { model, messages, tools, temperature: 0, max_tokens: 200 };
      const forced = { ...asked, tool_choice: "required" as const };
      const first = stream
        ? await client.chat.completions.stream(forced).finalChatCompletion()
        : await client.chat.completions.create(forced);
      const message = first.choices[0]?.message;
      const calls = message?.tool_calls ?? [];
      expect(calls.length).toBeGreaterThan(0);
      if (message !== undefined) messages.push(message);
      for (const call of calls) {
        if (call.type !== "function") throw new Error("another kind of call");
        checkArguments(call.function.arguments);
        messages.push({ role: "tool", tool_call_id: call.id, content: "Sun, 25 degrees." });
      }
      const next = { ...asked, tool_choice: "none" as const };
      const second = stream
        ? await client.chat.completions.stream(next).finalChatCompletion()
        : await client.chat.completions.create(next);
      expect(second.choices[0]?.message.content).toBeTruthy();
    });

    test(`Responses${because}`, async () => {
      const client = openai(served());
      const tools = [
        { type: "function" as const, name: "weather", description, parameters, strict: true },
      ];
      const input: OpenAI.Responses.ResponseInput = [{ role: "user", content: question }];
      const asked = { model, input, tools, temperature: 0, max_output_tokens: 200, store: false };
      const forced = { ...asked, tool_choice: "required" as const };
      const first = stream
        ? await client.responses.stream(forced).finalResponse()
        : await client.responses.create(forced);
      const output: readonly OpenAI.Responses.ResponseOutputItem[] = first.output;
      const calls = output.filter(
        (item): item is OpenAI.Responses.ResponseFunctionToolCall => item.type === "function_call",
      );
      expect(calls.length).toBeGreaterThan(0);
      for (const { arguments: written, call_id, name } of calls) {
        checkArguments(written);
        input.push({ type: "function_call", call_id, name, arguments: written });
        input.push({ type: "function_call_output", call_id, output: "Sun, 25 degrees." });
      }
      const next = { ...asked, tool_choice: "none" as const };
      const second = stream
        ? await client.responses.stream(next).finalResponse()
        : await client.responses.create(next);
      expect(second.output_text).toBeTruthy();
    });

    test(`Messages${because}`, async () => {
      const { service } = served();
      const client = new Anthropic({ baseURL: service.url, apiKey: service.key, maxRetries: 0 });
      const tools = [{ name: "weather", description, input_schema: parameters, strict: true }];
      const messages: Anthropic.MessageParam[] = [{ role: "user", content: question }];
      const asked = { model, messages, tools, temperature: 0, max_tokens: 200 };
      const forced = { ...asked, tool_choice: { type: "any" as const } };
      const first = stream
        ? await client.messages.stream(forced).finalMessage()
        : await client.messages.create(forced);
      const calls = first.content.filter((block) => block.type === "tool_use");
      expect(calls.length).toBeGreaterThan(0);
      for (const { input } of calls) checkArguments(input);
      messages.push({ role: "assistant", content: first.content });
      messages.push({
        role: "user",
        content: calls.map(({ id }) => ({
          type: "tool_result" as const,
          tool_use_id: id,
          content: "Sun, 25 degrees.",
        })),
      });
      const next = { ...asked, tool_choice: { type: "none" as const } };
      const second = stream
        ? await client.messages.stream(next).finalMessage()
        : await client.messages.create(next);
      expect(second.content.some((block) => block.type === "text" && block.text !== "")).toBe(true);
    });
  });
}

function openai({ service }: Served): OpenAI {
  return new OpenAI({ baseURL: `${service.url}/v1`, apiKey: service.key, maxRetries: 0 });
}
