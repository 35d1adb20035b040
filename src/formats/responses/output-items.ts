import type { AssistantPart } from "../../conversation/conversation.ts";
import type { FinishReason } from "../../conversation/generation-event.ts";
import { decodeCustomToolInput } from "../custom-tool-input.ts";
import type { AnswerContext } from "../wire-format.ts";
import type {
  OriginalTool,
  ItemStatus,
  OutputItem,
  ReasoningItem,
  ResponsesEcho,
  TextPart,
} from "./wire.ts";

/** Whether an answer was ended before the model was done; its last item is then incomplete. */
export function isCut(reason: FinishReason): boolean {
  return reason === "length" || reason === "content-filter";
}

/** What the id of an item begins with. `tool` is null for what is no call. */
export function itemIdPrefix(type: AssistantPart["type"], tool: OriginalTool | null): string {
  if (type === "reasoning") return "rs_";
  if (type === "text") return "msg_";
  return tool?.custom === true ? "ctc_" : "fc_";
}

/** What an item needs besides what was said in it. */
export interface ItemHead {
  readonly id: string;
  readonly status: ItemStatus;
  readonly context: AnswerContext<ResponsesEcho>;
}

/** The item of a part that has ended. `tool` is null for what is no call. */
export function buildItem(
  part: AssistantPart,
  tool: OriginalTool | null,
  { id, status, context }: ItemHead,
): OutputItem {
  switch (part.type) {
    case "text":
      return {
        type: "message",
        id,
        status,
        role: "assistant",
        content: [buildTextPart(part.text)],
      };
    case "reasoning":
      return buildReasoningItem(part.text, { id, status, context });
    case "tool-call": {
      const called = {
        id,
        status,
        call_id: part.id,
        name: tool?.name ?? part.name,
        ...(tool === null || tool.namespace === null ? {} : { namespace: tool.namespace }),
      };
      return tool?.custom === true
        ? { type: "custom_tool_call", ...called, input: decodeCustomToolInput(part.arguments) }
        : { type: "function_call", ...called, arguments: part.arguments };
    }
    default:
      return part satisfies never;
  }
}

/** An item as it begins: nothing was said in it yet. */
export function buildEmptyItem(item: OutputItem): OutputItem {
  const status = "in_progress";
  switch (item.type) {
    case "message":
      return { ...item, status, content: [] };
    case "reasoning": {
      const content = item.content === undefined ? {} : { content: [] };
      return { type: "reasoning", id: item.id, status, summary: [], ...content };
    }
    case "function_call":
      return { ...item, status, arguments: "" };
    case "custom_tool_call":
      return { ...item, status, input: "" };
    default:
      return item satisfies never;
  }
}

/** The one part of a message. */
export function buildTextPart(text: string): TextPart {
  return { type: "output_text", text, annotations: [], logprobs: [] };
}

function buildReasoningItem(text: string, { id, status, context }: ItemHead): ReasoningItem {
  const { echo, reasoning } = context;
  return {
    type: "reasoning",
    id,
    status,
    ...(echo.reasoningSummary === null
      ? { summary: [], content: [{ type: "reasoning_text", text }] }
      : { summary: [{ type: "summary_text", text }] }),
    // Only a whole text is worth sealing; each sealing gives other bytes, so it is done once an item.
    ...(echo.includeEncryptedReasoning && status !== "in_progress"
      ? { encrypted_content: reasoning.seal(text) }
      : {}),
  };
}
