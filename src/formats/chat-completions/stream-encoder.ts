import type { GenerationEvent } from "../../conversation/generation-event.ts";
import { encodeData, pingComment } from "../../sse/server-sent-event.ts";
import { type CustomToolInputDecoder, openCustomToolInputDecoder } from "../custom-tool-input.ts";
import { buildOpenaiError } from "../error-answer.ts";
import type { AnswerContext, StreamEncoder } from "../wire-format.ts";
import { buildChatUsage, buildFinishReason } from "./response.ts";
import type { ChatCompletionsEcho, ChatFinishReason, ChatUsage } from "./wire.ts";

/** Opens the chunks of one answer. Memory is constant: nothing of the answer is kept. */
export function openChatCompletionsEncoder(
  context: AnswerContext<ChatCompletionsEcho>,
): StreamEncoder {
  const { echo } = context;
  const chunks = openChunks(context);
  const calls = openCalls(chunks, echo.customTools);

  function encodeEvent(event: GenerationEvent): string {
    switch (event.type) {
      case "text-delta":
        return chunks.encodeDelta(`"content":${JSON.stringify(event.text)}`);
      case "reasoning-delta":
        return chunks.encodeDelta(`"reasoning_content":${JSON.stringify(event.text)}`);
      case "tool-call-start":
        return calls.start(event.id, event.name);
      case "tool-call-delta":
        return calls.push(event.arguments);
      case "tool-call-end":
        return calls.end();
      case "text-start":
      case "text-end":
      case "reasoning-start":
      case "reasoning-end":
        return "";
      default:
        return event satisfies never;
    }
  }

  return {
    open: () => chunks.encodeDelta('"role":"assistant","content":""'),
    encode(batch) {
      let frames = "";
      for (const event of batch) frames += encodeEvent(event);
      return frames;
    },
    keepalive: () => pingComment,
    finish({ reason, usage }) {
      const usageChunk = echo.includeUsage ? chunks.encodeUsage(buildChatUsage(usage)) : "";
      return `${chunks.encodeFinish(buildFinishReason(reason))}${usageChunk}data: [DONE]\n\n`;
    },
    fail: (failure) =>
      encodeData(JSON.stringify({ error: buildOpenaiError(failure, context.requestId) })),
  };
}

/** Counts the calls of one answer, and knows which of them carry raw text instead of arguments. */
function openCalls(chunks: Chunks, customTools: readonly string[]) {
  let index = -1;
  let decoder: CustomToolInputDecoder | null = null;

  function encodeInput(input: string): string {
    if (input === "") return "";
    return chunks.encodeDelta(
      `"tool_calls":[{"index":${String(index)},"custom":{"input":${JSON.stringify(input)}}}]`,
    );
  }

  return {
    start(id: string, name: string): string {
      index += 1;
      const isCustom = customTools.includes(name);
      decoder = isCustom ? openCustomToolInputDecoder() : null;
      const called = isCustom
        ? `"type":"custom","custom":{"name":${JSON.stringify(name)},"input":""}`
        : `"type":"function","function":{"name":${JSON.stringify(name)},"arguments":""}`;
      return chunks.encodeDelta(
        `"tool_calls":[{"index":${String(index)},"id":${JSON.stringify(id)},${called}}]`,
      );
    },
    push(piece: string): string {
      if (decoder !== null) return encodeInput(decoder.push(piece));
      return chunks.encodeDelta(
        `"tool_calls":[{"index":${String(index)},"function":{"arguments":${JSON.stringify(piece)}}}]`,
      );
    },
    end: (): string => (decoder === null ? "" : encodeInput(decoder.finish())),
  };
}

interface Chunks {
  /** `fields` is the inside of `delta`, as JSON text. */
  encodeDelta(fields: string): string;
  encodeFinish(reason: ChatFinishReason): string;
  encodeUsage(usage: ChatUsage): string;
}

/** All that stays the same from chunk to chunk is made once: a chunk is a few strings put together. */
function openChunks({ newId, createdAtMs, echo }: AnswerContext<ChatCompletionsEcho>): Chunks {
  const opening =
    `data: {"id":${JSON.stringify(newId("chatcmpl-"))},"object":"chat.completion.chunk",` +
    `"created":${String(Math.floor(createdAtMs / 1000))},"model":${JSON.stringify(echo.model)},"choices":[`;
  const deltaOpening = `${opening}{"index":0,"delta":{`;
  const closing = echo.includeUsage ? `}],"usage":null}\n\n` : `}]}\n\n`;
  const deltaClosing = `},"finish_reason":null${closing}`;
  return {
    encodeDelta: (fields) => `${deltaOpening}${fields}${deltaClosing}`,
    encodeFinish: (reason) => `${deltaOpening}},"finish_reason":"${reason}"${closing}`,
    encodeUsage: (usage) => `${opening}],"usage":${JSON.stringify(usage)}}\n\n`,
  };
}
