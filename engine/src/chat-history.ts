import type {
  ChatHistoryItem,
  ChatModelFunctionCall,
  ChatModelResponse,
  ChatModelSegment,
} from "node-llama-cpp";
import type { AssistantPart, Conversation, ToolCall, ToolResult } from "./conversation.ts";
import { writeCall, writeResult } from "./tool-syntax.ts";

/** The form in which a model reads a conversation. */
export interface HistoryStyle {
  /** As items that the template writes, in the documented syntax, or in words, where no tools are offered. */
  readonly calls: "items" | "documented" | "words";
  /** Whether the template has a place for reasoning; it gets that of the turn under way, as models expect it. */
  readonly thoughts: boolean;
}

type Response = ChatModelResponse["response"][number];

/** Ends with a turn of the model, which it goes on with. */
export function buildHistory(conversation: Conversation, style: HistoryStyle): ChatHistoryItem[] {
  const history: ChatHistoryItem[] = [];
  const known = indexCalls(conversation);
  const lastUser = conversation.turns.findLastIndex(({ role }) => role === "user");
  for (const [index, turn] of conversation.turns.entries()) {
    switch (turn.role) {
      case "system":
      case "user":
        history.push({ type: turn.role, text: turn.text });
        break;
      case "assistant": {
        const thoughts = style.thoughts && index > lastUser;
        const parts = turn.parts.filter(({ type }) => type !== "reasoning" || thoughts);
        addResponses(history, buildResponses(parts, style, known));
        break;
      }
      case "tool":
        if (style.calls === "items" && known.calls.has(turn.callId)) break;
        history.push({ type: "user", text: tellResult(turn, style, known) });
        break;
      default:
        turn satisfies never;
    }
  }
  if (history.at(-1)?.type !== "model") history.push({ type: "model", response: [""] });
  return history;
}

interface KnownCalls {
  readonly calls: ReadonlyMap<string, ToolCall>;
  readonly results: ReadonlyMap<string, string>;
}

function indexCalls({ turns }: Conversation): KnownCalls {
  const calls = new Map<string, ToolCall>();
  const results = new Map<string, string>();
  for (const turn of turns) {
    if (turn.role === "tool") results.set(turn.callId, turn.text);
    if (turn.role !== "assistant") continue;
    for (const part of turn.parts) if (part.type === "tool-call") calls.set(part.id, part);
  }
  return { calls, results };
}

/** Turns of the model that only results of calls part are one to the template. */
function addResponses(history: ChatHistoryItem[], responses: readonly Response[]): void {
  const last = history.at(-1);
  const all = responses.length === 0 ? [""] : [...responses];
  if (last?.type === "model") last.response.push(...all);
  else history.push({ type: "model", response: all });
}

function buildResponses(
  parts: readonly AssistantPart[],
  style: HistoryStyle,
  known: KnownCalls,
): readonly Response[] {
  const responses: Response[] = [];
  const say = (text: string): void => {
    const last = responses.at(-1);
    if (typeof last === "string") responses[responses.length - 1] = `${last}\n${text}`;
    else responses.push(text);
  };
  let calls = 0;
  for (const part of parts) {
    if (part.type === "text") say(part.text);
    else if (part.type === "reasoning") responses.push(buildThought(part.text));
    else if (style.calls === "items") responses.push(buildCall(part, known, calls === 0));
    else say(tellCall(part, style));
    if (part.type === "tool-call") calls += 1;
  }
  return responses;
}

function buildThought(text: string): ChatModelSegment {
  return { type: "segment", segmentType: "thought", text, ended: true };
}

function buildCall(call: ToolCall, { results }: KnownCalls, first: boolean): ChatModelFunctionCall {
  return {
    type: "functionCall",
    name: call.name,
    params: readJson(call.arguments),
    result: readJson(results.get(call.id) ?? ""),
    startsNewChunk: first,
  };
}

/** The template writes JSON; what is none is written as a string of it. */
function readJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function tellCall(call: ToolCall, { calls }: HistoryStyle): string {
  if (calls === "documented") return writeCall(call.name, call.arguments);
  return `[call of ${call.name}]\n${call.arguments}`;
}

function tellResult(turn: ToolResult, { calls }: HistoryStyle, known: KnownCalls): string {
  if (calls === "documented") return writeResult(turn.text);
  const name = known.calls.get(turn.callId)?.name ?? turn.callId;
  return `[result of ${name}]\n${turn.text}`;
}
