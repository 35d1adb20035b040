import type { GenerationEvent } from "../../conversation/generation-event.ts";
import { encodeNamedEvent, pingComment } from "../../sse/server-sent-event.ts";
import { buildMessagesError } from "../error-answer.ts";
import type { MessagesErrorBody } from "../error-wire.ts";
import type { AnswerContext, ReasoningSigner, StreamEncoder } from "../wire-format.ts";
import { buildMessagesUsage, buildStop } from "./response.ts";
import type {
  MessagesEcho,
  MessagesEmptyBlock,
  MessagesStreamEvent,
  OpeningMessage,
} from "./wire.ts";

const ping = `${pingComment}${encodeNamedEvent("ping", '{"type":"ping"}')}`;
const deltaEvent = "event: content_block_delta\ndata: ";

/** Opens the events of one answer. Memory is constant: nothing of the answer is kept. */
export function openMessagesEncoder(context: AnswerContext<MessagesEcho>): StreamEncoder {
  const blocks = openBlocks(context.reasoning);
  return {
    open: () => {
      const message = buildOpeningMessage(context);
      return encodeFrame({ type: "message_start", message });
    },
    encode(batch) {
      let frames = "";
      for (const event of batch) frames += blocks.encodeEvent(event);
      return frames;
    },
    keepalive: () => ping,
    finish(finish) {
      const usage = buildMessagesUsage(finish.usage);
      return (
        encodeFrame({ type: "message_delta", delta: buildStop(finish), usage }) +
        encodeFrame({ type: "message_stop" })
      );
    },
    fail: (failure) => encodeFrame(buildMessagesError(failure, context.requestId)),
  };
}

function encodeFrame(event: MessagesStreamEvent | MessagesErrorBody): string {
  return encodeNamedEvent(event.type, JSON.stringify(event));
}

/** The deployment has not counted yet, so the input is an estimate; `message_delta` has the settled numbers. */
function buildOpeningMessage(context: AnswerContext<MessagesEcho>): OpeningMessage {
  return {
    id: context.newId("msg_"),
    type: "message",
    role: "assistant",
    model: context.echo.model,
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage: {
      input_tokens: context.inputTokensEstimate,
      output_tokens: 0,
      cache_creation_input_tokens: 0,
      cache_read_input_tokens: 0,
    },
  };
}

/** The blocks, one after another. What stays the same from delta to delta of a block is made once. */
function openBlocks(reasoning: ReasoningSigner): { encodeEvent(event: GenerationEvent): string } {
  let index = -1;
  let opening = "";
  let signer: ReturnType<ReasoningSigner["openSigner"]> | null = null;

  function start(block: MessagesEmptyBlock, deltaType: string, deltaField: string): string {
    index += 1;
    opening = `${deltaEvent}{"type":"content_block_delta","index":${String(index)},"delta":{"type":"${deltaType}","${deltaField}":`;
    return encodeFrame({ type: "content_block_start", index, content_block: block });
  }

  function stop(): string {
    return encodeFrame({ type: "content_block_stop", index });
  }

  function encodeSignature(): string {
    const signature = signer?.finish() ?? "";
    signer = null;
    return `${deltaEvent}{"type":"content_block_delta","index":${String(index)},"delta":{"type":"signature_delta","signature":${JSON.stringify(signature)}}}\n\n`;
  }

  function encodeEvent(event: GenerationEvent): string {
    switch (event.type) {
      case "text-start":
        return start({ type: "text", text: "" }, "text_delta", "text");
      case "reasoning-start":
        signer = reasoning.openSigner();
        return start(
          { type: "thinking", thinking: "", signature: "" },
          "thinking_delta",
          "thinking",
        );
      case "tool-call-start": {
        const { id, name } = event;
        return start({ type: "tool_use", id, name, input: {} }, "input_json_delta", "partial_json");
      }
      case "reasoning-delta":
        signer?.update(event.text);
        return `${opening}${JSON.stringify(event.text)}}}\n\n`;
      case "text-delta":
        return `${opening}${JSON.stringify(event.text)}}}\n\n`;
      case "tool-call-delta":
        return `${opening}${JSON.stringify(event.arguments)}}}\n\n`;
      case "reasoning-end":
        return encodeSignature() + stop();
      case "text-end":
      case "tool-call-end":
        return stop();
      default:
        return event satisfies never;
    }
  }

  return { encodeEvent };
}
