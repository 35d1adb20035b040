import {
  JinjaTemplateChatWrapper,
  LlamaText,
  resolveChatWrapper,
  SpecialTokensText,
  type ChatHistoryItem,
  type ChatModelResponse,
  type ChatWrapper,
  type LlamaModel,
  type Token,
} from "node-llama-cpp";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { AssistantPart, Conversation, Turn } from "../../conversation/conversation.ts";
import { Failure } from "../../failure.ts";

/** A conversation as the model reads it. */
export interface ChatPrompt {
  readonly tokens: readonly Token[];
  /** Tokens besides the model's own that end an answer under this template. */
  readonly endTokens: ReadonlySet<Token>;
}

/** Longer texts are tokenized in pieces with a pause between, so that other generations are not held up. */
const pieceCharactersMax = 64 * 1024;
const inlineCharactersMax = 256 * 1024;

/** Renders conversations through the chat template in the model's file, else through one that fits the model. */
export function openChatPrompts(model: LlamaModel, warn: (message: string) => void) {
  const wrapper = openWrapper(model, warn);
  return async (conversation: Conversation, signal: AbortSignal): Promise<ChatPrompt> => {
    const chatHistory = buildHistory(conversation);
    const { contextText, stopGenerationTriggers } = render(wrapper, chatHistory);
    const tokens = await tokenize(contextText, model, signal);
    const { bos, shouldPrependBosToken } = model.tokens;
    if (shouldPrependBosToken && bos !== null && tokens[0] !== bos) tokens.unshift(bos);
    const endTokens = new Set<Token>();
    for (const trigger of stopGenerationTriggers) {
      const [only, ...more] = trigger.tokenize(model.tokenizer);
      if (only !== undefined && more.length === 0 && model.isSpecialToken(only)) {
        endTokens.add(only);
      }
    }
    return { tokens, endTokens };
  };
}

function openWrapper(model: LlamaModel, warn: (message: string) => void): ChatWrapper {
  const template = model.fileInfo.metadata.tokenizer.chat_template;
  if (template !== undefined && template.trim() !== "") {
    try {
      return new JinjaTemplateChatWrapper({
        template,
        tokenizer: model.tokenizer,
        functionCallMessageTemplate: "noJinja",
        trimLeadingWhitespaceInResponses: false,
      });
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      warn(`the model's own chat template cannot be used (${reason}); using one of its family`);
    }
  } else {
    warn("the model's file has no chat template; using one of its family");
  }
  return resolveChatWrapper(model, { noJinja: true });
}

function render(wrapper: ChatWrapper, chatHistory: ChatHistoryItem[]) {
  try {
    return wrapper.generateContextState({ chatHistory });
  } catch (cause) {
    throw new Failure(
      "refused_by_deployment",
      "The model's chat template cannot render this conversation. Send one system text at most, then user and " +
        "assistant messages in turn.",
      { cause },
    );
  }
}

/**
 * Calls and results are told in words: this engine offers no tools yet, but a conversation that used them elsewhere
 * can go on here. Earlier reasoning is left out, as the templates do.
 */
function buildHistory(conversation: Conversation): ChatHistoryItem[] {
  const names = new Map<string, string>();
  const history = conversation.turns.map((turn) => buildHistoryItem(turn, names));
  if (history.at(-1)?.type !== "model") history.push({ type: "model", response: [""] });
  return history;
}

function buildHistoryItem(turn: Turn, names: Map<string, string>): ChatHistoryItem {
  switch (turn.role) {
    case "system":
      return { type: "system", text: turn.text };
    case "user":
      return { type: "user", text: turn.text };
    case "assistant":
      return buildModelItem(turn.parts, names);
    case "tool": {
      const name = names.get(turn.callId) ?? turn.callId;
      return { type: "user", text: `[result of ${name}]\n${turn.text}` };
    }
    default:
      turn satisfies never;
      throw new Error("a turn of an unknown role");
  }
}

function buildModelItem(
  parts: readonly AssistantPart[],
  names: Map<string, string>,
): ChatModelResponse {
  const texts: string[] = [];
  for (const part of parts) {
    if (part.type === "text") texts.push(part.text);
    if (part.type !== "tool-call") continue;
    names.set(part.id, part.name);
    texts.push(`[call of ${part.name}]\n${part.arguments}`);
  }
  return { type: "model", response: [texts.join("\n")] };
}

async function tokenize(text: LlamaText, model: LlamaModel, signal: AbortSignal): Promise<Token[]> {
  if (countCharacters(text) <= inlineCharactersMax) return text.tokenize(model.tokenizer);
  const tokens: Token[] = [];
  for (const value of text.values) {
    if (typeof value !== "string") {
      for (const token of LlamaText(value).tokenize(model.tokenizer)) tokens.push(token);
      continue;
    }
    for (const piece of cut(value)) {
      signal.throwIfAborted();
      for (const token of model.tokenize(piece, false)) tokens.push(token);
      await nextTurn();
    }
  }
  return tokens;
}

function countCharacters(text: LlamaText): number {
  return text.values.reduce((sum: number, value) => {
    if (typeof value === "string") return sum + value.length;
    return value instanceof SpecialTokensText ? sum + value.value.length : sum;
  }, 0);
}

/** Pieces end before a blank where there is one near, and never inside a surrogate pair. */
function* cut(text: string): Generator<string> {
  let start = 0;
  while (text.length - start > pieceCharactersMax) {
    let end = start + pieceCharactersMax;
    const blank = text.lastIndexOf(" ", end);
    if (blank > start + pieceCharactersMax / 2) end = blank;
    else if ((text.charCodeAt(end) & 0xfc00) === 0xdc00) end -= 1;
    yield text.slice(start, end);
    start = end;
  }
  yield text.slice(start);
}
