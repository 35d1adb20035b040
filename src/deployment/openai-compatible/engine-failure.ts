import { Failure } from "../../failure.ts";
import { limits } from "../../limits.ts";
import { DeploymentRefusal, type RefusalFields as Refusal } from "../deployment-refusal.ts";

/** What is known of a failed request beside the deployment's answer. Tokens. */
export interface FaultFacts {
  readonly inputTokensEstimate: number;
  /** The output limit that was sent. */
  readonly outputTokensMax: number;
  readonly contextTokens: number | null;
  /** Whether the request had a field of that name, which then came from the caller. */
  readonly wasSent?: (field: string) => boolean;
  /** The header `retry-after`, as it came. */
  readonly retryAfter: string | null;
  /** Milliseconds since 1970. */
  readonly nowMs: number;
}

/** The Failure of an answer that has an error status; its cause is a DeploymentRefusal. */
export function failureOfAnswer(status: number, body: string, facts: FaultFacts): Failure {
  return failureOf(readRefusal(status, parsedOrText(body)), facts);
}

/** The Failure of an error object inside a stream, which may carry the status that came too late. */
export function failureOfStreamError(error: unknown, facts: FaultFacts): Failure {
  const refusal = readRefusal(0, error);
  const status = statusOf(refusal);
  return failureOf({ ...refusal, status }, facts);
}

function failureOf(refusal: Refusal, facts: FaultFacts): Failure {
  const { status } = refusal;
  const cause = new DeploymentRefusal(refusal);
  if (status === 429 || status === 503 || status === 529)
    return new Failure("overloaded", "The model has too much to do at the moment. Try again.", {
      retryAfterSeconds: retryAfterSeconds(facts),
      cause,
    });
  if (status === 401 || status === 403 || status === 404)
    return new Failure(
      "deployment_failed",
      "The deployment does not serve this service as it is set up. Tell its operator.",
      { cause },
    );
  const overflow = overflowOf(refusal, facts);
  if (overflow !== null)
    return tooLongForContext(
      overflow.tokens,
      new DeploymentRefusal(refusal, overflow.outputTokensFitting, overflow.maximum),
    );
  if (status === 400 || status === 422) return refusedByDeployment(cause, facts);
  return new Failure("deployment_failed", "The deployment failed. Try again.", { cause });
}

/** The Failure upon which agents shorten their history; `tokens` as far as they are known. */
export function tooLongForContext(
  tokens: { readonly sent: number; readonly maximum: number } | null,
  cause?: DeploymentRefusal,
): Failure {
  return new Failure(
    "input_too_large",
    "The conversation and its output do not fit into the model's context. Shorten the conversation.",
    { ...(tokens === null ? {} : { tokens }), ...(cause === undefined ? {} : { cause }) },
  );
}

// Fields that have the same name and meaning in callers' requests, and that nothing but those sets.
const callersFields: ReadonlySet<string> = new Set([
  "temperature",
  "top_p",
  "top_k",
  "seed",
  "presence_penalty",
  "frequency_penalty",
  "tool_choice",
  "tools",
]);

function refusedByDeployment(cause: DeploymentRefusal, facts: FaultFacts): Failure {
  const { param } = cause.fields;
  if (param !== null && callersFields.has(param) && facts.wasSent?.(param) === true)
    return new Failure(
      "refused_by_deployment",
      `The model's server refused "${param}" as it was sent. Change it or leave it out; the operator finds the server's reason in the log.`,
      { param, cause },
    );
  return new Failure(
    "refused_by_deployment",
    "The model's server refused this request. Look at the order of the messages, the tools' " +
      "schemas and the sampling settings; the operator finds its reason in the log.",
    { cause },
  );
}

/** The fields of an error, from any of the places where engines put them. */
function readRefusal(status: number, body: unknown): Refusal {
  const outer = members(body);
  const inner = members(outer["error"] ?? outer["detail"] ?? body);
  const words =
    typeof body === "string"
      ? body
      : (text(inner["message"]) ?? text(outer["error"]) ?? text(outer["message"]) ?? written(body));
  const numbers = numbersBeside(inner);
  return {
    status,
    type: shortText(inner["type"]) ?? shortText(outer["type"]),
    code: shortText(inner["code"]) ?? shortText(outer["code"]),
    param: shortText(inner["param"]),
    // The patterns below take time that grows with the square of what they search.
    words: words.slice(0, limits.deploymentWordsCharactersMax - numbers.length) + numbers,
  };
}

/** "" for what cannot be written: some versions of Node give up on what is nested very deeply. */
function written(body: unknown): string {
  try {
    return JSON.stringify(body) ?? "";
  } catch {
    return "";
  }
}

/** llama.cpp gives the numbers as members of their own; here they join the words that are searched. */
function numbersBeside(inner: Record<string, unknown>): string {
  const sent = inner["n_prompt_tokens"];
  const maximum = inner["n_ctx"];
  return typeof sent === "number" && typeof maximum === "number"
    ? ` (prompt is too long: ${String(sent)} tokens > ${String(maximum)} maximum)`
    : "";
}

function statusOf(refusal: Refusal): number {
  const code = Number(refusal.code);
  if (Number.isInteger(code) && code >= 400 && code <= 599) return code;
  const kind = `${refusal.type ?? ""} ${refusal.code ?? ""}`;
  if (/rate_?limit|overloaded|unavailable/iu.test(kind)) return 503;
  return /bad_?request|invalid_?request|exceed_context/iu.test(kind) ? 400 : 500;
}

const overflowKinds = /context_length_exceeded|context_window_exceeded|exceed_context_size/iu;
const overflowWords =
  /maximum context length|maximum model length|max context length|context length is only|available context size|cannot be greater than max_model_len|exceeds? the (?:model's )?context|longer than the (?:model's )?context|prompt (?:is )?too long|context window|maximum allowed (?:input )?length/iu;

/**
 * How engines say that a conversation is too long. `input` is the input alone, `total` the input and the output limit
 * together, whichever the engine measured; `least` says that it stopped counting there.
 */
const overflowNumbers: readonly RegExp[] = [
  /prompt is too long: (?<input>\d+) tokens > (?<maximum>\d+) maximum/u,
  // llama.cpp
  /\((?<input>\d+) tokens\) exceeds the available context size \((?<maximum>\d+) tokens\)/u,
  // vLLM, whose message changed often, and OpenAI, whose message it copied at first
  /passed (?<input>\d+) input tokens and requested (?<output>\d+) output.*?context length is only (?<maximum>\d+)/su,
  /is too large: (?<output>\d+)\..*?maximum context length is (?<maximum>\d+) tokens and your request has (?<input>\d+) input/su,
  /maximum context length is (?<maximum>\d+) tokens.*?total of (?<least>at least )?(?<total>\d+)/su,
  /maximum context length is (?<maximum>\d+) tokens.*?requested (?<total>\d+) tokens/su,
  /maximum context length is (?<maximum>\d+) tokens.*?resulted in (?<input>\d+) tokens/su,
  /maximum context length is (?<maximum>\d+) tokens.*?(?:contains|has) (?<least>at least )?(?<input>\d+) input tokens/su,
  /\(length (?<input>\d+)\) is longer than the maximum model length of (?<maximum>\d+)/u,
  /length \((?<input>\d+)(?: tokens)?\) exceeds (?:the )?(?:model's )?maximum (?:context|allowed) length \((?<maximum>\d+)/u,
  // SGLang
  /input \((?<input>\d+) tokens\) is longer than the model's context length \((?<maximum>\d+) tokens\)/u,
  /maximum context length of (?<maximum>\d+) tokens.*?total of (?<total>\d+) tokens/su,
  // Ollama's own runner
  /length \((?<input>\d+) tokens\) exceeds the .*?\((?<maximum>\d+) tokens\)/u,
];

interface Overflow {
  readonly tokens: { readonly sent: number; readonly maximum: number } | null;
  readonly outputTokensFitting: number | null;
  readonly maximum: number | null;
}

/** null: the refusal is not about size. `tokens` null: it is, and its numbers are not known. */
function overflowOf(refusal: Refusal, facts: FaultFacts): Overflow | null {
  const { words } = refusal;
  const named = overflowKinds.test(`${refusal.type ?? ""} ${refusal.code ?? ""}`);
  if (!named && refusal.status !== 413 && !overflowWords.test(words)) return null;
  const limit = limitOverModel.exec(words)?.groups;
  if (limit !== undefined) return overflowOfLimit(Number(limit["maximum"]), facts);
  for (const numbers of overflowNumbers) {
    const found = numbers.exec(words)?.groups;
    if (found !== undefined) return overflowOfNumbers(found, facts.outputTokensMax);
  }
  const maximum = facts.contextTokens;
  if (maximum === null) return { tokens: null, outputTokensFitting: null, maximum: null };
  // An estimate below the limit would contradict what the deployment found.
  const sent = Math.max(facts.inputTokensEstimate, maximum + 1);
  return { tokens: { sent, maximum }, outputTokensFitting: null, maximum: null };
}

// vLLM from 0.3x on, when the output limit alone is longer than the context; the input was not counted.
const limitOverModel = /max_tokens=\d+ cannot be greater than max_model_len=(?<maximum>\d+)/u;

/** What the estimate leaves beside the input, or else a half: the next refusal has the input's true number. */
function overflowOfLimit(maximum: number, facts: FaultFacts): Overflow {
  const { inputTokensEstimate, outputTokensMax } = facts;
  const left = maximum - inputTokensEstimate;
  const fitting = left >= 1 ? left : Math.floor(maximum / 2);
  return {
    tokens: { sent: inputTokensEstimate + outputTokensMax, maximum },
    outputTokensFitting: fitting >= 1 && fitting < outputTokensMax ? fitting : null,
    maximum,
  };
}

function overflowOfNumbers(
  found: Readonly<Record<string, string | undefined>>,
  outputTokensMax: number,
): Overflow {
  const maximum = Number(found["maximum"]);
  const total = found["total"];
  const input = total === undefined ? Number(found["input"]) : Number(total) - outputTokensMax;
  const left = maximum - input;
  // An engine that stops counting one token past what fits does not know the input; half as much is the next guess.
  const stopped = found["least"] !== undefined || left === outputTokensMax - 1;
  const fitting = stopped ? Math.min(left, Math.floor(outputTokensMax / 2)) : left;
  return {
    tokens: { sent: Number(total ?? input + Number(found["output"] ?? 0)), maximum },
    outputTokensFitting: input >= 0 && fitting >= 1 && fitting < outputTokensMax ? fitting : null,
    maximum,
  };
}

function retryAfterSeconds(facts: FaultFacts): number {
  const header = facts.retryAfter?.trim() ?? "";
  const seconds = /^\d+(?:\.\d+)?$/u.test(header)
    ? Number(header)
    : (Date.parse(header) - facts.nowMs) / 1000;
  const whole = Number.isFinite(seconds) ? Math.ceil(seconds) : retryAfterDefaultSeconds;
  return Math.min(Math.max(whole, 1), limits.retryAfterSecondsMax);
}

const retryAfterDefaultSeconds = 5;

function members(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}

function text(value: unknown): string | null {
  if (typeof value === "number") return String(value);
  return typeof value === "string" && value !== "" ? value : null;
}

function shortText(value: unknown): string | null {
  return text(value)?.slice(0, fieldCharactersMax) ?? null;
}

/** Words such as `invalid_request_error`, and paths into the request. */
const fieldCharactersMax = 256;

function parsedOrText(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return body;
  }
}
