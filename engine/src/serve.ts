import { setTimeout as wait } from "node:timers/promises";
import { contextTokensUsual, type Environment, type Settings } from "./command-line.ts";
import type { Engine } from "./engine-scheduler.ts";
import type { TellEvent } from "./events.ts";
import { parseModelSetting, type ModelChoice } from "./model-setting.ts";
import { ensureAccepted, fetchModel } from "./models.ts";
import { listen } from "./server.ts";
import { distrust } from "./weights-check.ts";
import type { WeightsProgress } from "./download.ts";

/** What serving needs from outside. */
export interface ServeParts {
  readonly environment: Environment;
  readonly tell: TellEvent;
  readonly signal: AbortSignal;
}

/** Weights that cannot be had are asked for again after these. */
const retryMs = [5_000, 15_000, 60_000];
/** Milliseconds between two events of a download's progress. */
const progressMs = 250;

/**
 * Listens at once, fetches what is missing, loads it and serves it. Resolves with an exit code when the model does not
 * load; throws a ModelSettingError for an impossible model.
 */
export async function serve(settings: Settings, parts: ServeParts): Promise<number | null> {
  const { signal, tell } = parts;
  const model = parseModelSetting(settings.model);
  ensureAccepted(model, settings.acceptedLicenses, settings);
  let engine: Engine | null = null;
  let absence = "The model is being loaded.";
  const { apiKey, hangMs, host } = settings;
  const port = await listen(
    { engine: () => engine, absence: () => absence, apiKey, hangMs },
    settings,
  );
  const contextTokens = contextTokensBefore(settings, model);
  tell("listening", { host, port, model: model.name, contextTokens });
  const path = await fetchUntilHere(model, settings, {
    ...parts,
    setAbsence: (words) => (absence = words),
  });
  if (path === null) return null;
  try {
    const { openEngine } = await importEngine();
    engine = await openEngine({ ...settings, modelFile: path, sampling: model.sampling }, (text) =>
      tell("model warning", { text }),
    );
  } catch (error) {
    if (signal.aborted) return null;
    const reason = error instanceof Error ? error.message : String(error);
    tell("model not loaded", { model: model.name, reason });
    // Damage that the last look did not see is found, and mended, by the next start.
    if (model.type !== "file") await distrust(path);
    return 1;
  }
  tell("model loaded", { ...engine.facts });
  return null;
}

/** Imported late, so that a missing library ends in an event and not in a stack. */
async function importEngine() {
  try {
    return await import("./engine.ts");
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new Error(
      `the library of the embedded engine cannot be loaded (${reason}). Install it with "npm install node-llama-cpp", ` +
        "or set TRIBUTARY_DEPLOYMENT_URL to an OpenAI-compatible deployment.",
      { cause },
    );
  }
}

function contextTokensBefore(settings: Settings, model: ModelChoice): number | null {
  if (settings.contextTokens !== null || model.type !== "catalog") return settings.contextTokens;
  return Math.min(model.entry.contextTokens, contextTokensUsual);
}

interface FetchParts extends ServeParts {
  readonly setAbsence: (words: string) => void;
}

/** Path of the weights, tried ever later while there are none; null once the signal is aborted. */
async function fetchUntilHere(
  model: ModelChoice,
  settings: Settings,
  parts: FetchParts,
): Promise<string | null> {
  const { setAbsence, signal, tell } = parts;
  for (let attempt = 0; !signal.aborted; attempt += 1) {
    try {
      const path = await fetchAndTell(model, settings, parts);
      setAbsence("The model is being loaded.");
      return path;
    } catch (error) {
      if (signal.aborted) return null;
      const pauseMs = retryMs[Math.min(attempt, retryMs.length - 1)] ?? 0;
      const reason = error instanceof Error ? error.message : String(error);
      setAbsence("The weights of the model could not be fetched.");
      tell("weights missing", { model: model.name, reason, retrySeconds: pauseMs / 1_000 });
      await wait(pauseMs, undefined, { signal }).catch(() => undefined);
    }
  }
  return null;
}

/** Path of the weights; events say what is fetched, and how far. `thorough`: every byte of what is here is read. */
export async function fetchAndTell(
  model: ModelChoice,
  folders: Settings,
  { environment, signal, tell, thorough = false }: ServeParts & { readonly thorough?: boolean },
): Promise<string> {
  let began = false;
  let toldAtMs = 0;
  const onProgress = ({ bytes, totalBytes }: WeightsProgress): void => {
    if (!began) {
      tell("weights downloading", {
        model: model.name,
        bytes: totalBytes,
        license: licenseOf(model),
      });
    }
    const nowMs = performance.now();
    if (!began || bytes === totalBytes || nowMs - toldAtMs >= progressMs) {
      toldAtMs = nowMs;
      tell("weights progress", { bytes, totalBytes });
    }
    began = true;
  };
  const onTrouble = (reason: string): void =>
    tell("weights source failed", { model: model.name, reason });
  const order = { folders, environment, thorough, onProgress, onTrouble, signal };
  const path = await fetchModel(model, order);
  if (began) tell("weights fetched", { model: model.name, path });
  return path;
}

function licenseOf(model: ModelChoice): string | null {
  if (model.type !== "catalog") return null;
  const { license, terms } = model.entry;
  return terms === null ? license : `${license}, ${terms.address}`;
}
