import type { Generation } from "../../conversation/collect-generation.ts";
import type { Finish, FinishReason, Usage } from "../../conversation/generation-event.ts";
import { type Failure, type FailureCode, failureKinds } from "../../failure.ts";
import type { AnswerContext } from "../wire-format.ts";
import { buildItem, isCut, itemIdPrefix } from "./output-items.ts";
import { openToolLookup } from "./tool-names.ts";
import type {
  OutputItem,
  ResponsesBody,
  ResponsesEcho,
  ResponsesErrorCode,
  ResponsesIncomplete,
  ResponsesOutcome,
  ResponsesUsage,
} from "./wire.ts";

/** The body of a whole answer: the object that ends the stream of the same answer. */
export function buildResponsesAnswer(
  { parts, finish }: Generation,
  context: AnswerContext<ResponsesEcho>,
): ResponsesBody {
  const id = context.newId("resp_");
  const findTool = openToolLookup(context.echo);
  const output = parts.map((part, index) => {
    const tool = part.type === "tool-call" ? findTool(part.name) : null;
    const cut = index === parts.length - 1 && isCut(finish.reason);
    return buildItem(part, tool, {
      id: context.newId(itemIdPrefix(part.type, tool)),
      status: cut ? "incomplete" : "completed",
      context,
    });
  });
  return buildResponsesBody(id, context, { type: "finished", finish, output });
}

/** How far the answer has come. */
export type AnswerState =
  | { readonly type: "in-progress" }
  | { readonly type: "finished"; readonly finish: Finish; readonly output: readonly OutputItem[] }
  | { readonly type: "failed"; readonly failure: Failure; readonly output: readonly OutputItem[] };

/** The response object in any state of an answer. */
export function buildResponsesBody(
  id: string,
  context: AnswerContext<ResponsesEcho>,
  state: AnswerState,
): ResponsesBody {
  const { echo } = context;
  const outcome = buildOutcome(state, context.now);
  return {
    id,
    object: "response",
    created_at: Math.floor(context.createdAtMs / 1000),
    ...outcome,
    background: false,
    instructions: echo.instructions,
    max_output_tokens: echo.maxOutputTokens,
    max_tool_calls: null,
    model: echo.model,
    parallel_tool_calls: echo.parallelToolCalls,
    previous_response_id: null,
    prompt_cache_key: echo.promptCacheKey,
    reasoning: { effort: echo.reasoningEffort, summary: echo.reasoningSummary },
    safety_identifier: null,
    service_tier: "default",
    store: false,
    temperature: echo.temperature,
    text: { format: { type: echo.textFormat } },
    tool_choice: echo.toolChoice,
    tools: echo.tools,
    top_logprobs: 0,
    top_p: echo.topP,
    truncation: "disabled",
    presence_penalty: 0,
    frequency_penalty: 0,
    access_programs: null,
    metadata: echo.metadata,
  };
}

function buildOutcome(state: AnswerState, now: () => number): ResponsesOutcome {
  const base = { completed_at: null, error: null, incomplete_details: null, usage: null };
  switch (state.type) {
    case "in-progress":
      return { ...base, status: "in_progress", output: [] };
    case "failed": {
      const { code, message } = state.failure;
      const error = { code: errorCodeOf(code), message };
      return { ...base, status: "failed", error, output: state.output };
    }
    case "finished": {
      const { output, finish } = state;
      const usage = buildUsage(finish.usage);
      const incomplete_details = detailsOf(finish.reason);
      if (incomplete_details !== null)
        return { ...base, status: "incomplete", incomplete_details, output, usage };
      const completed_at = Math.floor(now() / 1000);
      return { ...base, status: "completed", completed_at, output, usage };
    }
    default:
      return state satisfies never;
  }
}

function detailsOf(reason: FinishReason): ResponsesIncomplete["incomplete_details"] | null {
  switch (reason) {
    case "length":
      return { reason: "max_output_tokens" };
    case "content-filter":
      return { reason: "content_filter" };
    case "stop":
    case "tool-calls":
      return null;
    default:
      return reason satisfies never;
  }
}

/**
 * The code by which agents repeat, wait, compact or give up; with a code that they do not know they repeat at once. What
 * would be a 4xx is `invalid_prompt`: the same request would fail again.
 */
function errorCodeOf(code: FailureCode): ResponsesErrorCode {
  if (code === "input_too_large") return "context_length_exceeded";
  const { retry, status } = failureKinds[code];
  if (retry) return "rate_limit_exceeded";
  return status < 500 ? "invalid_prompt" : "server_error";
}

function buildUsage(usage: Usage): ResponsesUsage {
  return {
    input_tokens: usage.inputTokens,
    input_tokens_details: { cached_tokens: usage.cachedInputTokens, cache_write_tokens: 0 },
    output_tokens: usage.outputTokens,
    output_tokens_details: { reasoning_tokens: usage.reasoningTokens },
    total_tokens: usage.inputTokens + usage.outputTokens,
  };
}
