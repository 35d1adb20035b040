import { randomInt } from "node:crypto";
import type { LlamaContextSequence, SequenceEvaluateOptions, Token } from "node-llama-cpp";
import type { AnswerNews, GenerationOptions, SamplingDefaults } from "./conversation.ts";
import type { AnswerPlan, ChatPrompt } from "./chat-prompt.ts";
import { alonePriority, sharingPriority } from "./engine-batches.ts";
import { Answer, type AnswerParts } from "./engine-answer.ts";

/**
 * Tokens of a prompt between two looks at cancellation: the library itself looks only before and after an evaluation.
 * Slices end at multiples of this in the prompt, so that a reused prefix was evaluated in the very same slices.
 */
export const sliceTokens = 64;

/** The last tokens that presence and frequency penalties look at. */
const penaltyTokensMax = 512;
/** The last tokens that a model's own penalty looks at. */
const repeatTokensMax = 64;

/** One generation under way. Its prompt is filled in once it is read. A cancelled one tells nothing more. */
export class EngineGeneration implements ChatPrompt {
  readonly options: GenerationOptions;
  readonly outputTokensMax: number;
  readonly tell: (news: AnswerNews) => void;
  readonly abort = new AbortController();
  tokens: readonly Token[] = [];
  endTokens: ReadonlySet<Token> = new Set();
  plan: AnswerPlan = { thought: null, thinking: false, call: null };
  paused = false;
  /** Asks for one evaluation after another, in batches with others. */
  sharing = false;
  /** Called at resume and cancel. */
  #wake: () => void = () => undefined;

  constructor(
    { options, outputTokensMax }: Pick<EngineGeneration, "options" | "outputTokensMax">,
    tell: (news: AnswerNews) => void,
  ) {
    this.options = options;
    this.outputTokensMax = outputTokensMax;
    this.tell = (news) => {
      if (!this.cancelled) tell(news);
    };
  }

  get cancelled(): boolean {
    return this.abort.signal.aborted;
  }

  pause(): void {
    this.paused = true;
  }

  resume(): void {
    this.paused = false;
    this.#wake();
  }

  /** One that runs looks at it after the evaluation under way. */
  cancel(): void {
    this.abort.abort();
    this.#wake();
  }

  async waitForResume(): Promise<void> {
    while (this.paused && !this.cancelled) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
}

/** A sequence of the context, and what it may be reused for. */
export interface EngineSlot {
  readonly sequence: LlamaContextSequence;
  running: EngineGeneration | null;
  /** Leading tokens that were evaluated alone and in aligned slices: reusing them changes no later rounding. */
  repeatableTokens: number;
  usedAtMs: number;
}

/** What every generation of one engine uses. */
export interface EngineTools extends AnswerParts {
  readonly contextTokens: number;
  readonly sampling: SamplingDefaults;
  readonly counts: { slices: number; steps: number; batches: number };
}

/** Evaluates the prompt and writes the answer; returns early, saying nothing, when the generation is cancelled. */
export async function runGeneration(
  generation: EngineGeneration,
  slot: EngineSlot,
  tools: EngineTools,
): Promise<void> {
  generation.tell({ type: "accepted" });
  const repeatable = isRepeatable(generation.options);
  generation.sharing = !repeatable;
  const cached = await reusePrefix(generation, slot, repeatable);
  const rest = await evaluatePrompt({ generation, slot, tools, cached, repeatable });
  if (rest === null) return;
  const answer = await startAnswer(generation, tools, cached);
  await writeAnswer({ generation, slot, tools, rest, repeatable, answer });
}

/** Whether the caller may expect the same text again. */
function isRepeatable(options: GenerationOptions): boolean {
  return options.seed !== null || options.temperature === 0;
}

/** Keeps what the slot knows of this prompt; gives the number of tokens that need no evaluation. */
async function reusePrefix(
  { tokens }: EngineGeneration,
  slot: EngineSlot,
  repeatable: boolean,
): Promise<number> {
  const { sequence } = slot;
  const shared = sequence.compareContextTokens([...tokens]).firstDifferentIndex;
  // The last token is evaluated in any case, as its evaluation gives the first token of the answer.
  const known = Math.min(shared, tokens.length - 1);
  const wanted = repeatable ? Math.min(floorToSlice(known), slot.repeatableTokens) : known;
  await sequence.adaptStateToTokens(tokens.slice(0, wanted), false);
  const kept = sequence.nextTokenIndex;
  slot.repeatableTokens = Math.min(slot.repeatableTokens, floorToSlice(kept));
  return kept;
}

function floorToSlice(tokens: number): number {
  return Math.floor(tokens / sliceTokens) * sliceTokens;
}

interface PromptWork {
  readonly generation: EngineGeneration;
  readonly slot: EngineSlot;
  readonly tools: EngineTools;
  readonly cached: number;
  readonly repeatable: boolean;
}

/** Evaluates all but the last slice, which is returned; null when cancelled. */
async function evaluatePrompt(work: PromptWork): Promise<Token[] | null> {
  const { generation, slot, tools, cached, repeatable } = work;
  const { tokens } = generation;
  const exactSoFar = repeatable && slot.repeatableTokens === cached;
  let start = cached;
  for (;;) {
    if (generation.cancelled) return null;
    const end = floorToSlice(start) + sliceTokens;
    if (end >= tokens.length) return tokens.slice(start);
    await slot.sequence.evaluateWithoutGeneratingNewTokens(tokens.slice(start, end), {
      evaluationPriority: repeatable ? alonePriority : sharingPriority,
    });
    tools.counts.slices += 1;
    if (exactSoFar) slot.repeatableTokens = end;
    start = end;
    if (generation.cancelled) return null;
    generation.tell({
      type: "progress",
      usage: { inputTokens: end, cachedInputTokens: cached, outputTokens: 0, reasoningTokens: 0 },
    });
  }
}

interface AnswerWork extends Omit<PromptWork, "cached"> {
  readonly rest: Token[];
  readonly answer: Answer;
}

function startAnswer(
  generation: EngineGeneration,
  tools: EngineTools,
  cached: number,
): Promise<Answer> {
  const { endTokens, options, plan, tell, tokens } = generation;
  const order = {
    tell,
    plan,
    options,
    inputTokens: tokens.length,
    cachedInputTokens: cached,
    outputTokensMax: Math.min(generation.outputTokensMax, tools.contextTokens - tokens.length),
    isEnd: (token: Token) => tools.model.isEogToken(token) || endTokens.has(token),
  };
  return Answer.open(order, tools);
}

async function writeAnswer(work: AnswerWork): Promise<void> {
  const { generation, slot, tools, rest, repeatable, answer } = work;
  const tokens = slot.sequence.evaluate(rest, {
    ...buildSampling(generation.options, tools, answer),
    yieldEogToken: true,
    evaluationPriority: repeatable ? alonePriority : sharingPriority,
  });
  let feed: Token[] | undefined;
  try {
    while (answer.hasRoom) {
      if (generation.paused) {
        generation.sharing = false;
        await generation.waitForResume();
        generation.sharing = !repeatable;
      }
      if (generation.cancelled) return;
      const next = await (feed === undefined ? tokens.next() : tokens.next(feed));
      tools.counts.steps += 1;
      if (generation.cancelled) return;
      if (next.done === true) return answer.end("stop");
      const step = await answer.add(next.value);
      if (step.type === "ended") return;
      feed = step.type === "feed" ? step.tokens : undefined;
    }
    answer.end("length");
  } finally {
    await tokens.return();
  }
}

/** The last number of 32 bits means "take any" to llama.cpp, and without a seed the library takes the clock's second. */
const seedCount = 2 ** 32 - 1;

/** A seed of any size and sign, as one of those that llama.cpp keeps to. */
function foldSeed(seed: number): number {
  const folded = Math.trunc(seed) % seedCount;
  return folded < 0 ? folded + seedCount : folded;
}

function buildSampling(
  options: GenerationOptions,
  { sampling }: EngineTools,
  answer: Answer,
): SequenceEvaluateOptions {
  return {
    temperature: options.temperature ?? sampling.temperature,
    topP: options.topP ?? sampling.topP,
    topK: options.topK ?? sampling.topK,
    minP: sampling.minP,
    seed: options.seed === null ? randomInt(seedCount) : foldSeed(options.seed),
    ...buildPenalties(options, sampling, answer),
    grammarEvaluationState: () => answer.grammar,
  };
}

/** The caller's penalties take the place of the model's own, which does not touch JSON: its marks have to repeat. */
function buildPenalties(
  options: GenerationOptions,
  { repeatPenalty }: SamplingDefaults,
  answer: Answer,
): SequenceEvaluateOptions {
  const { frequencyPenalty: frequency, presencePenalty: presence } = options;
  const presencePenalty = presence ?? 0;
  const frequencyPenalty = frequency ?? 0;
  const isAsked = presence !== null || frequency !== null;
  const isOwn = !isAsked && repeatPenalty !== 1 && options.responseFormat !== "json-object";
  if (!isOwn && presencePenalty === 0 && frequencyPenalty === 0) return {};
  const tokens = isOwn ? repeatTokensMax : penaltyTokensMax;
  return {
    repeatPenalty: {
      penalty: isOwn ? repeatPenalty : 1,
      presencePenalty,
      frequencyPenalty,
      maxPunishTokens: tokens,
      punishTokens: () => answer.penalized(tokens),
    },
  };
}
