import type { AssistantPart, Conversation, Turn } from "../../conversation/conversation.ts";
import { ensureCountedLimits } from "../counted-limits.ts";
import type { Fields } from "../read-fields.ts";
import type { CountableTexts, ReasoningVerifier } from "../wire-format.ts";
import { parseMessagesConversation } from "./request.ts";

// What chat templates put around a turn, a call or a tool, on the high side.
const overheadTokensPerRequest = 4;
const overheadTokensPerTurn = 5;
const overheadTokensPerCall = 12;
const overheadTokensPerTool = 12;

/** What is to be counted, and what it is of. */
export interface CountableConversation extends CountableTexts {
  readonly conversation: Conversation;
}

/**
 * The texts of a `count_tokens` body, which is the body of a message; `max_tokens` and the other options do not count.
 * Reasoning counts with any signature, so that the estimate errs high. Throws a Failure that names the field.
 */
export function parseCountTokens(
  body: Fields,
  reasoning: ReasoningVerifier,
): CountableConversation {
  const everything: ReasoningVerifier = {
    unseal: (sealed) => reasoning.unseal(sealed),
    verify: () => true,
  };
  const { conversation, counted } = parseMessagesConversation(body, everything);
  ensureCountedLimits(counted);
  return { ...countableTexts(conversation), conversation };
}

/** Everything of a conversation that reaches the model: system, turns, calls and their results, reasoning, tools. */
function countableTexts(conversation: Conversation): CountableTexts {
  const texts: string[] = [];
  let overheadTokens = overheadTokensPerRequest;
  for (const turn of conversation.turns) {
    texts.push(...textsOfTurn(turn));
    overheadTokens += overheadTokensPerTurn + overheadTokensPerCall * countCalls(turn);
  }
  for (const { name, description, parameters } of conversation.tools) {
    texts.push(name, description ?? "", parameters === null ? "" : JSON.stringify(parameters));
    overheadTokens += overheadTokensPerTool;
  }
  return { texts: texts.filter((text) => text !== ""), overheadTokens };
}

function textsOfTurn(turn: Turn): readonly string[] {
  if (turn.role !== "assistant") return [turn.text];
  return turn.parts.flatMap(textsOfPart);
}

function textsOfPart(part: AssistantPart): readonly string[] {
  return part.type === "tool-call" ? [part.name, part.arguments] : [part.text];
}

function countCalls(turn: Turn): number {
  if (turn.role !== "assistant") return 0;
  return turn.parts.filter((part) => part.type === "tool-call").length;
}
