import Anthropic from "@anthropic-ai/sdk";
import { Ajv2020 } from "ajv/dist/2020.js";
import { mkdtempSync } from "node:fs";
import { readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import OpenAI from "openai";
import type { ChatCompletionMessageParam } from "openai/resources/chat/completions";
import type { ResponseInput } from "openai/resources/responses/responses";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { fetchModel, findModel } from "../../engine/src/models.ts";
import { startService, type TestService } from "../service/start-service.ts";

const schema = {
  type: "object" as const,
  properties: {
    city: { type: "string" as const },
    unit: { enum: ["celsius", "fahrenheit"] },
    days: { type: ["integer", "null"] },
  },
  required: ["city", "unit"],
  additionalProperties: false,
};
const description = "The weather in a city.";
const prompt = "What is the weather in Rome? Call the function weather.";
const result = '{"sky":"sunny","degrees":21}';
const stepsMax = 5;

const isValid = new Ajv2020({ strict: false }).compile(schema);

/** Every call that a loop saw, its arguments checked. */
function openCalls() {
  let count = 0;
  return {
    add(name: string, input: unknown): void {
      expect(name).toBe("weather");
      expect([input, isValid(input), isValid.errors]).toEqual([input, true, null]);
      count += 1;
    },
    get count() {
      return count;
    },
  };
}

/** The child of this process that runs the model. */
async function findModelProcess(): Promise<number> {
  const tasks = `/proc/${String(process.pid)}/task`;
  for (const task of await readdir(tasks)) {
    const children = await readFile(`${tasks}/${task}/children`, "utf8");
    for (const child of children.trim().split(" ").filter(Boolean)) {
      const command = await readFile(`/proc/${child}/cmdline`, "utf8");
      if (command.includes("engine/src/main.ts")) return Number(child);
    }
  }
  throw new Error("no process runs the model");
}

describe("the service with the default model", () => {
  let folder = "";
  let service: TestService;

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "tool-loops-"));
    const model = await fetchModel(findModel(null), {
      folders: { dataDir: folder, cacheDir: folder },
      thorough: true,
      environment: process.env,
      onProgress: () => undefined,
      signal: AbortSignal.timeout(200_000),
    });
    service = await startService({
      environment: { TRIBUTARY_DEPLOYMENT_URL: "", TRIBUTARY_MODEL: model },
    });
    const signal = AbortSignal.timeout(60_000);
    while (!service.gateway.describe().ready) await wait(50, undefined, { signal });
    expect(service.gateway.describe().takesTools).toBe(true);
  });

  // The only test that needs a system that tells which processes are whose.
  it.skipIf(process.platform !== "linux")(
    "loses nothing when its process is killed under four streams, and serves again within five seconds",
    async () => {
      const before = await service.credit();
      const streams = await Promise.all(
        [1, 2, 3, 4].map(() => openStream("Count to a thousand.", 500)),
      );
      process.kill(await findModelProcess(), "SIGKILL");
      const killedAtMs = performance.now();
      for (const { rest } of streams) {
        const text = await rest();
        expect(text).toContain("deployment_failed");
        expect(text).not.toContain('"finish_reason":"');
      }
      expect(await service.settledCredit()).toEqual({ ...before, held: 0n });
      const signal = AbortSignal.timeout(20_000);
      while (!service.gateway.describe().ready) await wait(20, undefined, { signal });
      const { rest } = await openStream("Say hello.", 5);
      expect(await rest()).toContain("[DONE]");
      expect(performance.now() - killedAtMs).toBeLessThan(5_000);
    },
  );

  /** A stream of which the first text is there. */
  async function openStream(content: string, most: number) {
    const response = await service.post("/v1/chat/completions", {
      messages: [{ role: "user", content }],
      max_completion_tokens: most,
      stream: true,
    });
    expect(response.status).toBe(200);
    const reader = (response.body ?? new ReadableStream<Uint8Array>()).getReader();
    const decoder = new TextDecoder();
    let text = "";
    const read = async (): Promise<boolean> => {
      const { done, value } = await reader.read();
      text += decoder.decode(value, { stream: true });
      return !done;
    };
    while (!/"content":"[^"]/u.test(text)) expect(await read()).toBe(true);
    return {
      rest: async (): Promise<string> => {
        while (await read()) continue;
        return text;
      },
    };
  }

  afterAll(async () => {
    await service[Symbol.asyncDispose]();
    await rm(folder, { recursive: true, force: true });
  });

  describe.each(["forced", "free"] as const)("%s", (kind) => {
    it("finishes with the OpenAI SDK, Chat Completions", async () => {
      const client = new OpenAI({ apiKey: service.key, baseURL: `${service.url}/v1` });
      const messages: ChatCompletionMessageParam[] = [{ role: "user", content: prompt }];
      const calls = openCalls();
      let finish: string | null = null;
      for (let step = 0; step < stepsMax && finish === null; step += 1) {
        const stream = client.chat.completions.stream({
          model: "service-llm",
          messages,
          tools: [
            { type: "function", function: { name: "weather", description, parameters: schema } },
          ],
          tool_choice: step === 0 && kind === "forced" ? "required" : "auto",
          max_completion_tokens: 100,
          temperature: 0,
        });
        const [choice] = (await stream.finalChatCompletion()).choices;
        if (choice === undefined) throw new Error("no choice");
        messages.push(choice.message);
        for (const call of choice.message.tool_calls ?? []) {
          if (call.type !== "function") continue;
          calls.add(call.function.name, JSON.parse(call.function.arguments));
          messages.push({ role: "tool", tool_call_id: call.id, content: result });
        }
        if (choice.finish_reason !== "tool_calls") finish = choice.finish_reason;
      }
      expect(["stop", "length"]).toContain(finish);
      if (kind === "forced") expect(calls.count).toBeGreaterThan(0);
    });

    it("finishes with the OpenAI SDK, Responses", async () => {
      const client = new OpenAI({ apiKey: service.key, baseURL: `${service.url}/v1` });
      const input: ResponseInput = [{ role: "user", content: prompt }];
      const calls = openCalls();
      let text: string | null = null;
      for (let step = 0; step < stepsMax && text === null; step += 1) {
        const response = await client.responses
          .stream({
            model: "service-llm",
            input,
            tools: [
              { type: "function", name: "weather", description, parameters: schema, strict: false },
            ],
            tool_choice:
              step === 0 && kind === "forced" ? { type: "function", name: "weather" } : "auto",
            max_output_tokens: 100,
            temperature: 0,
          })
          .finalResponse();
        const made = response.output.filter((item) => item.type === "function_call");
        for (const item of response.output) if (item.type === "message") input.push(item);
        for (const { arguments: written, call_id, name } of made) {
          calls.add(name, JSON.parse(written));
          input.push({ type: "function_call", call_id, name, arguments: written });
          input.push({ type: "function_call_output", call_id, output: result });
        }
        if (made.length === 0) text = response.output_text;
      }
      expect(text).not.toBe("");
      expect(text).not.toBeNull();
      if (kind === "forced") expect(calls.count).toBeGreaterThan(0);
    });

    it("finishes with the Anthropic SDK", async () => {
      const client = new Anthropic({ apiKey: service.key, baseURL: service.url });
      const messages: Anthropic.MessageParam[] = [{ role: "user", content: prompt }];
      const calls = openCalls();
      let stop: string | null = null;
      for (let step = 0; step < stepsMax && stop === null; step += 1) {
        const message = await client.messages
          .stream({
            model: "service-llm",
            messages,
            tools: [{ name: "weather", description, input_schema: schema }],
            tool_choice: { type: step === 0 && kind === "forced" ? "any" : "auto" },
            max_tokens: 100,
            temperature: 0,
          })
          .finalMessage();
        messages.push({ role: "assistant", content: message.content });
        const results: Anthropic.ToolResultBlockParam[] = [];
        for (const block of message.content) {
          if (block.type !== "tool_use") continue;
          calls.add(block.name, block.input);
          results.push({ type: "tool_result", tool_use_id: block.id, content: result });
        }
        if (results.length > 0) messages.push({ role: "user", content: results });
        if (message.stop_reason !== "tool_use") stop = message.stop_reason;
      }
      expect(["end_turn", "max_tokens"]).toContain(stop);
      if (kind === "forced") expect(calls.count).toBeGreaterThan(0);
    });
  });
});
