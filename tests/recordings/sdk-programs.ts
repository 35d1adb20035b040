import Anthropic from "@anthropic-ai/sdk";
import { betaTool } from "@anthropic-ai/sdk/helpers/beta/json-schema";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import {
  generateText,
  isStepCount,
  jsonSchema,
  type LanguageModel,
  streamText,
  type SystemModelMessage,
  tool,
} from "ai";
import OpenAI from "openai";
import { ResponsesToolRunner } from "openai/helpers/responses-tool-runner";

/** Where a program's client connects, and as whom. */
export interface Access {
  readonly url: string;
  readonly key: string;
}

/** A vendor's SDK in a program: what it is asked to do, each time in its own words. */
export interface Sdk {
  readonly name: string;
  readonly packages: readonly string[];
  readonly asks: (access: Access) => Readonly<Record<string, () => Promise<unknown>>>;
}

const model = "service-llm";
const prompt = "How is the weather in Rome?";
const system = "Answer in one sentence.";
const weather = {
  name: "weather",
  description: "Tells the weather of a city",
  schema: {
    type: "object" as const,
    properties: { city: { type: "string" as const } },
    required: ["city"],
    additionalProperties: false,
  },
  run: (input: unknown): string => `${JSON.stringify(input)}: sun, 21 degrees`,
};

const openai: Sdk = {
  name: "openai",
  packages: ["openai"],
  asks({ url, key }) {
    const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0 });
    const { completions } = client.chat;
    const messages = [
      { role: "system" as const, content: system },
      { role: "user" as const, content: prompt },
    ];
    const { name, description, schema: parameters } = weather;
    const runnable = {
      type: "function" as const,
      function: { name, description, parameters, parse: JSON.parse, function: weather.run },
    };
    const runner = new ResponsesToolRunner({
      functions: [
        {
          tool: { type: "function", name, description, parameters, strict: false },
          execute: weather.run,
        },
      ],
    });
    const stateless = { store: false, include: ["reasoning.encrypted_content" as const] };
    const asked = { model, instructions: system, input: prompt };
    return {
      "chat, whole": () => completions.create({ model, messages }),
      "chat, streamed": () =>
        completions
          .stream({ model, messages, stream_options: { include_usage: true } })
          .finalChatCompletion(),
      "chat, tools": () =>
        completions.runTools({ model, messages, tools: [runnable] }).finalContent(),
      "responses, whole": () => client.responses.create(asked),
      "responses, streamed": () => client.responses.stream(asked).finalResponse(),
      "responses, tools": () => runner.run(client, { ...asked, ...stateless }),
    };
  },
};

const anthropic: Sdk = {
  name: "anthropic",
  packages: ["@anthropic-ai/sdk"],
  asks({ url, key }) {
    const client = new Anthropic({ baseURL: url, apiKey: key, maxRetries: 0 });
    const messages = [{ role: "user" as const, content: prompt }];
    const asked = { model, max_tokens: 1_000, system, messages };
    const { name, description, schema: inputSchema } = weather;
    const runnable = betaTool({ name, description, inputSchema, run: weather.run });
    return {
      whole: () => client.messages.create(asked),
      streamed: () => client.messages.stream(asked).finalMessage(),
      tools: () => client.beta.messages.toolRunner({ ...asked, tools: [runnable] }).runUntilDone(),
      count: () => client.messages.countTokens({ model, system, messages }),
    };
  },
};

type ProviderOptions = NonNullable<Parameters<typeof generateText>[0]["providerOptions"]>;

function aiWith(
  provider: string,
  modelsOf: (access: Access) => Readonly<Record<string, LanguageModel>>,
  providerOptions: ProviderOptions = {},
): Sdk {
  const instructions: SystemModelMessage = { role: "system", content: system };
  const inputSchema = jsonSchema<{ city: string }>(weather.schema);
  const runnable = tool({
    description: weather.description,
    inputSchema,
    execute: (input) => weather.run(input),
  });
  return {
    name: `ai with ${provider}`,
    packages: ["ai", `@ai-sdk/${provider}`],
    asks(access) {
      const asks: Record<string, () => Promise<unknown>> = {};
      for (const [title, languageModel] of Object.entries(modelsOf(access))) {
        const asked = {
          model: languageModel,
          maxRetries: 0,
          maxOutputTokens: 1_000,
          instructions,
          prompt,
          providerOptions,
        };
        const running = { ...asked, tools: { weather: runnable }, stopWhen: isStepCount(3) };
        asks[`${title}, whole`] = () => generateText(asked);
        asks[`${title}, streamed`] = async () => streamText(asked).text;
        asks[`${title}, tools`] = () => generateText(running);
      }
      return asks;
    },
  };
}

/** The SDKs that are recorded. */
export const sdks: readonly Sdk[] = [
  openai,
  anthropic,
  aiWith(
    "openai",
    ({ url, key }) => {
      const provider = createOpenAI({ baseURL: `${url}/v1`, apiKey: key });
      return { responses: provider(model), chat: provider.chat(model) };
    },
    { openai: { store: false, include: ["reasoning.encrypted_content"] } },
  ),
  aiWith("anthropic", ({ url, key }) => ({
    messages: createAnthropic({ baseURL: `${url}/v1`, apiKey: key })(model),
  })),
  aiWith("openai-compatible", ({ url, key }) => ({
    chat: createOpenAICompatible({ name: "tributary", baseURL: `${url}/v1`, apiKey: key })(model),
  })),
];
