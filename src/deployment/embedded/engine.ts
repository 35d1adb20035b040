import { freemem } from "node:os";
import {
  getLlama,
  LlamaLogLevel,
  type BatchItem,
  type LlamaContext,
  type LlamaModel,
  type PrioritizedBatchItem,
} from "node-llama-cpp";
import type { EngineFacts, LoadOrder } from "./engine-messages.ts";
import { alonePriority, type EngineSlot, type EngineTools } from "./engine-generation.ts";
import { openToolGrammars } from "./tool-grammars.ts";
import { ensureFits } from "./memory.ts";
import { openScheduler, type Engine, type EngineListener } from "./engine-scheduler.ts";

const contextTokensDefault = 8_192;
const slotsDefault = 4;
const batchTokens = 128;
/** In less there is no room for a tool's description, a call and its result. */
const toolContextTokensMin = 1_024;
const gibibyte = 2 ** 30;

/** Loads the model. Throws an Error whose message an operator can act on. */
export async function openEngine(
  order: LoadOrder,
  threads: number,
  listener: EngineListener,
): Promise<Engine> {
  const startedAtMs = performance.now();
  const llama = await getLlama({
    gpu: order.gpu ? "auto" : false,
    build: "never",
    skipDownload: true,
    progressLogs: false,
    maxThreads: threads,
    logLevel: LlamaLogLevel.warn,
    logger: (_level, message) => listener.warn(message.trim()),
  });
  await ensureFits({ ...order, batchTokens }, llama);
  const model = await llama.loadModel({ modelPath: order.modelFile });
  const contextTokens = Math.min(
    model.trainContextSize,
    order.contextTokens ?? contextTokensDefault,
  );
  const context = await openContext(model, contextTokens, order.slots ?? slotsByMemory());
  const jsonGrammar = await llama.getGrammarFor("json");
  const facts: EngineFacts = {
    model: model.fileInfo.metadata.general.name ?? model.filename ?? "unknown",
    contextTokens: context.contextSize,
    takesTools: context.contextSize >= toolContextTokensMin,
    slots: context.totalSequences,
    threads,
    gpu: llama.gpu === false ? null : llama.gpu,
    devices: llama.gpu === false ? null : (await llama.getGpuDeviceNames()).join(", "),
    build: `llama.cpp ${llama.llamaCppRelease.release}, ${llama.buildType}`,
    loadMs: Math.round(performance.now() - startedAtMs),
  };
  const tools: EngineTools = {
    model,
    contextTokens: context.contextSize,
    sampling: order.sampling,
    jsonGrammar,
    toolGrammars: openToolGrammars(llama, listener.warn),
    news: listener.news,
    counts: { slices: 0, steps: 0 },
  };
  return openScheduler({ facts, tools, slots: openSlots(context), warn: listener.warn });
}

function slotsByMemory(): number {
  if (freemem() > 6 * gibibyte) return slotsDefault;
  return freemem() > 3 * gibibyte ? 2 : 1;
}

async function openContext(
  model: LlamaModel,
  contextTokens: number,
  slots: number,
): Promise<LlamaContext> {
  try {
    return await model.createContext({
      contextSize: contextTokens,
      sequences: slots,
      batchSize: batchTokens,
      flashAttention: "auto",
      batching: { itemPrioritizationStrategy: pickBatch },
    });
  } catch (error) {
    if (slots === 1) throw error;
    return openContext(model, contextTokens, 1);
  }
}

/**
 * Rounding differs with what shares a batch, so that a generation that must be repeatable is evaluated alone; the
 * others share. Queue order keeps it fair: each sequence has one item in the queue at a time.
 */
function pickBatch({
  items,
  size,
}: {
  items: readonly BatchItem[];
  size: number;
}): PrioritizedBatchItem[] {
  const [first] = items;
  if (first === undefined) return [];
  if (first.evaluationPriority === alonePriority) {
    return [{ item: first, processAmount: Math.min(size, first.tokens.length) }];
  }
  const picked: PrioritizedBatchItem[] = [];
  let left = size;
  for (const item of items) {
    if (item.evaluationPriority === alonePriority) continue;
    const processAmount = Math.min(left, item.tokens.length);
    if (processAmount === 0) break;
    picked.push({ item, processAmount });
    left -= processAmount;
  }
  return picked;
}

function openSlots(context: LlamaContext): EngineSlot[] {
  return Array.from({ length: context.totalSequences }, () => ({
    sequence: context.getSequence(),
    running: null,
    repeatableTokens: 0,
    usedAtMs: 0,
  }));
}
