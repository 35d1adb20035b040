/** The engines whose habits are known; `generic` sends only what every OpenAI-compatible server takes. */
export type DialectName = "vllm" | "sglang" | "llama-cpp" | "ollama" | "generic";

/** The field in which earlier reasoning goes back to the deployment. */
export type ReasoningField = "reasoning_content" | "reasoning";

/** What an engine accepts and how it spells it. */
export interface Dialect {
  /** Usage with every chunk, so that an answer that is cut can be charged by the engine's own count. */
  readonly continuousUsage: boolean;
  readonly topK: boolean;
  /** How a choice of one tool is told. `alone`: the engine takes no name, so only that tool is shown and required. */
  readonly namedToolChoice: "named" | "alone";
  /** Whether `tool_choice` means anything; where it does not, `none` is told by showing no tools. */
  readonly toolChoice: boolean;
  /** What callers may ask for, and the engine's word for it. An effort that is not here is left out. */
  readonly reasoningEfforts: Readonly<Record<string, string>>;
  /** The one field that the engine reads reasoning from, whatever the setting says. */
  readonly reasoningField: ReasoningField | null;
  /** Whether a call in the history must have JSON arguments, so that none at all are spelled `{}`. */
  readonly parsesArguments: boolean;
}

// The three words every version knows; the rest of what OpenAI's clients send is put beside the nearest.
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
  namedToolChoice: "named",
  toolChoice: true,
  reasoningEfforts: lowToHigh,
  reasoningField: null,
  parsesArguments: false,
};

/** Every dialect. */
export const dialects: Readonly<Record<DialectName, Dialect>> = {
  generic,
  vllm: {
    ...generic,
    continuousUsage: true,
    topK: true,
    reasoningEfforts: { ...lowToHigh, none: "none" },
  },
  sglang: { ...generic, continuousUsage: true, topK: true },
  // An object as `tool_choice` is read as `auto` there.
  "llama-cpp": { ...generic, topK: true, namedToolChoice: "alone" },
  ollama: {
    ...generic,
    namedToolChoice: "alone",
    toolChoice: false,
    reasoningEfforts: { ...lowToHigh, none: "none" },
    reasoningField: "reasoning",
    parsesArguments: true,
  },
};

/** The dialect of a name that came as plain data; an unknown one is generic. */
export function dialectNamed(name: unknown): Dialect {
  return typeof name === "string" && Object.hasOwn(dialects, name)
    ? dialects[name as DialectName]
    : generic;
}
