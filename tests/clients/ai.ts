import {
  APICallError,
  generateText,
  isStepCount,
  jsonSchema,
  type LanguageModel,
  type ModelMessage,
  RetryError,
  streamText,
  tool,
  type ToolSet,
} from "ai";
import { isRecord } from "../cases/files.ts";
import { without } from "./accumulators.ts";
import type {
  ClientKind,
  ConnectedClient,
  Connection,
  Question,
  SeenAnswer,
  SeenError,
} from "./client.ts";
import { weather } from "./client.ts";

type ProviderOptions = NonNullable<Parameters<typeof generateText>[0]["providerOptions"]>;

/** What `ai` with one provider differs in. */
export interface AiKind extends Pick<ClientKind, "name" | "format"> {
  /** Why a thought does not reach the application, where it does not. */
  readonly lacksReasoning?: string;
  readonly modelOf: (connection: Connection) => LanguageModel;
  readonly providerOptions?: ProviderOptions;
  readonly impossibleField: string;
  readonly returnsReasoning: boolean;
}

const inputSchema = jsonSchema<{ city: string }>(weather.schema);
const { description } = weather;

/** Offered only. */
const offeredTools: ToolSet = { weather: tool({ description, inputSchema }) };

/** Run by the SDK itself. */
const runTools: ToolSet = {
  weather: tool({ description, inputSchema, execute: weather.run }),
};

const everyClass = "AI_APICallError";

/** `ai` with one provider, as the laws speak to it. */
export function aiClient(kind: AiKind): ClientKind {
  const { name, format, lacksReasoning, impossibleField, returnsReasoning } = kind;
  const noCall = "the SDK has no call for it";
  return {
    name,
    format,
    lacks: {
      models: noCall,
      "token count": noCall,
      ...(lacksReasoning === undefined ? {} : { reasoning: lacksReasoning }),
    },
    parsesCalls: true,
    impossibleField,
    errorNames: {
      400: everyClass,
      401: everyClass,
      402: everyClass,
      403: everyClass,
      404: everyClass,
      413: everyClass,
      429: everyClass,
      502: everyClass,
      503: everyClass,
    },
    loopsReturnReasoning: { generateText: returnsReasoning, streamText: returnsReasoning },
    finishes: { stop: "stop", length: "length", calls: "tool-calls" },
    describeError: describeAiError,
    connect: (connection) => connect(kind, connection),
  };
}

function connect(kind: AiKind, connection: Connection): ConnectedClient {
  const model = kind.modelOf(connection);
  const base = {
    model,
    maxRetries: connection.maxRetries,
    maxOutputTokens: 1_000,
    ...(kind.providerOptions === undefined ? {} : { providerOptions: kind.providerOptions }),
  };
  const settingsOf = ({ prompt, tools, signal }: Question) => ({
    ...base,
    prompt,
    ...(tools === true ? { tools: offeredTools } : {}),
    ...(signal === undefined ? {} : { abortSignal: signal }),
  });
  const looping = { ...base, tools: runTools, stopWhen: isStepCount(5) };
  return {
    whole: async (question) => seeResult(await generateText(settingsOf(question))),
    async streamed(question) {
      const result = streamText({ ...settingsOf(question), onError: () => undefined });
      for await (const part of result.stream) {
        if (part.type === "text-delta") question.onText?.(part.text);
        if (part.type === "error") throw part.error;
        if (part.type === "abort") throw new Error("aborted");
      }
      return seeResult({
        text: await result.text,
        reasoningText: await result.reasoningText,
        toolCalls: await result.toolCalls,
        finishReason: await result.finishReason,
        usage: await result.usage,
        content: await result.content,
      });
    },
    askForTheImpossible: () =>
      generateText({
        ...base,
        messages: [
          {
            role: "user",
            content: [{ type: "file", mediaType: "image/png", data: "iVBORw0KGgoAAAANSUhEUg==" }],
          },
        ],
      }),
    async converse(prompts) {
      const messages: ModelMessage[] = [];
      const texts: string[] = [];
      for (const prompt of prompts) {
        messages.push({ role: "user", content: prompt });
        const result = await generateText({ ...base, messages });
        messages.push(...result.response.messages);
        texts.push(result.text);
      }
      return texts;
    },
    loops: {
      generateText: async (prompt) => (await generateText({ ...looping, prompt })).text,
      streamText: async (prompt) => {
        let text = "";
        for await (const part of streamText({ ...looping, prompt }).stream) {
          if (part.type === "error") throw part.error;
          if (part.type === "start-step") text = "";
          if (part.type === "text-delta") text += part.text;
        }
        return text;
      },
    },
  };
}

interface AiResult {
  readonly text: string;
  readonly reasoningText: string | undefined;
  readonly toolCalls: readonly { toolCallId: string; toolName: string; input: unknown }[];
  readonly finishReason: string;
  readonly usage: {
    readonly inputTokens: number | undefined;
    readonly outputTokens: number | undefined;
  };
  readonly content: readonly unknown[];
}

// Ids of items, seals and signatures are another one every time.
const changing = ["providerMetadata", "raw"];

function seeResult(result: AiResult): SeenAnswer {
  const { text, reasoningText, toolCalls, finishReason, usage, content } = result;
  return {
    text,
    reasoning: reasoningText ?? "",
    calls: toolCalls.map((call) => ({
      id: call.toolCallId,
      name: call.toolName,
      input: call.input,
    })),
    finish: finishReason,
    inputTokens: usage.inputTokens,
    outputTokens: usage.outputTokens,
    vendor: without({ usage, content: content.filter(isShown) }, changing),
  };
}

/** Providers add parts of their own to a stream, and open a text for a first delta with nothing in it. */
function isShown(part: unknown): boolean {
  return isRecord(part) && part["type"] !== "custom" && part["text"] !== "";
}

/** Errors of a request are a class, those of a stream whatever the provider made of the frame. */
function describeAiError(error: unknown): SeenError {
  const last: unknown = RetryError.isInstance(error) ? error.lastError : error;
  if (APICallError.isInstance(last)) {
    const { statusCode, name, message, responseHeaders } = last;
    return {
      status: statusCode,
      name,
      message,
      retryAfter: responseHeaders?.["retry-after"],
      requestId: responseHeaders?.["x-request-id"],
    };
  }
  const message = isRecord(last) && "message" in last ? last["message"] : last;
  const text = typeof message === "string" ? message : JSON.stringify(message);
  return { status: undefined, name: "", message: text, retryAfter: null, requestId: null };
}
