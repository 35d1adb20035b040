import { inputBound } from "../admission/input-bound.ts";
import type { Conversation, GenerationOptions } from "../conversation/conversation.ts";
import type { Prompt } from "../deployment/deployment.ts";
import { Failure } from "../failure.ts";
import type { ReasoningVerifier, WireFormat } from "../formats/wire-format.ts";
import { limits } from "../limits.ts";
import { type LabelField, labelOfBody } from "./label.ts";
import { parseJsonBody } from "./parse-json-body.ts";

/** Everything about a request that its answer needs; small, so that a worker can return it. */
export interface PreparedRequest {
  readonly stream: boolean;
  readonly outputTokensRequested: number | null;
  /** Tokens. */
  readonly inputBound: number;
  /** For whom the body says that it is. */
  readonly label: string | null;
  /** Plain data of the format that parsed the request. */
  readonly echo: unknown;
  /** null: the prompt settings of the deployment were not known yet. */
  readonly prompt: Prompt | null;
}

/** Makes a prompt of a conversation; null: the prompt settings of the deployment are not known yet. */
export type PromptBuilder =
  | ((conversation: Conversation, options: GenerationOptions) => Prompt)
  | null;

/** Bytes of a body to a request that can be admitted. Throws a Failure for every refusal before money. */
export function prepareRequest(
  bytes: Uint8Array<ArrayBuffer>,
  parts: {
    readonly format: WireFormat<unknown>;
    readonly reasoning: ReasoningVerifier;
    readonly buildPrompt: PromptBuilder;
    /** Fields that may say for whom the request is. */
    readonly labelFields: readonly LabelField[];
  },
): PreparedRequest {
  const body = parseJsonBody(bytes);
  const parsed = parts.format.parseRequest(body, parts.reasoning);
  const bound = inputBound(bytes.byteLength, parsed.itemCount, parsed.toolCount);
  if (bound > limits.inputBoundMax) throw inputTooLarge(bound);
  return {
    stream: parsed.stream,
    outputTokensRequested: parsed.outputTokensRequested,
    inputBound: bound,
    label: labelOfBody(body, parts.labelFields),
    echo: parsed.echo,
    prompt: parts.buildPrompt?.(parsed.conversation, parsed.options) ?? null,
  };
}

/** The refusal of a conversation whose bound, in tokens, is above the one that can be admitted. */
export function inputTooLarge(bound: number): Failure {
  return new Failure(
    "input_too_large",
    `The conversation is too long: its bound from bytes, items and tools is ${String(bound)}, ` +
      `the most is ${String(limits.inputBoundMax)}. Send fewer or shorter messages.`,
    { tokens: { sent: bound, maximum: limits.inputBoundMax } },
  );
}
