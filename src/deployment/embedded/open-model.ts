import { setTimeout as wait } from "node:timers/promises";
import { fetchModel, type FetchModelParts } from "./models.ts";
import type { ModelChoice } from "./model-setting.ts";
import type { Readiness } from "./readiness.ts";
import type { WeightsProgress } from "./weights.ts";

/** What getting at the weights needs. */
interface OpenModelOrder {
  readonly model: ModelChoice;
  readonly fetch: Omit<FetchModelParts, "onProgress" | "thorough">;
  readonly thorough: boolean;
  readonly readiness: Readiness;
  readonly onProgress: (progress: WeightsProgress) => void;
  readonly onLifecycle: (
    event: string,
    fields: Readonly<Record<string, string | number | boolean | null>>,
  ) => void;
}

const retryMs = [5_000, 15_000, 60_000];

/** The weights of one deployment. */
export interface WeightsSource {
  /** Path of the weights; null once the signal is aborted. */
  readonly path: Promise<string | null>;
  /** Weights that do not load may be damaged: they are read once more, and fetched again if they are. */
  distrust(): void;
}

/** Begins to fetch them. */
export function openWeights(order: Omit<OpenModelOrder, "thorough">): WeightsSource {
  let suspect = order.model.type !== "file";
  return {
    path: openModel({ ...order, thorough: false }),
    distrust() {
      if (suspect) void openModel({ ...order, thorough: true });
      suspect = false;
    },
  };
}

/** Path of the weights, fetched where they are not here and tried ever later; null once the signal is aborted. */
async function openModel(order: OpenModelOrder): Promise<string | null> {
  const { model, onLifecycle, readiness } = order;
  const { signal } = order.fetch;
  if (model.type === "file") return model.path;
  for (let attempt = 0; !signal.aborted; attempt += 1) {
    try {
      return await fetchOnce(order);
    } catch (error) {
      if (signal.aborted) return null;
      const pauseMs = retryMs[Math.min(attempt, retryMs.length - 1)] ?? 0;
      const reason = error instanceof Error ? error.message : String(error);
      readiness.set({ type: "failed" });
      onLifecycle("weights missing", { model: model.name, reason, retrySeconds: pauseMs / 1_000 });
      await wait(pauseMs, undefined, { signal }).catch(() => undefined);
    }
  }
  return null;
}

async function fetchOnce(order: OpenModelOrder): Promise<string> {
  const { fetch, model, onLifecycle, readiness } = order;
  let began = false;
  const onProgress = (progress: WeightsProgress): void => {
    if (!began)
      onLifecycle("weights downloading", {
        model: model.name,
        bytes: progress.totalBytes,
        license: licenseOf(model),
      });
    began = true;
    readiness.set({ type: "fetching", ...progress });
    order.onProgress(progress);
  };
  const path = await fetchModel(model, { ...fetch, thorough: order.thorough, onProgress });
  if (began) onLifecycle("weights fetched", { model: model.name, path });
  if (!fetch.signal.aborted) readiness.set({ type: "loading" });
  return path;
}

function licenseOf(model: ModelChoice): string | null {
  if (model.type !== "catalog") return null;
  const { license, terms } = model.entry;
  return terms === null ? license : `${license}, ${terms.address}`;
}
