import { hash, randomBytes } from "node:crypto";
import {
  type RecordedRequest,
  statusAnswer,
  type Step,
  textAnswer,
} from "../doubles/scripted-deployment.ts";
import {
  callToEdit,
  callToRead,
  callToRun,
  messagesOf,
  offeredTools,
  type ScriptedCall,
  toolResults,
} from "./tools.ts";

/** What plays the model for one run of an agent: answers each request, and notes what it did not expect. */
export interface Script {
  readonly prompt: string;
  readonly problems: readonly string[];
  /** Bodies of the requests that were answered, titles aside. */
  readonly main: readonly RecordedRequest[];
  answer(request: RecordedRequest): readonly Step[];
}

/** A word that no model can have guessed. */
export function freshWord(): string {
  return `word-${randomBytes(8).toString("hex")}`;
}

const wordPattern = /word-[0-9a-f]{16}/u;
const openLine = "Status: open";

/** What note.txt holds before the task and after it. */
export function noteText(word: string, done: boolean): string {
  return `The word is ${word}.\n${done ? `Status: done, ${word}` : openLine}\n`;
}

/** Usage of one scripted answer; each request of a run has another, so that a charge belongs to one request. */
export function usageOf(index: number): { promptTokens: number; completionTokens: number } {
  return { promptTokens: 1_000 + index * 100, completionTokens: 50 + index };
}

interface ScriptSettings {
  readonly asksForTitle: boolean;
}

abstract class AnyScript implements Script {
  abstract readonly prompt: string;
  readonly problems: string[] = [];
  readonly main: RecordedRequest[] = [];
  readonly #titles: boolean;
  #asked = 0;

  constructor({ asksForTitle }: ScriptSettings) {
    this.#titles = asksForTitle;
  }

  /** The steps for the request with this number among those that are no titles. */
  protected abstract step(request: RecordedRequest, index: number): readonly Step[];

  answer(request: RecordedRequest): readonly Step[] {
    const usage = usageOf(this.#asked);
    this.#asked += 1;
    try {
      if (!JSON.stringify(messagesOf(request)).includes(this.prompt)) {
        throw new Error("a request without the prompt");
      }
      if (this.#titles && offeredTools(request).length === 0) {
        return textAnswer("A short task", { usage });
      }
      const index = this.main.push(request) - 1;
      return this.step(request, index);
    } catch (error) {
      this.problems.push(error instanceof Error ? error.message : String(error));
      return statusAnswer(400, { error: { message: "not in the script", type: "invalid" } });
    }
  }

  protected call(made: ScriptedCall, index: number): readonly Step[] {
    const id = `call_${String(index)}_${randomBytes(4).toString("hex")}`;
    return textAnswer("", {
      toolCalls: [{ id, ...made }],
      reasoning: "One step at a time.",
      pieceCharacters: 7,
      usage: usageOf(this.#asked - 1),
    });
  }

  protected text(text: string): readonly Step[] {
    return textAnswer(text, { pieceCharacters: 5, usage: usageOf(this.#asked - 1) });
  }
}

/** Reads note.txt, runs a command on the word in it, edits the file, answers with the word. */
export class TaskScript extends AnyScript {
  readonly prompt: string;
  readonly #path: string;
  #word: string | null = null;

  constructor(settings: ScriptSettings & { readonly path: string }) {
    super(settings);
    this.#path = settings.path;
    this.prompt = `Task ${randomBytes(4).toString("hex")}: read ${this.#path}, hash its word, set its status to done, tell the word.`;
  }

  protected step(request: RecordedRequest, index: number): readonly Step[] {
    const tools = offeredTools(request);
    const results = toolResults(request);
    if (results.length !== index) {
      throw new Error(`request ${index + 1} holds ${results.length} tool results`);
    }
    const last = results.at(-1) ?? "";
    switch (index) {
      case 0:
        return this.call(callToRead(tools, this.#path), index);
      case 1:
        this.#word = wordPattern.exec(last)?.[0] ?? null;
        return this.call(callToRun(tools, `printf %s ${this.#known()} | sha256sum`), index);
      case 2: {
        if (!last.includes(hash("sha256", this.#known()))) {
          throw new Error(`the command's output is not in its result: ${last}`);
        }
        const to = `Status: done, ${this.#known()}`;
        return this.call(callToEdit(tools, { path: this.#path, from: openLine, to }), index);
      }
      case 3:
        return this.text(`Done. The word is ${this.#known()}.`);
      default:
        throw new Error("a request after the answer");
    }
  }

  #known(): string {
    if (this.#word === null) throw new Error("the file's word is not in the tool result");
    return this.#word;
  }
}

/** Answers a question at once; what stands before the first answer, and how many answers there may be, is given. */
export class AnswerScript extends AnyScript {
  readonly prompt = `Question ${randomBytes(4).toString("hex")}: which word is it? Answer with the word alone.`;
  readonly #word: string;
  readonly #first: ((answer: readonly Step[]) => readonly Step[]) | null;
  readonly #answersMax: number;

  constructor(
    settings: ScriptSettings & {
      readonly word: string;
      readonly answersMax: number;
      /** What the first request gets, made of what it would get. */
      readonly first?: (answer: readonly Step[]) => readonly Step[];
    },
  ) {
    super(settings);
    this.#word = settings.word;
    this.#first = settings.first ?? null;
    this.#answersMax = settings.answersMax;
  }

  protected step(_request: RecordedRequest, index: number): readonly Step[] {
    if (index >= this.#answersMax) throw new Error("a request more than expected");
    const answer = this.text(`The word is ${this.#word}.`);
    return index === 0 && this.#first !== null ? this.#first(answer) : answer;
  }
}
