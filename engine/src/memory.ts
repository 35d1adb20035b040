import { readdir, stat } from "node:fs/promises";
import { freemem, totalmem } from "node:os";
import { basename, dirname, join } from "node:path";
import { contextTokensUsual } from "./command-line.ts";
import { GgufInsights, readGgufFileInfo, type Llama } from "node-llama-cpp";

/** What a model takes at the least: its weights, and the context of one slot. */
export interface MemoryNeed {
  readonly weightsBytes: number;
  readonly contextBytes: number;
  readonly contextTokens: number;
}

/** What is to be loaded. */
export interface MemoryOrder {
  readonly modelFile: string;
  /** As the operator set it; null: the usual one. */
  readonly contextTokens: number | null;
  readonly batchTokens: number;
}

const gibibyte = 2 ** 30;
/** The service beside the model, and what the model's process needs for itself. */
const otherBytes = 256 * 2 ** 20;

/**
 * Throws an Error with the numbers when the model does not fit. Working out the need takes up to a second, so that
 * a model whose weights are a small part of memory passes without: at the usual length a context is never three times
 * as large.
 */
export async function ensureFits(order: MemoryOrder, llama: Llama): Promise<void> {
  const availableBytes = await measureAvailable(llama);
  const weightsBytes = await measureWeights(order.modelFile);
  const isUsual = (order.contextTokens ?? contextTokensUsual) <= contextTokensUsual;
  if (isUsual && weightsBytes * 4 <= availableBytes) return;
  const alone: MemoryNeed = { weightsBytes, contextBytes: 0, contextTokens: 0 };
  // Weights alone that are too large need no look inside.
  const need =
    findMemoryProblem(alone, availableBytes) === null
      ? await measureNeed(order, weightsBytes, llama)
      : alone;
  const problem = findMemoryProblem(need, availableBytes);
  if (problem !== null) throw new Error(problem);
}

/** Why the model does not fit, with numbers and what to change; null: it does. */
export function findMemoryProblem(need: MemoryNeed, availableBytes: number): string | null {
  const { contextBytes, contextTokens, weightsBytes } = need;
  if (weightsBytes + contextBytes <= availableBytes) return null;
  const context =
    contextBytes === 0
      ? ""
      : ` and ${inGibibytes(contextBytes)} for ${contextTokens.toLocaleString("en-US")} tokens of context`;
  const advice =
    weightsBytes < availableBytes && contextBytes > 0
      ? "Set TRIBUTARY_DEPLOYMENT_CONTEXT_TOKENS to less, or use a smaller model."
      : "Use a smaller model, or the same one in fewer bits (such as Q4_K_M).";
  return (
    `the model does not fit into memory: it needs ${inGibibytes(weightsBytes)} for its weights${context}, ` +
    `${inGibibytes(availableBytes)} are available. ${advice}`
  );
}

async function measureNeed(
  order: MemoryOrder,
  weightsBytes: number,
  llama: Llama,
): Promise<MemoryNeed> {
  try {
    const info = await readGgufFileInfo(order.modelFile, {
      logWarnings: false,
      sourceType: "filesystem",
    });
    const insights = await GgufInsights.from(info, llama);
    const contextTokens = Math.min(
      order.contextTokens ?? contextTokensUsual,
      insights.trainContextSize ?? contextTokensUsual,
    );
    // Its successor makes the context for a trial, which takes many seconds for one that is far too large.
    // oxlint-disable-next-line typescript/no-deprecated
    const { cpuRam, gpuVram } = insights.estimateContextResourceRequirements({
      contextSize: contextTokens,
      modelGpuLayers: 0,
      batchSize: order.batchTokens,
      sequences: 1,
      includeGraphOverhead: false,
    });
    return { weightsBytes, contextBytes: cpuRam + gpuVram, contextTokens };
  } catch {
    // Of a file that cannot be understood the load that follows has the better error.
    return { weightsBytes, contextBytes: 0, contextTokens: 0 };
  }
}

async function measureAvailable(llama: Llama): Promise<number> {
  // Free memory of macOS leaves out what it gives back at once.
  const free = process.platform === "darwin" ? totalmem() * 0.9 : freemem();
  const limit = process.constrainedMemory();
  // What is counted against a container's limit holds the cache of files too, so that only the limit is of use.
  const limited = limit > 0 && limit < totalmem() ? Math.min(free, limit - otherBytes) : free;
  // On Apple silicon both are the same memory.
  if (llama.gpu === false || llama.gpu === "metal") return limited;
  return limited + (await llama.getVramState()).free;
}

/** A model may be split into files that are loaded together. */
async function measureWeights(modelFile: string): Promise<number> {
  const split = /^(.*)-\d{5}-of-\d{5}\.gguf$/i.exec(basename(modelFile))?.[1];
  if (split === undefined) return (await stat(modelFile)).size;
  const folder = dirname(modelFile);
  const names = await readdir(folder);
  const parts = names.filter((name) => name.startsWith(`${split}-`) && /\.gguf$/i.test(name));
  const sizes = await Promise.all(parts.map(async (name) => (await stat(join(folder, name))).size));
  return sizes.reduce((sum, size) => sum + size, 0);
}

function inGibibytes(bytes: number): string {
  return `${(bytes / gibibyte).toFixed(bytes < gibibyte ? 2 : 1)} GiB`;
}
