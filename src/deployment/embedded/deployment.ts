import { Failure } from "../../failure.ts";
import { limits } from "../../limits.ts";
import type { Deployment, GenerationSink, Prompt } from "../deployment.ts";
import type { EngineCounts, EngineReport, LoadOrder } from "./engine-messages.ts";
import { openEngineSupervisor, type EngineSupervisor } from "./engine-supervisor.ts";
import { openGenerationTable } from "./generation-table.ts";
import { parseModelSetting, type ModelChoice } from "./model-setting.ts";
import { ensureAccepted } from "./models.ts";
import { openWeights, type WeightsSource } from "./open-model.ts";
import type { Environment } from "./pip-configuration.ts";
import { embeddedRecipe, prepareEmbeddedPrompt } from "./prompt.ts";
import { openReadiness, type Readiness } from "./readiness.ts";
import type { WeightsProgress } from "./weights.ts";

/** What the embedded engine is told by the operator. Counts that are absent or null are chosen by the machine. */
export interface EmbeddedSettings {
  /** Weights in its folder `models` are used. */
  readonly dataDir: string;
  /** Weights are fetched into its folder `models`; absent: into the one above. */
  readonly cacheDir?: string;
  /** A catalog name, an address or a path of a `.gguf`; null: the catalog's default. */
  readonly model: string | null;
  /** Names of the licenses that the operator accepts. */
  readonly acceptedLicenses?: readonly string[];
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

/** Returns at once; weights are fetched and loaded behind it. Throws a ModelSettingError for an impossible model. */
export function openEmbeddedDeployment(
  settings: EmbeddedSettings,
  parts: EmbeddedParts,
): EmbeddedDeployment {
  const model = parseModelSetting(settings.model);
  const folders = { dataDir: settings.dataDir, cacheDir: settings.cacheDir ?? settings.dataDir };
  ensureAccepted(model, settings.acceptedLicenses ?? [], folders);
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
  const weights = openWeights({
    ...parts,
    model,
    fetch: { folders, environment: settings.environment ?? {}, signal: stopped.signal },
    readiness,
  });
  void weights.path.then((path) => {
    if (path === null || stopped.signal.aborted) return;
    const listener = buildListener({ parts, readiness, model, report, table, weights });
    supervisor = openEngineSupervisor(buildLoadOrder(settings, model, path), listener);
  });

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
      takesTools: supervisor?.facts?.takesTools ?? true,
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

/** The engine takes no more than this unless it is told to. */
const contextTokensUsual = 8_192;

function contextTokensBefore(settings: EmbeddedSettings, model: ModelChoice): number | null {
  const { contextTokens = null } = settings;
  if (contextTokens !== null || model.type !== "catalog") return contextTokens;
  return Math.min(model.entry.contextTokens, contextTokensUsual);
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
    sampling: model.sampling,
    gpu: settings.gpu ?? true,
  };
}

interface ListenerOrder {
  readonly parts: EmbeddedParts;
  readonly readiness: Readiness;
  readonly model: ModelChoice;
  readonly report: (report: EngineReport) => void;
  readonly table: { failAll(failure: Failure): void };
  readonly weights: WeightsSource;
}

function buildListener(order: ListenerOrder) {
  const { parts, readiness, model, report, table } = order;
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
      order.weights.distrust();
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
