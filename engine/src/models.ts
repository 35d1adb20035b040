import { statSync } from "node:fs";
import { join } from "node:path";
import { catalog, type LicenseTerms } from "./catalog.ts";
import { ensureFetched, listFetched } from "./fetched-weights.ts";
import { ModelSettingError, chooseModel, type ModelChoice } from "./model-setting.ts";
import { modelFolders, type WeightsFolders } from "./weights-folders.ts";
import { ensureWeights, findWeights, WeightsError, type WeightsParts } from "./weights.ts";

/** One line of `model list`. */
export interface ModelListing {
  readonly name: string;
  readonly title: string;
  readonly bytes: number;
  readonly license: string;
  /** What must be accepted before the download; null: nothing. */
  readonly terms: LicenseTerms | null;
  /** null: not known before it is loaded. */
  readonly contextTokens: number | null;
  readonly goodFor: string;
  readonly isDefault: boolean;
  /** Where the weights lie; null: not on this machine. */
  readonly path: string | null;
}

/** The catalog, which of its weights are here, and what was fetched from addresses. Sizes are compared, hashes not. */
export async function listModels(folders: WeightsFolders): Promise<readonly ModelListing[]> {
  const known = await Promise.all(
    catalog.map(async (entry) => {
      const { name, title, bytes, license, terms, contextTokens, goodFor } = entry;
      const path = await findWeights(entry, folders);
      const isDefault = entry === catalog[0];
      return { name, title, bytes, license, terms, contextTokens, goodFor, isDefault, path };
    }),
  );
  const fetched = (await listFetched(folders)).map(({ address, bytes, path }) => ({
    name: address,
    title: "from this address",
    bytes,
    license: "see there",
    terms: null,
    contextTokens: null,
    goodFor: "",
    isDefault: false,
    path,
  }));
  return [...known, ...fetched];
}

/** A model that can be fetched, by its name or address; null: the catalog's default. Throws a WeightsError. */
export function findModel(name: string | null): ModelChoice {
  const choice = chooseModel(name);
  if (typeof choice !== "string") return choice;
  throw new WeightsError(`There is no model ${JSON.stringify(name)}: ${choice}.`);
}

/** What `fetchModel` needs. */
export interface FetchModelParts extends WeightsParts {
  readonly folders: WeightsFolders;
}

/** Path of the weights, fetched where one is missing or damaged. Throws a WeightsError. */
export async function fetchModel(model: ModelChoice, parts: FetchModelParts): Promise<string> {
  if (model.type === "file") return model.path;
  return model.type === "catalog"
    ? ensureWeights(model.entry, parts.folders, parts)
    : ensureFetched(model.address, parts.folders, parts);
}

/** Throws a ModelSettingError for a model whose terms the operator must accept before the download. */
export function ensureAccepted(
  model: ModelChoice,
  accepted: readonly string[],
  folders: WeightsFolders,
): void {
  const terms = findUnacceptedTerms(model, accepted, folders);
  if (terms === null) return;
  throw new ModelSettingError(
    `TRIBUTARY_MODEL=${model.name}: this model comes under the ${terms.title}, ${terms.address}. Read them; to accept ` +
      `them set TRIBUTARY_ACCEPT_LICENSE=${terms.name}, or run: tributary model pull ${model.name} --accept-license.`,
  );
}

/** The terms that must still be accepted before this model may be downloaded; null: none. */
export function findUnacceptedTerms(
  model: ModelChoice,
  accepted: readonly string[],
  folders: WeightsFolders,
): LicenseTerms | null {
  const terms = model.type === "catalog" ? model.entry.terms : null;
  if (model.type !== "catalog" || terms === null || accepted.includes(terms.name)) return null;
  // The weights on this machine were downloaded after the terms were accepted.
  const { bytes, file } = model.entry;
  const here = modelFolders(folders).some(
    (folder) => statSync(join(folder, file), { throwIfNoEntry: false })?.size === bytes,
  );
  return here ? null : terms;
}
