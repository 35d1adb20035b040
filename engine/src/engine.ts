import { freemem } from "node:os";
import { getLlama, LlamaLogLevel, type LlamaContext, type LlamaModel } from "node-llama-cpp";
import { contextTokensUsual, type Settings } from "./command-line.ts";
import type { SamplingDefaults } from "./conversation.ts";
import { readTemplate } from "./chat-prompt.ts";
import { openBatches, type PickBatch } from "./engine-batches.ts";
import type { EngineSlot, EngineTools } from "./engine-generation.ts";
import { planThreads } from "./engine-threads.ts";
import { openToolGrammars } from "./tool-grammars.ts";
import { ensureFits } from "./memory.ts";
import { Engine, type EngineFacts } from "./engine-scheduler.ts";

/** What is loaded, and how. */
export interface LoadOrder extends Pick<Settings, "contextTokens" | "slots" | "threads" | "gpu"> {
  readonly modelFile: string;
  readonly sampling: SamplingDefaults;
}

const slotsDefault = 4;
const batchTokens = 128;
/** In less there is no room for a tool's description, a call and its result. */
const toolContextTokensMin = 1_024;
const gibibyte = 2 ** 30;

/** Loads the model. Throws an Error whose message an operator can act on. */
export async function openEngine(
  order: LoadOrder,
  warn: (message: string) => void,
): Promise<Engine> {
  const startedAtMs = performance.now();
  const llama = await getLlama({
    gpu: order.gpu ? "auto" : false,
    build: "never",
    skipDownload: true,
    progressLogs: false,
    logLevel: LlamaLogLevel.warn,
    logger: (_level, message) => warn(message.trim()),
  });
  const threads = planThreads(order.threads, llama.gpu !== false);
  llama.maxThreads = threads.most;
  await ensureFits({ ...order, batchTokens }, llama);
  const model = await llama.loadModel({ modelPath: order.modelFile });
  const contextTokens = Math.min(model.trainContextSize, order.contextTokens ?? contextTokensUsual);
  const slots: EngineSlot[] = [];
  const counts = { slices: 0, steps: 0, batches: 0 };
  const pickBatch = openBatches({
    countSharing: () => slots.filter(({ running }) => running !== null && running.sharing).length,
    onBatch({ alone, tokens }) {
      counts.batches += 1;
      llama.maxThreads = alone ? threads.alone : threads.shared(tokens);
    },
  });
  const context = await openContext(
    model,
    { contextTokens, pickBatch },
    order.slots ?? slotsByMemory(),
  );
  for (let slot = 0; slot < context.totalSequences; slot += 1) slots.push(openSlot(context));
  const jsonGrammar = await llama.getGrammarFor("json");
  const facts: EngineFacts = {
    model: model.fileInfo.metadata.general.name ?? model.filename ?? "unknown",
    contextTokens: context.contextSize,
    takesTools: context.contextSize >= toolContextTokensMin && readTemplate(model) !== null,
    slots: context.totalSequences,
    threads: threads.most,
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
    toolGrammars: openToolGrammars({ llama, model }, warn),
    counts,
  };
  return new Engine({ facts, tools, slots, warn, now: () => performance.now() });
}

function slotsByMemory(): number {
  if (freemem() > 6 * gibibyte) return slotsDefault;
  return freemem() > 3 * gibibyte ? 2 : 1;
}

async function openContext(
  model: LlamaModel,
  order: { readonly contextTokens: number; readonly pickBatch: PickBatch },
  slots: number,
): Promise<LlamaContext> {
  const { contextTokens, pickBatch } = order;
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
    return openContext(model, order, 1);
  }
}

function openSlot(context: LlamaContext): EngineSlot {
  return { sequence: context.getSequence(), running: null, repeatableTokens: 0, usedAtMs: 0 };
}
