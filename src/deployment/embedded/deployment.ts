import { setTimeout as wait } from "node:timers/promises";
import { Failure } from "../../failure.ts";
import { limits } from "../../limits.ts";
import type { Deployment, GenerationSink, Prompt } from "../deployment.ts";
import { generalSampling } from "./catalog.ts";
import type { EngineCounts, EngineReport, LoadOrder } from "./engine-messages.ts";
import { openEngineSupervisor, type EngineSupervisor } from "./engine-supervisor.ts";
import { openGenerationTable } from "./generation-table.ts";
import { parseModelSetting, type ModelChoice } from "./model-setting.ts";
import { thisMachine, type Environment } from "./pip-configuration.ts";
import { embeddedRecipe, prepareEmbeddedPrompt } from "./prompt.ts";
import { openReadiness, type Readiness } from "./readiness.ts";
import { ensureWeights, type WeightsProgress } from "./weights.ts";

/** What the embedded engine is told by the operator. Counts that are absent or null are chosen by the machine. */
export interface EmbeddedSettings {
  /** Weights are kept in its folder `models`. */
  readonly dataDir: string;
  /** A catalog name or a path of a `.gguf`; null: the catalog's default. */
  readonly model: string | null;
  readonly contextTokens?: number | null;
  readonly slots?: number | null;
  readonly threads?: number | null;
  /** false: never a GPU. Otherwise one is used where its build of the library was installed. */
  readonly gpu?: boolean;
  /** Variables of the process, for what pip reads from them. */
  readonly environment?: Environment;
  /** Silence of the child during a generation after which it is taken for hung. */
  readonly hangMs?: number;
}

/** What the embedded engine needs from outside. */
export interface EmbeddedParts {
  readonly now: () => number;
  readonly onProgress: (progress: WeightsProgress) => void;
  readonly onLifecycle: (
    event: string,
    fields: Readonly<Record<string, string | number | boolean | null>>,
  ) => void;
}

/** The embedded engine, with what only tests and doctor ask. */
export interface EmbeddedDeployment extends Deployment {
  readonly processId: number | null;
  /** What the child did so far; rejects with a Failure when there is none that answers. */
  counts(signal: AbortSignal): Promise<EngineCounts>;
}

const hangMsDefault = 120_000;
const retryFetchMs = [5_000, 15_000, 60_000];

/** Returns at once; weights are fetched and loaded behind it. Throws a ModelSettingError for an impossible model. */
export function openEmbeddedDeployment(
  settings: EmbeddedSettings,
  parts: EmbeddedParts,
): EmbeddedDeployment {
  const model = parseModelSetting(settings.model);
  const readiness = openReadiness(parts.now);
  const stopped = new AbortController();
  let supervisor: EngineSupervisor | null = null;
  const table = openGenerationTable({
    send: (order) => supervisor?.send(order) ?? false,
    hung: () => supervisor?.kill(),
    hangMs: settings.hangMs ?? hangMsDefault,
    now: parts.now,
  });
  const asked = openCountQuestions();

  const report = (message: EngineReport): void => {
    if (message.type === "news") table.take(message.news);
    else if (message.type === "counts") asked.answer(message.counts);
    else if (message.type === "warning")
      parts.onLifecycle("model warning", { text: message.message });
  };
  const supervise = (path: string): void => {
    const listener = buildListener({ parts, readiness, model, report, table });
    supervisor = openEngineSupervisor(buildLoadOrder(settings, model, path), listener);
  };
  void openModel({ settings, parts, model, readiness, signal: stopped.signal }).then((path) =>
    path === null || stopped.signal.aborted ? undefined : supervise(path),
  );

  async function counts(signal: AbortSignal): Promise<EngineCounts> {
    if (supervisor?.send({ type: "count" }) !== true) throw readiness.failure();
    return asked.ask(signal);
  }

  return {
    recipe: () => embeddedRecipe,
    prepare: (conversation, options) =>
      prepareEmbeddedPrompt(embeddedRecipe, conversation, options),
    whenReady: (signal) => readiness.wait(limits.modelLoadWaitMs, signal),
    start: (prompt: Prompt, outputTokensMax: number, sink: GenerationSink) =>
      table.start({ prompt: prompt.bytes, outputTokensMax }, sink),
    describe: () => ({
      ready: supervisor?.facts !== undefined && supervisor?.facts !== null,
      model: supervisor?.facts?.model ?? model.name,
      contextTokens: supervisor?.facts?.contextTokens ?? contextTokensBefore(settings, model),
      takesTools: false,
    }),
    check: async (signal) => void (await counts(signal)),
    counts,
    get processId() {
      return supervisor?.processId ?? null;
    },
    async [Symbol.asyncDispose]() {
      stopped.abort();
      readiness.set({ type: "stopped" });
      table.failAll(
        new Failure("overloaded", "The service is stopping.", { retryAfterSeconds: 5 }),
      );
      table.close();
      await supervisor?.close();
    },
  };
}

function contextTokensBefore(settings: EmbeddedSettings, model: ModelChoice): number | null {
  return settings.contextTokens ?? (model.type === "catalog" ? model.entry.contextTokens : null);
}

function buildLoadOrder(
  settings: EmbeddedSettings,
  model: ModelChoice,
  modelFile: string,
): LoadOrder {
  return {
    type: "load",
    modelFile,
    contextTokens: settings.contextTokens ?? null,
    slots: settings.slots ?? null,
    threads: settings.threads ?? null,
    sampling: model.type === "file" ? model.sampling : (model.entry.sampling ?? generalSampling),
    gpu: settings.gpu ?? true,
  };
}

interface OpenModelOrder {
  readonly settings: EmbeddedSettings;
  readonly parts: EmbeddedParts;
  readonly model: ModelChoice;
  readonly readiness: Readiness;
  readonly signal: AbortSignal;
}

/** Path of the weights, fetched where they are not here; null once the deployment is closed. */
async function openModel(order: OpenModelOrder): Promise<string | null> {
  const { settings, parts, model, readiness, signal } = order;
  if (model.type === "file") return model.path;
  const { entry } = model;
  for (let attempt = 0; !signal.aborted; attempt += 1) {
    let began = false;
    const onProgress = (progress: WeightsProgress): void => {
      if (!began)
        parts.onLifecycle("weights downloading", {
          model: entry.name,
          bytes: progress.totalBytes,
          license: entry.license,
        });
      began = true;
      readiness.set({ type: "fetching", ...progress });
      parts.onProgress(progress);
    };
    try {
      const machine = thisMachine(settings.environment ?? {});
      const path = await ensureWeights(entry, settings.dataDir, { machine, onProgress, signal });
      if (began) parts.onLifecycle("weights fetched", { model: entry.name, path });
      readiness.set({ type: "loading" });
      return path;
    } catch (error) {
      if (signal.aborted) return null;
      const retryMs = retryFetchMs[Math.min(attempt, retryFetchMs.length - 1)] ?? 0;
      const reason = error instanceof Error ? error.message : String(error);
      readiness.set({ type: "failed" });
      parts.onLifecycle("weights missing", {
        model: entry.name,
        reason,
        retrySeconds: retryMs / 1_000,
      });
      await wait(retryMs, undefined, { signal }).catch(() => undefined);
    }
  }
  return null;
}

interface ListenerOrder {
  readonly parts: EmbeddedParts;
  readonly readiness: Readiness;
  readonly model: ModelChoice;
  readonly report: (report: EngineReport) => void;
  readonly table: { failAll(failure: Failure): void };
}

function buildListener({ parts, readiness, model, report, table }: ListenerOrder) {
  return {
    now: parts.now,
    report,
    loaded: (facts: { readonly model: string }) => {
      readiness.set({ type: "ready" });
      parts.onLifecycle("model loaded", { ...facts });
    },
    loadFailed: (reason: string, restartMs: number) => {
      readiness.set({ type: "failed" });
      parts.onLifecycle("model not loaded", {
        model: model.name,
        reason,
        retrySeconds: restartMs / 1_000,
      });
    },
    exited: (
      exit: {
        readonly code: number | null;
        readonly signal: string | null;
        readonly output: string;
      },
      restartMs: number,
    ) => {
      readiness.set({ type: "loading" });
      table.failAll(
        new Failure("deployment_failed", "The model stopped while it answered. Try again."),
      );
      parts.onLifecycle("model process ended", { ...exit, restartMs });
    },
  };
}

/** The child answers in order, so that answers need no numbers. */
function openCountQuestions() {
  let waiting: ((counts: EngineCounts) => void)[] = [];
  return {
    ask: (signal: AbortSignal) =>
      new Promise<EngineCounts>((resolve, reject) => {
        const giveUp = (): void => {
          reject(
            new Failure("deployment_timeout", "The model does not answer.", {
              cause: signal.reason,
            }),
          );
        };
        if (signal.aborted) giveUp();
        signal.addEventListener("abort", giveUp, { once: true });
        waiting.push((counts) => {
          signal.removeEventListener("abort", giveUp);
          resolve(counts);
        });
      }),
    answer(counts: EngineCounts) {
      const resolvers = waiting;
      waiting = [];
      for (const resolve of resolvers) resolve(counts);
    },
  };
}
