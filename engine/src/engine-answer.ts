import { randomBytes } from "node:crypto";
import {
  LlamaGrammarEvaluationState,
  type LlamaGrammar,
  type LlamaModel,
  type Token,
} from "node-llama-cpp";
import type { AnswerNews, FinishReason, GenerationOptions, Tool, Usage } from "./conversation.ts";
import { AnswerSegments, type SegmentPiece } from "./answer-segments.ts";
import { openStopGate, openTokenText, type StopGate } from "./answer-text.ts";
import { writeForcedCall, type AnswerPlan, type CallPlan } from "./chat-prompt.ts";
import { openJsonObjectEnd, type JsonObjectEnd } from "./json-object-end.ts";
import type { ToolGrammars } from "./tool-grammars.ts";
import { missingOf, nameEnd } from "./tool-syntax.ts";

/** What an answer is made of and for. */
export interface AnswerOrder {
  readonly tell: (news: AnswerNews) => void;
  readonly plan: AnswerPlan;
  readonly options: GenerationOptions;
  readonly inputTokens: number;
  readonly cachedInputTokens: number;
  readonly outputTokensMax: number;
  readonly isEnd: (token: Token) => boolean;
}

/** What answers need of the engine. */
export interface AnswerParts {
  readonly model: LlamaModel;
  readonly jsonGrammar: LlamaGrammar;
  readonly toolGrammars: ToolGrammars;
}

/** What follows a token. `feed`: tokens that take its place, some of them written in the model's name. */
export type AnswerStep =
  | { readonly type: "on" }
  | { readonly type: "feed"; readonly tokens: Token[] }
  | { readonly type: "ended" };

type Phase =
  | { readonly type: "said" }
  | { readonly type: "name"; written: string }
  | {
      readonly type: "arguments";
      readonly name: string;
      readonly end: JsonObjectEnd;
      written: boolean;
    };

const on: AnswerStep = { type: "on" };
const ended: AnswerStep = { type: "ended" };

/** Turns a model's tokens into the events of an answer. */
export class Answer {
  readonly #order: AnswerOrder;
  readonly #parts: AnswerParts;
  readonly #segments: AnswerSegments;
  readonly #text = openTokenText<Token>((tokens, before) =>
    // A grammar takes special tokens by their text, so that it has to be shown.
    this.#parts.model.detokenize(tokens, this.#inCall, before),
  );
  #gate: StopGate;
  #phase: Phase = { type: "said" };
  #grammar: LlamaGrammarEvaluationState | undefined;
  /** For the text of an answer that must be JSON. */
  #textGrammar: LlamaGrammar | null = null;
  readonly #said: Token[] = [];
  #outputTokens = 0;
  #reasoningTokens = 0;

  /** An answer that begins where the prompt ended, in a call where one is forced. */
  static async open(order: AnswerOrder, parts: AnswerParts): Promise<Answer> {
    const answer = new Answer(order, parts);
    await answer.#begin();
    return answer;
  }

  private constructor(order: AnswerOrder, parts: AnswerParts) {
    this.#order = order;
    this.#parts = parts;
    const { call, thinking, thought } = order.plan;
    const forced = call?.forced === true;
    this.#segments = new AnswerSegments(
      {
        thoughtOpens: thought?.opens ?? [],
        thoughtCloses: thought?.closes ?? [],
        call: call === null || forced ? null : call.syntax.marker,
      },
      { thinking, callAfterThought: forced },
    );
    this.#gate = this.#openGate();
  }

  /** Whether the allowance has room for another token. */
  get hasRoom(): boolean {
    return this.#outputTokens < this.#order.outputTokensMax;
  }

  /** Under which the next token is chosen. */
  get grammar(): LlamaGrammarEvaluationState | undefined {
    if (this.#grammar === undefined && this.#textGrammar !== null && !this.#segments.thinking) {
      this.#setGrammar(this.#textGrammar);
    }
    return this.#grammar;
  }

  get #inCall(): boolean {
    return this.#phase.type !== "said";
  }

  /** The last tokens that are not to be repeated; arguments of calls may repeat any. */
  penalized(most: number): Token[] {
    return this.#inCall ? [] : this.#said.slice(-most);
  }

  async #begin(): Promise<void> {
    const { options, plan } = this.#order;
    if (plan.call?.forced === true) {
      if (!plan.thinking) await this.#enterCall(plan.call);
    } else if (options.responseFormat === "json-object") {
      this.#textGrammar =
        plan.call === null
          ? this.#parts.jsonGrammar
          : await this.#parts.toolGrammars.jsonOrMarker(plan.call.syntax.marker);
    }
  }

  add(token: Token): AnswerStep | Promise<AnswerStep> {
    this.#outputTokens += 1;
    if (!this.#inCall && this.#segments.thinking) this.#reasoningTokens += 1;
    if (this.#order.isEnd(token)) return this.#addEnd();
    const phase = this.#phase;
    if (phase.type === "said") return this.#addSaid(token);
    const text = this.#text.add(token);
    if (phase.type === "arguments") return this.#addArguments(phase, text);
    return this.#addName(phase, token, text);
  }

  end(reason: FinishReason): void {
    if (!this.#inCall) this.#sayPieces(this.#segments.flush(reason === "length"), true);
    this.#finish(reason, null);
  }

  #addEnd(): AnswerStep | Promise<AnswerStep> {
    if (this.#inCall) {
      throw new Error("the model ended its answer inside a tool call");
    }
    const { call, thought } = this.#order.plan;
    if (call?.forced === true) {
      // It ended inside its thought: a call was asked for in any case.
      return this.#feedCall(call, this.#tokenize(`${thought?.closes[0] ?? ""}\n`), "");
    }
    this.end("stop");
    return ended;
  }

  #addSaid(token: Token): AnswerStep | Promise<AnswerStep> {
    this.#said.push(token);
    const piece = this.#readPiece(token);
    const { call: rest, pieces } = this.#segments.add(piece);
    if (this.#sayPieces(pieces, rest !== null)) return ended;
    const { call } = this.#order.plan;
    if (rest === null || call === null) return on;
    if (call.forced) return this.#feedCall(call, [token], writeForcedCall(call));
    const missing = missingOf(call.syntax, rest);
    const chosen = writeForcedCall(call).slice(call.syntax.begin.length);
    if (missing !== null) return this.#feedCall(call, [token], missing + chosen);
    const head = piece.slice(0, piece.length - rest.length);
    const begin = call.syntax.begin.slice(call.syntax.marker.length);
    return this.#feedCall(call, this.#tokenize(head), begin + chosen);
  }

  /** Text of a token; a special one has none unless it is part of a marker. */
  #readPiece(token: Token): string {
    const { model } = this.#parts;
    if (model.isSpecialToken(token)) {
      const { call, thought } = this.#order.plan;
      const text = model.detokenize([token], true);
      const markers = [...(thought?.opens ?? []), ...(thought?.closes ?? [])];
      if (call !== null) markers.push(call.syntax.marker);
      if (text !== "" && markers.some((marker) => marker.includes(text))) return text;
    }
    return this.#text.add(token);
  }

  /** True when a stop sequence was met. `last`: no text follows these pieces. */
  #sayPieces(pieces: readonly SegmentPiece[], last: boolean): boolean {
    let shown = false;
    for (const { kind, text } of pieces) {
      if (kind === "reasoning") {
        this.#flushGate();
        this.#tell({ type: "text", kind, text });
        shown = true;
        continue;
      }
      const scan = this.#gate.add(text);
      if (scan.text !== "") this.#tell({ type: "text", kind, text: scan.text });
      shown ||= scan.text !== "";
      if (scan.met === null) continue;
      this.#finish("stop", scan.met);
      return true;
    }
    if (last) this.#flushGate();
    else if (!shown) this.#order.tell({ type: "progress", usage: this.#usage() });
    return false;
  }

  #flushGate(): void {
    const held = this.#gate.flush();
    if (held !== "") this.#tell({ type: "text", kind: "text", text: held });
    this.#gate = this.#openGate();
  }

  #openGate(): StopGate {
    return openStopGate(this.#order.options.stopSequences ?? []);
  }

  /** Goes on with `first` in place of the last token, and `text` written in the model's name. */
  async #feedCall(call: CallPlan, first: readonly Token[], text: string): Promise<AnswerStep> {
    const written = text === "" ? writeForcedCall(call) : text;
    await this.#enterCall(call);
    return this.#feed([...first, ...this.#tokenize(written)]);
  }

  #feed(tokens: Token[]): AnswerStep {
    const added = tokens.length - 1;
    if (this.#outputTokens + added >= this.#order.outputTokensMax) {
      this.#finish("length", null);
      return ended;
    }
    this.#outputTokens += added;
    return { type: "feed", tokens };
  }

  async #enterCall(call: CallPlan): Promise<void> {
    const [only, ...more] = call.tools;
    if (only !== undefined && more.length === 0) return this.#enterArguments(only);
    this.#phase = { type: "name", written: "" };
    this.#setGrammar(await this.#parts.toolGrammars.names(call.tools, nameEnd(call.syntax)));
  }

  async #enterArguments(tool: Tool): Promise<void> {
    this.#phase = { type: "arguments", name: tool.name, end: openJsonObjectEnd(), written: false };
    this.#setGrammar(await this.#parts.toolGrammars.argumentsOf(tool));
  }

  #setGrammar(grammar: LlamaGrammar): void {
    this.#grammar = new LlamaGrammarEvaluationState({ model: this.#parts.model, grammar });
  }

  async #addName(
    phase: Extract<Phase, { type: "name" }>,
    token: Token,
    text: string,
  ): Promise<AnswerStep> {
    phase.written += text;
    const { call } = this.#order.plan;
    if (call === null || !phase.written.endsWith(nameEnd(call.syntax))) {
      this.#order.tell({ type: "progress", usage: this.#usage() });
      return on;
    }
    const name = phase.written.slice(0, -1);
    const tool = call.tools.find((one) => one.name === name);
    if (tool === undefined) throw new Error(`the grammar let through the tool name ${name}`);
    await this.#enterArguments(tool);
    return this.#feed([token, ...this.#tokenize(call.syntax.between.slice(1))]);
  }

  #addArguments(phase: Extract<Phase, { type: "arguments" }>, text: string): AnswerStep {
    const end = phase.end.add(text);
    const certain = end === -1 ? text : text.slice(0, end);
    const shown = phase.written ? certain : certain.trimStart();
    if (shown === "") {
      this.#order.tell({ type: "progress", usage: this.#usage() });
      return on;
    }
    if (!phase.written) {
      const callId = `call_${randomBytes(12).toString("hex")}`;
      this.#tell({ type: "call", callId, name: phase.name });
      phase.written = true;
    }
    this.#tell({ type: "arguments", text: shown });
    if (end === -1) return on;
    this.#finish("tool-calls", null);
    return ended;
  }

  #finish(reason: FinishReason, stopSequence: string | null): void {
    this.#order.tell({ type: "finished", reason, stopSequence, usage: this.#usage() });
  }

  #tell(news: SaidNews): void {
    this.#order.tell({ usage: this.#usage(), ...news });
  }

  #tokenize(text: string): Token[] {
    return this.#parts.model.tokenize(text, true, "trimLeadingSpace");
  }

  #usage(): Usage {
    return {
      inputTokens: this.#order.inputTokens,
      cachedInputTokens: this.#order.cachedInputTokens,
      outputTokens: this.#outputTokens,
      reasoningTokens: this.#reasoningTokens,
    };
  }
}

type SaidNews =
  | { readonly type: "text"; readonly kind: "text" | "reasoning"; readonly text: string }
  | { readonly type: "call"; readonly callId: string; readonly name: string }
  | { readonly type: "arguments"; readonly text: string };
