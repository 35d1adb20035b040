import {
  JinjaTemplateChatWrapper,
  LlamaText,
  resolveChatWrapper,
  SpecialTokensText,
  type ChatHistoryItem,
  type ChatModelFunctions,
  type ChatWrapper,
  type LlamaModel,
  type Token,
} from "node-llama-cpp";
import { setImmediate as nextTurn } from "node:timers/promises";
import { RequestError, type Conversation, type Tool } from "./conversation.ts";
import { buildHistory } from "./chat-history.ts";
import { describeTools, documentedSyntax, readSyntax, type ToolSyntax } from "./tool-syntax.ts";

/** A conversation as the model reads it, and what is to be made of its answer. */
export interface ChatPrompt {
  readonly tokens: readonly Token[];
  /** Tokens besides the model's own that end an answer under this template. */
  readonly endTokens: ReadonlySet<Token>;
  readonly plan: AnswerPlan;
}

/** How an answer is read. */
export interface AnswerPlan {
  readonly thought: ThoughtMarkers | null;
  /** The prompt ends inside a thought. */
  readonly thinking: boolean;
  /** null: no tools are offered. */
  readonly call: CallPlan | null;
}

/** By what thoughts begin and end. */
export interface ThoughtMarkers {
  readonly opens: readonly string[];
  readonly closes: readonly string[];
}

/** Which calls may be made, and how they are written. */
export interface CallPlan {
  readonly syntax: ToolSyntax;
  /** More than one: the model picks. */
  readonly tools: readonly Tool[];
  readonly forced: boolean;
}

/** Longer texts are tokenized in pieces with a pause between, so that other generations are not held up. */
const pieceCharactersMax = 64 * 1024;
const inlineCharactersMax = 256 * 1024;

/** Renders conversations through the chat template in the model's file, else through one that fits the model. */
export function openChatPrompts(model: LlamaModel, warn: (message: string) => void) {
  const templates = openTemplates(model, warn);
  const thought = readThought(templates.plain);
  return async (
    conversation: Conversation,
    takesTools: boolean,
    signal: AbortSignal,
  ): Promise<ChatPrompt> => {
    const tools = takesTools ? pickTools(conversation) : [];
    const { syntax, text, stopGenerationTriggers } = render({ templates, conversation, tools });
    const tokens = await tokenize(text, model, signal);
    const { bos, shouldPrependBosToken } = model.tokens;
    if (shouldPrependBosToken && bos !== null && tokens[0] !== bos) tokens.unshift(bos);
    const plan = planAnswer({ conversation, tools, syntax, thought });
    for (const token of model.tokenize(writeBeginning(plan, thought), true)) tokens.push(token);
    return { tokens, plan, endTokens: listEndTokens(stopGenerationTriggers, model) };
  };
}

interface Templates {
  readonly plain: ChatWrapper;
  /** The template that knows tools, and how calls look in it. */
  readonly withTools: { readonly wrapper: ChatWrapper; readonly syntax: ToolSyntax } | null;
}

/** The chat template in the model's file; null: none, as in models that were not trained on conversations. */
export function readTemplate(model: LlamaModel): string | null {
  const template = model.fileInfo.metadata.tokenizer.chat_template;
  return template === undefined || template.trim() === "" ? null : template;
}

function openTemplates(model: LlamaModel, warn: (message: string) => void): Templates {
  const template = readTemplate(model);
  if (template === null) {
    warn(
      "the model's file has no chat template, so that it was hardly trained on conversations: it is given them through " +
        "a template of its family, and no tools",
    );
    return { plain: resolveChatWrapper(model, { noJinja: true }), withTools: null };
  }
  const open = (functionCallMessageTemplate: "auto" | "noJinja") =>
    new JinjaTemplateChatWrapper({
      template,
      tokenizer: model.tokenizer,
      functionCallMessageTemplate,
      trimLeadingWhitespaceInResponses: false,
    });
  try {
    return { plain: open("noJinja"), withTools: openWithTools(() => open("auto")) };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    warn(`the model's own chat template cannot be used (${reason}); using one of its family`);
    return { plain: resolveChatWrapper(model, { noJinja: true }), withTools: null };
  }
}

/** null: the template knows no tools, or in a way that is not understood. */
function openWithTools(open: () => JinjaTemplateChatWrapper): Templates["withTools"] {
  try {
    const wrapper = open();
    const syntax = wrapper.usingJinjaFunctionCallTemplate ? findSyntax(wrapper) : null;
    return syntax === null ? null : { wrapper, syntax };
  } catch {
    return null;
  }
}

/** Only a template that writes arguments as a JSON object is used: its calls are what the grammars describe. */
function findSyntax(wrapper: ChatWrapper): ToolSyntax | null {
  const { call, parallelism } = wrapper.settings.functions;
  const section = LlamaText(parallelism?.call.sectionPrefix ?? "").toString();
  const prefix = section + LlamaText(call.prefix).toString();
  const paramsPrefix = LlamaText(call.paramsPrefix).toString();
  const probe = wrapper.generateFunctionCall("probe", { key: 1 }).toString();
  const start = LlamaText(call.prefix).toString() + "probe" + paramsPrefix;
  const isPlain = probe.startsWith(start) && /^\{\s*"key"/u.test(probe.slice(start.length));
  return isPlain && !paramsPrefix.includes("{{") ? readSyntax({ prefix, paramsPrefix }) : null;
}

interface Thought extends ThoughtMarkers {
  /** Every answer begins inside a thought. */
  readonly onStart: boolean;
  /** What the template leaves to be written at that beginning. */
  readonly begin: string;
}

/** The markers of the segments that the library found in the template, or knows of this family of models. */
function readThought({ settings }: ChatWrapper): Thought | null {
  const { closeAllSegments, comment, thought } = settings.segments ?? {};
  if (thought === undefined) return null;
  const isText = typeof thought.prefix === "string" || LlamaText.isLlamaText(thought.prefix);
  const begin = isText ? LlamaText(thought.prefix).toString() : "";
  const opens = writeAll([begin, comment?.prefix]);
  const closes = writeAll([thought.suffix, comment?.suffix, closeAllSegments]);
  const onStart = !isText || thought.openOnResponseStart === true;
  if (closes.length === 0 || (!onStart && begin.trim() === "")) return null;
  return { opens, closes, onStart, begin };
}

function writeAll(texts: readonly (string | LlamaText | undefined)[]): readonly string[] {
  const written = texts.map((text) =>
    LlamaText(text ?? "")
      .toString()
      .trim(),
  );
  return written.filter((text) => text !== "");
}

/** The tools that may be called; the prompt offers them all even when one is forced, so that its prefix stays known. */
function pickTools({ toolChoice, tools }: Conversation): readonly Tool[] {
  return toolChoice.type === "none" ? [] : tools;
}

interface RenderOrder {
  readonly templates: Templates;
  readonly conversation: Conversation;
  readonly tools: readonly Tool[];
}

interface Rendered {
  readonly text: LlamaText;
  readonly stopGenerationTriggers: readonly LlamaText[];
  readonly syntax: ToolSyntax;
}

/** Through the template's own way with tools where it has one and takes this conversation, else described in words. */
function render({ conversation, templates, tools }: RenderOrder): Rendered {
  const { plain, withTools } = templates;
  const usesTools = tools.length > 0 || conversation.turns.some(({ role }) => role === "tool");
  if (withTools !== null && usesTools) {
    try {
      const chatHistory = buildHistory(conversation, { calls: "items", thoughts: true });
      const state = withTools.wrapper.generateContextState({
        chatHistory,
        ...(tools.length > 0 && { availableFunctions: listFunctions(tools) }),
      });
      return { ...state, text: state.contextText, syntax: withTools.syntax };
    } catch {
      // Some templates refuse what others take, such as a result without its call: words always go.
    }
  }
  return renderPlain(plain, { conversation, tools });
}

function renderPlain(
  wrapper: ChatWrapper,
  { conversation, tools }: Omit<RenderOrder, "templates">,
): Rendered {
  const calls = tools.length > 0 ? "documented" : "words";
  const chatHistory = buildHistory(conversation, {
    calls,
    thoughts: readThought(wrapper) !== null,
  });
  if (tools.length > 0) addToSystem(chatHistory, describeTools(tools));
  try {
    const state = wrapper.generateContextState({ chatHistory });
    return { ...state, text: state.contextText, syntax: documentedSyntax };
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new RequestError(
      [400, "invalid_request_error"],
      `The model's chat template cannot render this conversation (${reason}). Send one system text at most, then user ` +
        "and assistant messages in turn.",
      { param: "messages" },
    );
  }
}

function addToSystem(history: ChatHistoryItem[], text: string): void {
  const [first] = history;
  if (first?.type !== "system") history.unshift({ type: "system", text });
  else
    history[0] = {
      type: "system",
      text: `${LlamaText.fromJSON(first.text).toString()}\n\n${text}`,
    };
}

function listFunctions(tools: readonly Tool[]): ChatModelFunctions {
  // The library's type has its own subset of JSON Schema; the template only prints what it gets.
  return Object.fromEntries(
    tools.map(({ description, name, parameters }) => [
      name,
      {
        ...(description === null ? {} : { description }),
        params: parameters ?? { type: "object", properties: {} },
      },
    ]),
  ) as ChatModelFunctions;
}

interface PlanOrder {
  readonly conversation: Conversation;
  readonly tools: readonly Tool[];
  readonly syntax: ToolSyntax;
  readonly thought: Thought | null;
}

function planAnswer({ conversation, syntax, thought, tools }: PlanOrder): AnswerPlan {
  const { toolChoice, turns } = conversation;
  const last = turns.at(-1);
  const goesOn = last?.role === "assistant" && last.parts.some(({ type }) => type !== "reasoning");
  const named = toolChoice.type === "tool" ? toolChoice.name : null;
  const callable = named === null ? tools : tools.filter(({ name }) => name === named);
  const forced = toolChoice.type === "required" || named !== null;
  return {
    thought,
    thinking: thought?.onStart === true && !goesOn,
    call: callable.length === 0 ? null : { syntax, tools: callable, forced },
  };
}

/** What is written in the model's name at the beginning of its answer. */
function writeBeginning({ call, thinking }: AnswerPlan, thought: Thought | null): string {
  if (thinking) return thought?.begin ?? "";
  return call?.forced === true ? writeForcedCall(call) : "";
}

/** The beginning of a call up to what the model decides: the name, or the arguments where there is one tool. */
export function writeForcedCall({ syntax, tools }: CallPlan): string {
  const [only, ...more] = tools;
  if (only === undefined || more.length > 0) return syntax.begin;
  return syntax.begin + only.name + syntax.between;
}

function listEndTokens(triggers: readonly LlamaText[], model: LlamaModel): ReadonlySet<Token> {
  const endTokens = new Set<Token>();
  for (const trigger of triggers) {
    const [only, ...more] = trigger.tokenize(model.tokenizer);
    if (only !== undefined && more.length === 0 && model.isSpecialToken(only)) endTokens.add(only);
  }
  return endTokens;
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
