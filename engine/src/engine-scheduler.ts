import type { Token } from "node-llama-cpp";
import { openChatPrompts, type ChatPrompt } from "./chat-prompt.ts";
import {
  RequestError,
  type AnswerNews,
  type Conversation,
  type GenerationOptions,
} from "./conversation.ts";
import {
  runGeneration,
  type EngineGeneration,
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

/** A generation under way. A cancelled one tells nothing more. */
export interface RunningGeneration {
  pause(): void;
  resume(): void;
  cancel(): void;
}

/** A loaded model with its slots. */
export interface Engine {
  readonly facts: EngineFacts;
  generate(order: GenerationOrder, tell: (news: AnswerNews) => void): RunningGeneration;
  /** The tokens that the model would read, from the template's first to the beginning of the answer. */
  buildPrompt(conversation: Conversation, signal: AbortSignal): Promise<readonly Token[]>;
  tokenize(text: string, parseSpecial: boolean): readonly Token[];
  detokenize(tokens: readonly Token[]): string;
  counts(): EngineCounts;
  /** Milliseconds since a generation that is not paused gave an event; 0 while none is owed. */
  silenceMs(): number;
}

/** What the scheduler works with. */
export interface SchedulerParts {
  readonly facts: EngineFacts;
  readonly tools: EngineTools;
  readonly slots: readonly EngineSlot[];
  readonly warn: (message: string) => void;
  readonly now: () => number;
}

/** Counts the tokens of prompts, gives each prompt a slot in the order of arrival, and runs it. */
export function openScheduler(parts: SchedulerParts): Engine {
  const { facts, now, slots, tools, warn } = parts;
  const { buildPrompt, readPrompt } = openPromptReader(parts);
  const generations = new Set<EngineGeneration>();
  const queue: EngineGeneration[] = [];
  const silence = openSilence(generations, now);

  function pump(): void {
    for (;;) {
      const [next] = queue;
      if (next === undefined) return;
      const slot = pickSlot(slots, next.tokens);
      if (slot === null) return;
      queue.shift();
      slot.running = next;
      void run(next, slot);
    }
  }

  async function run(generation: EngineGeneration, slot: EngineSlot): Promise<void> {
    try {
      await runGeneration(generation, slot, tools);
    } catch (error) {
      slot.repeatableTokens = 0;
      generation.tell({ type: "failed", error: toRequestError(error, warn) });
      await slot.sequence.clearHistory();
    } finally {
      slot.running = null;
      slot.usedAtMs = now();
      generations.delete(generation);
      pump();
    }
  }

  async function enqueue(generation: EngineGeneration, order: GenerationOrder): Promise<void> {
    try {
      await readPrompt(generation, order.conversation);
      queue.push(generation);
    } catch (error) {
      generations.delete(generation);
      if (!generation.cancelled)
        generation.tell({ type: "failed", error: toRequestError(error, warn) });
    }
    pump();
  }

  function generate(order: GenerationOrder, tell: (news: AnswerNews) => void): RunningGeneration {
    if (generations.size === 0) silence.end();
    const generation = openGeneration(order, (news) => {
      silence.end();
      if (!generation.cancelled) tell(news);
    });
    generations.add(generation);
    void enqueue(generation, order);
    return openSwitches(generation, { generations, queue });
  }

  return {
    facts,
    generate,
    buildPrompt: async (conversation, signal) => (await buildPrompt(conversation, signal)).tokens,
    tokenize: (text, parseSpecial) => tools.model.tokenize(text, parseSpecial),
    detokenize: (tokens) => tools.model.detokenize(tokens, true),
    counts: () => {
      const running = slots.filter((slot) => slot.running !== null).length;
      return { ...tools.counts, running, queued: queue.length };
    },
    silenceMs: silence.ms,
  };
}

/** How long no generation gave an event while one should have. */
function openSilence(generations: ReadonlySet<EngineGeneration>, now: () => number) {
  let heardAtMs = now();
  const end = (): void => {
    heardAtMs = now();
  };
  return {
    end,
    ms: (): number => {
      if (![...generations].some(({ paused }) => !paused)) end();
      return now() - heardAtMs;
    },
  };
}

function openPromptReader({ facts, tools, warn }: SchedulerParts) {
  const openPrompt = openChatPrompts(tools.model, warn);
  const buildPrompt = (conversation: Conversation, signal: AbortSignal): Promise<ChatPrompt> =>
    openPrompt(conversation, facts.takesTools, signal);
  return {
    buildPrompt,
    /** Fills in what the conversation says; rejects when it is too long or the generation was cancelled meanwhile. */
    readPrompt: async (generation: EngineGeneration, conversation: Conversation): Promise<void> => {
      const { signal } = generation.abort;
      const prompt = await buildPrompt(conversation, signal);
      signal.throwIfAborted();
      ensureRoom(prompt.tokens.length, facts.contextTokens);
      generation.tokens = prompt.tokens;
      generation.endTokens = prompt.endTokens;
      generation.plan = prompt.plan;
    },
  };
}

interface Work {
  readonly generations: Set<EngineGeneration>;
  readonly queue: EngineGeneration[];
}

function openSwitches(generation: EngineGeneration, work: Work): RunningGeneration {
  return {
    pause: () => setPaused(generation, true),
    resume: () => setPaused(generation, false),
    cancel() {
      if (cancel(generation, work.queue)) work.generations.delete(generation);
    },
  };
}

/** True when it waited for a slot and is gone; one that runs looks at its flag after the evaluation under way. */
function cancel(generation: EngineGeneration, queue: EngineGeneration[]): boolean {
  generation.cancelled = true;
  generation.abort.abort();
  generation.wake?.();
  const place = queue.indexOf(generation);
  if (place !== -1) queue.splice(place, 1);
  return place !== -1;
}

function setPaused(generation: EngineGeneration, paused: boolean): void {
  generation.paused = paused;
  if (!paused) generation.wake?.();
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

function openGeneration(
  { options, outputTokensMax }: GenerationOrder,
  tell: (news: AnswerNews) => void,
): EngineGeneration {
  return {
    tell,
    options,
    outputTokensMax,
    tokens: [],
    endTokens: new Set(),
    plan: { thought: null, thinking: false, call: null },
    cancelled: false,
    paused: false,
    sharing: false,
    wake: null,
    abort: new AbortController(),
  };
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
