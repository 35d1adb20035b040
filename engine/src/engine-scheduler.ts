import type { Token } from "node-llama-cpp";
import { openChatPrompts } from "./chat-prompt.ts";
import {
  RequestError,
  type AnswerNews,
  type Conversation,
  type GenerationOptions,
} from "./conversation.ts";
import {
  EngineGeneration,
  runGeneration,
  type EngineSlot,
  type EngineTools,
} from "./engine-generation.ts";

/** What is known once the model is loaded. */
export interface EngineFacts {
  readonly model: string;
  readonly contextTokens: number;
  /** Whether the context has room for tools, and the model was trained on conversations. */
  readonly takesTools: boolean;
  readonly slots: number;
  /** At most. */
  readonly threads: number;
  /** Which kind of GPU runs it; null: the processor does. */
  readonly gpu: string | null;
  /** Names of its GPUs; null without any. */
  readonly devices: string | null;
  /** Which llama.cpp it is, and how it was built. */
  readonly build: string;
  readonly loadMs: number;
}

/** What the engine did since it started; tests compare these before and after. */
export interface EngineCounts {
  /** Slices of prompts evaluated. */
  readonly slices: number;
  /** Evaluations that gave a token. */
  readonly steps: number;
  /** What went to the model at once: slices and steps of one generation, or of several. */
  readonly batches: number;
  /** Generations that hold a slot. */
  readonly running: number;
  /** Generations that wait for one. */
  readonly queued: number;
}

/** One request for an answer. */
export interface GenerationOrder {
  readonly conversation: Conversation;
  readonly options: GenerationOptions;
  readonly outputTokensMax: number;
}

/** What an engine works with. */
export interface EngineParts {
  readonly facts: EngineFacts;
  readonly tools: EngineTools;
  readonly slots: readonly EngineSlot[];
  readonly warn: (message: string) => void;
  readonly now: () => number;
}

/** A loaded model. Counts the tokens of prompts, gives each prompt a slot in the order of arrival, and runs it. */
export class Engine {
  readonly facts: EngineFacts;
  readonly #parts: EngineParts;
  readonly #openPrompt: ReturnType<typeof openChatPrompts>;
  readonly #generations = new Set<EngineGeneration>();
  readonly #queue: EngineGeneration[] = [];
  #heardAtMs: number;

  constructor(parts: EngineParts) {
    this.facts = parts.facts;
    this.#parts = parts;
    this.#openPrompt = openChatPrompts(parts.tools.model, parts.warn);
    this.#heardAtMs = parts.now();
  }

  generate(order: GenerationOrder, tell: (news: AnswerNews) => void): EngineGeneration {
    const heard = (): void => {
      this.#heardAtMs = this.#parts.now();
    };
    if (this.#generations.size === 0) heard();
    const generation = new EngineGeneration(order, (news) => {
      heard();
      tell(news);
    });
    this.#generations.add(generation);
    // One that waits for a slot is gone at once.
    generation.abort.signal.addEventListener("abort", () => {
      const place = this.#queue.indexOf(generation);
      if (place === -1) return;
      this.#queue.splice(place, 1);
      this.#generations.delete(generation);
    });
    void this.#enqueue(generation, order);
    return generation;
  }

  /** The tokens that the model would read, from the template's first to the beginning of the answer. */
  async buildPrompt(conversation: Conversation, signal: AbortSignal): Promise<readonly Token[]> {
    return (await this.#openPrompt(conversation, this.facts.takesTools, signal)).tokens;
  }

  tokenize(text: string, parseSpecial: boolean): readonly Token[] {
    return this.#parts.tools.model.tokenize(text, parseSpecial);
  }

  detokenize(tokens: readonly Token[]): string {
    return this.#parts.tools.model.detokenize(tokens, true);
  }

  counts(): EngineCounts {
    const running = this.#parts.slots.filter((slot) => slot.running !== null).length;
    return { ...this.#parts.tools.counts, running, queued: this.#queue.length };
  }

  /** Milliseconds since a generation that is not paused gave an event; 0 while none is owed. */
  silenceMs(): number {
    const nowMs = this.#parts.now();
    if (![...this.#generations].some(({ paused }) => !paused)) this.#heardAtMs = nowMs;
    return nowMs - this.#heardAtMs;
  }

  async #enqueue(generation: EngineGeneration, { conversation }: GenerationOrder): Promise<void> {
    const { contextTokens, takesTools } = this.facts;
    const { signal } = generation.abort;
    try {
      const prompt = await this.#openPrompt(conversation, takesTools, signal);
      signal.throwIfAborted();
      ensureRoom(prompt.tokens.length, contextTokens);
      this.#queue.push(Object.assign(generation, prompt));
    } catch (error) {
      this.#generations.delete(generation);
      if (!signal.aborted) this.#fail(generation, error);
    }
    this.#pump();
  }

  #pump(): void {
    for (;;) {
      const [next] = this.#queue;
      if (next === undefined) return;
      const slot = pickSlot(this.#parts.slots, next.tokens);
      if (slot === null) return;
      this.#queue.shift();
      slot.running = next;
      void this.#run(next, slot);
    }
  }

  async #run(generation: EngineGeneration, slot: EngineSlot): Promise<void> {
    try {
      await runGeneration(generation, slot, this.#parts.tools);
    } catch (error) {
      slot.repeatableTokens = 0;
      this.#fail(generation, error);
      await slot.sequence.clearHistory();
    } finally {
      slot.running = null;
      slot.usedAtMs = this.#parts.now();
      this.#generations.delete(generation);
      this.#pump();
    }
  }

  #fail(generation: EngineGeneration, error: unknown): void {
    generation.tell({ type: "failed", error: toRequestError(error, this.#parts.warn) });
  }
}

function toRequestError(error: unknown, warn: (message: string) => void): RequestError {
  if (error instanceof RequestError) return error;
  const words = error instanceof Error ? (error.stack ?? error.message) : String(error);
  warn(`generation failed: ${words}`);
  return new RequestError(
    [500, "server_error"],
    "The model failed while it answered. Try again; the engine's log has the reason.",
  );
}

/** One token of context is left for the answer; nothing of the input is ever dropped to make room. */
function ensureRoom(inputTokens: number, contextTokens: number): void {
  const maximum = contextTokens - 1;
  if (inputTokens <= maximum) return;
  throw new RequestError(
    [400, "exceed_context_size_error"],
    `The input has ${String(inputTokens)} tokens, but this model takes at most ${String(maximum)}. Send less.`,
    { n_prompt_tokens: inputTokens, n_ctx: maximum },
  );
}

/**
 * The free slot that gains most: what it knows of the prompt less what it would forget. Where none gains, the one that
 * rested longest, so that a short prompt with a common beginning does not push out a long conversation.
 */
function pickSlot(slots: readonly EngineSlot[], tokens: readonly Token[]): EngineSlot | null {
  let best: EngineSlot | null = null;
  let bestGain = 0;
  for (const slot of slots) {
    if (slot.running !== null) continue;
    const { sequence } = slot;
    const shared = sequence.compareContextTokens([...tokens]).firstDifferentIndex;
    const gain = Math.max(0, shared - (sequence.nextTokenIndex - shared));
    const better =
      best === null || gain > bestGain || (gain === bestGain && slot.usedAtMs < best.usedAtMs);
    if (!better) continue;
    best = slot;
    bestGain = gain;
  }
  return best;
}
