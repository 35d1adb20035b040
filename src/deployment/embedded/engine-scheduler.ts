import type { Token } from "node-llama-cpp";
import { Failure, failureFromUnknown, failureToData } from "../../failure.ts";
import { openChatPrompts } from "./chat-prompt.ts";
import {
  runGeneration,
  type EngineGeneration,
  type EngineSlot,
  type EngineTools,
} from "./engine-generation.ts";
import type { EngineCounts, EngineFacts, EngineNews } from "./engine-messages.ts";
import { readEmbeddedPrompt } from "./prompt.ts";

/** A loaded model with its slots; lives in the child. */
export interface Engine {
  readonly facts: EngineFacts;
  generate(id: number, promptBytes: Uint8Array, outputTokensMax: number): void;
  pause(id: number): void;
  resume(id: number): void;
  cancel(id: number): void;
  count(): EngineCounts;
}

/** What the engine tells while it works. */
export interface EngineListener {
  readonly news: (news: EngineNews) => void;
  readonly warn: (message: string) => void;
}

/** What the scheduler works with. */
export interface SchedulerParts {
  readonly facts: EngineFacts;
  readonly tools: EngineTools;
  readonly slots: readonly EngineSlot[];
  readonly warn: (message: string) => void;
}

/** Counts prompts, gives them slots in the order in which they came, and runs them. */
export function openScheduler(parts: SchedulerParts): Engine {
  const { facts, slots, tools } = parts;
  const generations = new Map<number, EngineGeneration>();
  const queue: EngineGeneration[] = [];
  const readPrompt = openPromptReader(parts);

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
      fail(generation, error, parts);
      await slot.sequence.clearHistory();
    } finally {
      slot.running = null;
      slot.usedAtMs = performance.now();
      generations.delete(generation.id);
      pump();
    }
  }

  async function enqueue(generation: EngineGeneration, promptBytes: Uint8Array): Promise<void> {
    try {
      await readPrompt(generation, promptBytes);
      queue.push(generation);
    } catch (error) {
      generations.delete(generation.id);
      fail(generation, error, parts);
    }
    pump();
  }

  return {
    facts,
    generate(id, promptBytes, outputTokensMax) {
      const generation = openGeneration(id, outputTokensMax);
      generations.set(id, generation);
      void enqueue(generation, promptBytes);
    },
    pause: (id) => setPaused(generations.get(id), true),
    resume: (id) => setPaused(generations.get(id), false),
    cancel(id) {
      const generation = generations.get(id);
      if (generation !== undefined && cancel(generation, queue)) generations.delete(id);
    },
    count: () => ({
      ...tools.counts,
      running: slots.filter((slot) => slot.running !== null).length,
      queued: queue.length,
    }),
  };
}

/** Fills in what the prompt says; rejects when it is too long or the generation was cancelled meanwhile. */
function openPromptReader({ facts, tools, warn }: SchedulerParts) {
  const buildPrompt = openChatPrompts(tools.model, warn);
  return async (generation: EngineGeneration, promptBytes: Uint8Array): Promise<void> => {
    const { conversation, options } = readEmbeddedPrompt(promptBytes);
    const prompt = await buildPrompt(conversation, facts.takesTools, generation.abort.signal);
    generation.abort.signal.throwIfAborted();
    ensureRoom(prompt.tokens.length, facts.contextTokens);
    generation.options = options;
    generation.tokens = prompt.tokens;
    generation.endTokens = prompt.endTokens;
    generation.plan = prompt.plan;
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

function setPaused(generation: EngineGeneration | undefined, paused: boolean): void {
  if (generation === undefined) return;
  generation.paused = paused;
  if (!paused) generation.wake?.();
}

function fail(generation: EngineGeneration, error: unknown, { tools, warn }: SchedulerParts): void {
  if (generation.cancelled) return;
  tools.news({ id: generation.id, type: "failed", failure: toFailureData(error, warn) });
}

function toFailureData(error: unknown, warn: (message: string) => void) {
  if (error instanceof Failure) return failureToData(failureFromUnknown(error));
  const words = error instanceof Error ? (error.stack ?? error.message) : String(error);
  warn(`generation failed: ${words}`);
  return failureToData(
    new Failure("deployment_failed", "The model failed while it answered. Try again."),
  );
}

function openGeneration(id: number, outputTokensMax: number): EngineGeneration {
  return {
    id,
    outputTokensMax,
    tokens: [],
    endTokens: new Set(),
    plan: { thought: null, thinking: false, call: null },
    options: null,
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
  throw new Failure(
    "input_too_large",
    `The input has ${inputTokens} tokens, but this model takes at most ${maximum}. Send less, or start a new ` +
      "conversation.",
    { tokens: { sent: inputTokens, maximum } },
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
