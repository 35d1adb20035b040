import type { Settings } from "./command-line.ts";
import { parseModelSetting } from "./model-setting.ts";
import { findModel, findUnacceptedTerms, listModels } from "./models.ts";
import { fetchAndTell, type ServeParts } from "./serve.ts";

/** Fetches the weights, or reads those that are here from their first byte to their last. Gives the exit code. */
export async function pull(settings: Settings, parts: ServeParts): Promise<number> {
  const { tell } = parts;
  try {
    const model = findModel(settings.model);
    const terms = findUnacceptedTerms(model, settings.acceptedLicenses, settings);
    // Before the first byte comes.
    if (model.type === "catalog") {
      const { license, terms: all, title } = model.entry;
      tell("license", { title, license, terms: all?.address ?? null });
    }
    if (terms !== null) {
      const { address, name } = terms;
      tell("license not accepted", { model: model.name, name, terms: address });
      return 1;
    }
    const path = await fetchAndTell(model, settings, { ...parts, thorough: true });
    tell("weights here", { model: model.name, path });
    return 0;
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    tell("weights missing", { reason });
    return 1;
  }
}

/**
 * Tells which model is chosen, and of each of the catalog and of what was fetched from addresses. Throws a
 * ModelSettingError for a choice that names no model.
 */
export async function list(settings: Settings, { tell }: ServeParts): Promise<number> {
  const chosen = parseModelSetting(settings.model);
  const models = await listModels(settings);
  const isHere =
    chosen.type === "file" ||
    models.some(({ name, path }) => name === chosen.name && path !== null);
  tell("chosen model", { name: chosen.name, isHere });
  for (const { terms, ...model } of models)
    tell("model", { ...model, terms: terms?.address ?? null });
  return 0;
}
