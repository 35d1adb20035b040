import { mkdtempSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import type {
  Conversation,
  GenerationOptions,
  Tool,
  ToolChoice,
  Turn,
} from "../../src/conversation/conversation.ts";
import type { Usage } from "../../src/conversation/generation-event.ts";
import {
  openEmbeddedDeployment,
  type EmbeddedDeployment,
} from "../../src/deployment/embedded/embedded-deployment.ts";
import type { EmbeddedSettings } from "../../src/deployment/embedded/engine-settings.ts";
import type { GenerationSink, Prompt } from "../../src/deployment/deployment.ts";
import { connectEngine } from "../../src/gateway.ts";
import { record, type Recording } from "../deployment/recording-sink.ts";
import { writeTinyModel, type TinyModelOptions } from "../../engine/tests/make-tiny-model.ts";

/** One event of the engine's life, as the log gets it. */
export interface LifecycleLine {
  readonly event: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** A tiny model in a folder of its own, served by a real child. Disposing ends both. */
export interface TinyEngine extends AsyncDisposable {
  readonly deployment: EmbeddedDeployment;
  readonly folder: string;
  readonly lines: readonly LifecycleLine[];
}

/** Opens it and waits until it answers. */
export async function openTinyEngine(
  settings: Partial<EmbeddedSettings> = {},
  model: TinyModelOptions = {},
): Promise<TinyEngine> {
  const folder = mkdtempSync(join(tmpdir(), "tiny-engine-"));
  const path = join(folder, "tiny.gguf");
  writeTinyModel(path, model);
  const lines: LifecycleLine[] = [];
  const deployment = await openEmbedded(
    { dataDir: folder, model: path, slots: 2, threads: 1, ...settings },
    lines,
  );
  await untilReady(deployment);
  return {
    deployment,
    folder,
    lines,
    async [Symbol.asyncDispose]() {
      await deployment[Symbol.asyncDispose]();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** The embedded deployment as the gateway opens it. What its log gets is added to `lines`. */
export function openEmbedded(
  settings: EmbeddedSettings,
  lines: LifecycleLine[] = [],
): Promise<EmbeddedDeployment> {
  return openEmbeddedDeployment(settings, {
    now: () => performance.now(),
    onProgress: () => undefined,
    onLifecycle: (event, fields) => lines.push({ event, fields }),
    connect: connectEngine,
  });
}

/** Waits for the model, however busy the machine is: an engine has the lowest priority on it. */
export async function untilReady(deployment: EmbeddedDeployment): Promise<void> {
  const signal = AbortSignal.timeout(100_000);
  while (!deployment.describe().ready) {
    signal.throwIfAborted();
    await deployment.whenReady(signal).catch(() => undefined);
    // While weights come in it refuses at once, and nothing else would get its turn.
    await wait(10, undefined, { signal });
  }
}

/** Nothing is asked for. */
export const plainOptions: GenerationOptions = {
  temperature: null,
  topP: null,
  topK: null,
  stopSequences: [],
  seed: null,
  presencePenalty: null,
  frequencyPenalty: null,
  reasoningEffort: null,
  responseFormat: "text",
};

/** What a test asks. `begin`: text of an assistant turn that the model goes on with. */
export interface Question {
  readonly user?: string;
  readonly begin?: string;
  readonly turns?: readonly Turn[];
  readonly outputTokensMax?: number;
  readonly options?: Partial<GenerationOptions>;
  readonly tools?: readonly Tool[];
  readonly toolChoice?: ToolChoice;
}

/** Starts a generation and records what comes. */
export function ask(
  deployment: EmbeddedDeployment,
  question: Question,
  onEvents?: Parameters<typeof record>[2],
): Recording {
  const turns: Turn[] = [...(question.turns ?? [{ role: "user", text: question.user ?? "hi" }])];
  if (question.begin !== undefined) {
    turns.push({ role: "assistant", parts: [{ type: "text", text: question.begin }] });
  }
  const conversation: Conversation = {
    turns,
    tools: question.tools ?? [],
    toolChoice: question.toolChoice ?? { type: "auto" },
    parallelToolCalls: null,
  };
  const prompt = deployment.prepare(conversation, { ...plainOptions, ...question.options });
  const outputTokensMax = question.outputTokensMax ?? 32;
  const limited = {
    start: (bytes: Prompt, _most: number, sink: GenerationSink) =>
      deployment.start(bytes, outputTokensMax, sink),
  };
  return record(limited, prompt, onEvents);
}

/** Asks and waits; fails when the answer did not end well. */
export async function answer(
  deployment: EmbeddedDeployment,
  question: Question,
): Promise<{ text: string; reason: string; stopSequence: string | null; usage: Usage }> {
  const recording = ask(deployment, question);
  const ending = await recording.ended;
  if (ending.type === "failed") throw ending.failure;
  if (ending.type !== "finished" || ending.usage === null) throw new Error(ending.type);
  return { text: recording.text, ...ending.finish, usage: ending.usage };
}

/** What the child did so far. */
export function counts(deployment: EmbeddedDeployment) {
  return deployment.counts(AbortSignal.timeout(5_000));
}

/** Looks again and again, as what is waited for happens in another process. */
export async function until(done: () => boolean | Promise<boolean>, ms = 8_000): Promise<void> {
  const endMs = performance.now() + ms;
  while (!(await done())) {
    if (performance.now() > endMs) throw new Error("it did not happen in time");
    await new Promise((resolve) => {
      setTimeout(resolve, 10);
    });
  }
}

/** Whether a process is there; one that ended but was not asked for yet is not. */
export function isAlive(processId: number): boolean {
  try {
    process.kill(processId, 0);
    return true;
  } catch {
    return false;
  }
}
