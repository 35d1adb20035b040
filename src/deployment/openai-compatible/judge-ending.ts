import type { Ending } from "../deployment.ts";
import { DeploymentRefusal } from "../deployment-refusal.ts";
import { tooLongForContext } from "./engine-failure.ts";

/** What is known of the engine that gave the ending. Tokens. */
export interface JudgedEngine {
  readonly contextTokens: number | null;
  /** Whether it cuts a conversation that is too long instead of refusing it. */
  readonly truncates: boolean;
}

/** The ending that the caller gets: an answer to a conversation that the engine cut becomes a failure. */
export function judgeEnding(ending: Ending, engine: JudgedEngine): Ending {
  if (ending.type !== "finished") return ending;
  const inputTokens = ending.usage?.inputTokens ?? 0;
  const { contextTokens, truncates } = engine;
  return truncates && contextTokens !== null && inputTokens >= contextTokens
    ? {
        type: "failed",
        failure: tooLongForContext({ sent: inputTokens + 1, maximum: contextTokens }),
      }
    : ending;
}

/** Whether an ending is a reason for discovery: the engine was away, or is loading, or another one answers now. */
export function isOtherEngine(ending: Ending, { contextTokens }: JudgedEngine): boolean {
  if (ending.type !== "failed") return false;
  const { failure } = ending;
  const { cause } = failure;
  if (cause instanceof DeploymentRefusal) {
    const { contextTokens: said, fields } = cause;
    // vLLM answers 404 for the name of a model that it no longer serves.
    return (
      fields.status === 404 || fields.status === 503 || (said !== null && said !== contextTokens)
    );
  }
  return failure.code === "overloaded" || failure.code === "deployment_failed";
}
