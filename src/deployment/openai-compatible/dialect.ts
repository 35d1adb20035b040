import type { PromptSettings } from "../deployment.ts";

/** The engines whose habits are known; `generic` sends only what every OpenAI-compatible server takes. */
export type DialectName = "vllm" | "sglang" | "llama-cpp" | "ollama" | "embedded" | "generic";

/** The field in which earlier reasoning goes back to the deployment. */
export type ReasoningField = "reasoning_content" | "reasoning";

/** What an engine accepts, and under which names. */
export interface Dialect {
  /** Usage with every chunk, so that an answer that is cut can be charged by the engine's own count. */
  readonly continuousUsage: boolean;
  readonly topK: boolean;
  /** The smallest `top_p` that it takes. */
  readonly topPLeast: number;
  /** Whether `strict` of a tool means anything there. */
  readonly strict: boolean;
  /** How a choice of one tool is sent. `alone`: the engine takes no name, so only that tool is sent, with `required`. */
  readonly namedToolChoice: "named" | "alone";
  /** Whether the engine reads `tool_choice`; where it does not, no tools are sent for `none`. */
  readonly toolChoice: boolean;
  /** What callers may ask for, and the engine's word for it. An effort that is not here is left out. */
  readonly reasoningEfforts: Readonly<Record<string, string>>;
  /** The one field that the engine reads reasoning from, whatever the setting says. */
  readonly reasoningField: ReasoningField | null;
  /** Whether the arguments of a call in the history must be a JSON object; what is none is put into one. */
  readonly parsesArguments: boolean;
  /** Whether an answer says which stop sequence ended it. */
  readonly namesStopSequence: boolean;
  /** Whether the engine cuts off the beginning of a conversation that is too long, instead of refusing it. */
  readonly truncates: boolean;
  /** The routes by which it counts tokens; null: it has none, or none that knows templates. */
  readonly tokenizer: TokenizerName | null;
}

/** Engines whose own counts can be asked for. */
export type TokenizerName = "vllm" | "llama-cpp";

/** What an engine may be sent beyond what every one takes, because the operator says that it takes it. */
export type ExtraField = "continuous_usage_stats" | "strict" | "top_k";

/** Whether the engine takes an effort for its model; `none`: it takes that one, by which a model that reasons does not. */
export type TakenEffort = boolean | "none";

/** What is known of one engine beside its dialect; plain data. */
export interface EngineHabits {
  readonly takesEffort: TakenEffort;
  readonly extraFields: readonly ExtraField[];
}

// The three efforts that every version knows; the others that OpenAI's clients send become the nearest of them.
const lowToHigh = {
  minimal: "low",
  low: "low",
  medium: "medium",
  high: "high",
  xhigh: "high",
  max: "high",
};

const generic: Dialect = {
  continuousUsage: false,
  topK: false,
  // Many refuse 0, which asks for the likeliest token alone; this asks for the same.
  topPLeast: 1e-6,
  strict: false,
  namedToolChoice: "named",
  toolChoice: true,
  reasoningEfforts: lowToHigh,
  reasoningField: null,
  parsesArguments: false,
  namesStopSequence: false,
  truncates: false,
  tokenizer: null,
};

/** Every dialect. */
export const dialects: Readonly<Record<DialectName, Dialect>> = {
  generic,
  vllm: {
    ...generic,
    continuousUsage: true,
    topK: true,
    strict: true,
    namesStopSequence: true,
    reasoningEfforts: { ...lowToHigh, none: "none" },
    tokenizer: "vllm",
  },
  sglang: {
    ...generic,
    continuousUsage: true,
    topK: true,
    strict: true,
    namesStopSequence: true,
  },
  "llama-cpp": {
    ...generic,
    topK: true,
    topPLeast: 0,
    // An object as `tool_choice` is read as `auto` there.
    namedToolChoice: "alone",
    reasoningEfforts: { ...lowToHigh, none: "none" },
    // Templates that take arguments as objects have it parse them, and it fails on what is none.
    parsesArguments: true,
    tokenizer: "llama-cpp",
  },
  // The engine of this repository: it sends usage with every chunk, and knows no effort.
  embedded: {
    ...generic,
    continuousUsage: true,
    topK: true,
    topPLeast: 0,
    namesStopSequence: true,
    reasoningEfforts: {},
    tokenizer: "llama-cpp",
  },
  ollama: {
    ...generic,
    topPLeast: 0,
    namedToolChoice: "alone",
    toolChoice: false,
    reasoningEfforts: { ...lowToHigh, none: "none" },
    reasoningField: "reasoning",
    parsesArguments: true,
    truncates: true,
  },
};

/** The dialect that prompt settings name, with the habits of their engine; an unknown name is generic. */
export function dialectOf(promptSettings: PromptSettings): Dialect {
  const { dialect: name, takesEffort, extraFields: extra } = promptSettings;
  const dialect =
    typeof name === "string" && Object.hasOwn(dialects, name)
      ? dialects[name as DialectName]
      : generic;
  const has = (field: ExtraField): boolean => Array.isArray(extra) && extra.includes(field);
  return {
    ...dialect,
    continuousUsage: dialect.continuousUsage || has("continuous_usage_stats"),
    strict: dialect.strict || has("strict"),
    topK: dialect.topK || has("top_k"),
    reasoningEfforts: effortsTaken(dialect.reasoningEfforts, takesEffort),
  };
}

function effortsTaken(
  efforts: Readonly<Record<string, string>>,
  taken: unknown,
): Readonly<Record<string, string>> {
  if (taken === false) return {};
  if (taken !== "none") return efforts;
  return efforts["none"] === undefined ? {} : { none: efforts["none"] };
}
