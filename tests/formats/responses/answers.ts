import { openGenerationCollector } from "../../../src/conversation/collect-generation.ts";
import type { Finish, GenerationEvent } from "../../../src/conversation/generation-event.ts";
import { responsesFormat } from "../../../src/formats/responses/format.ts";
import type { ResponsesBody, ResponsesEcho } from "../../../src/formats/responses/wire.ts";
import type {
  AnswerContext,
  ReasoningVerifier,
  ReasoningSigner,
} from "../../../src/formats/wire-format.ts";
import { ensureBody, ensureFrames } from "../../wire/ensure-wire.ts";

/** A seal that can be read; what does not begin like one is not ours. */
export const plainSeal: ReasoningVerifier & ReasoningSigner = {
  seal: (text) => `sealed:${text}`,
  unseal: (sealed) => (sealed.startsWith("sealed:") ? sealed.slice(7) : null),
  verify: () => false,
  openSigner: () => ({ update: () => undefined, finish: () => "" }),
};

/** A context whose clock stands still and whose ids count up, by prefix. */
export function openContext(
  request: Readonly<Record<string, unknown>> = {},
): AnswerContext<ResponsesEcho> {
  const issued = new Map<string, number>();
  return {
    createdAtMs: 1_700_000_000_999,
    echo: responsesFormat.parseRequest({ input: "Hello", ...request }, plainSeal).echo,
    inputTokensEstimate: 3,
    outputTokensMax: 4096,
    newId(prefix) {
      const number = (issued.get(prefix) ?? 0) + 1;
      issued.set(prefix, number);
      return `${prefix}${String(number)}`;
    },
    now: () => 1_700_000_005_001,
    reasoning: plainSeal,
    requestId: "req_1",
  };
}

/** A part of an answer, in the pieces in which it arrives. */
export interface SpokenPart {
  readonly type: "reasoning" | "text" | "call";
  readonly pieces: readonly string[];
  /** For calls. */
  readonly name?: string;
}

/** The events of an answer, one batch an event. */
export function eventsOf(parts: readonly SpokenPart[]): readonly GenerationEvent[] {
  return parts.flatMap(({ type, pieces, name }, index): readonly GenerationEvent[] => {
    if (type === "call")
      return [
        { type: "tool-call-start", id: `call_${String(index)}`, name: name ?? "look" },
        ...pieces.map((text): GenerationEvent => ({ type: "tool-call-delta", arguments: text })),
        { type: "tool-call-end" },
      ];
    return [
      { type: `${type}-start` },
      ...pieces.map((text): GenerationEvent => ({ type: `${type}-delta`, text })),
      { type: `${type}-end` },
    ];
  });
}

/** A finish with tokens that add up to something recognisable. */
export function finishWith(reason: Finish["reason"]): Finish {
  return {
    reason,
    stopSequence: null,
    usage: { inputTokens: 10, cachedInputTokens: 4, outputTokens: 7, reasoningTokens: 2 },
  };
}

/** The frames of a whole answer. `between` is asked for more after the opening and after every event. */
export function streamAnswer(
  parts: readonly SpokenPart[],
  finish: Finish,
  { request = {}, keepalives = false }: AnswerOptions = {},
): string {
  const encoder = responsesFormat.openEncoder(openContext(request));
  const beat = (): string => (keepalives ? encoder.keepalive() : "");
  let text = encoder.open() + beat();
  for (const event of eventsOf(parts)) text += encoder.encode([event]) + beat();
  return ensureFrames("responses", text + encoder.finish(finish));
}

/** The request that an answer answers, and whether keepalives come between all of its events. */
export interface AnswerOptions {
  readonly request?: Readonly<Record<string, unknown>>;
  readonly keepalives?: boolean;
}

/** The body of the same answer. */
export function bodyOfAnswer(
  parts: readonly SpokenPart[],
  finish: Finish,
  request: Readonly<Record<string, unknown>> = {},
): ResponsesBody {
  const collector = openGenerationCollector();
  collector.add(eventsOf(parts));
  const body = responsesFormat.buildResponse(collector.finish(finish), openContext(request));
  return ensureBody("responses", body) as ResponsesBody;
}

/** A JSON object of a frame. */
export type FrameData = Readonly<Record<string, unknown>>;

/** The data of all frames; throws where `event:` and `type` differ or a number is missing. */
export function readFrames(stream: string): readonly FrameData[] {
  return ensureFrames("responses", stream, { whole: false })
    .split("\n\n")
    .filter((block) => block !== "" && block !== ": ping")
    .map((block, index) => {
      const [eventLine = "", dataLine = "", ...rest] = block.split("\n");
      const data = JSON.parse(dataLine.slice("data: ".length)) as FrameData;
      if (rest.length > 0 || eventLine !== `event: ${String(data["type"])}`)
        throw new Error(`not a frame: ${block}`);
      if (data["sequence_number"] !== index)
        throw new Error(`${String(data["sequence_number"])} is not number ${String(index)}`);
      return data;
    });
}

/** The types of all frames, in order. */
export function typesOf(stream: string): readonly string[] {
  return readFrames(stream).map((frame) => String(frame["type"]));
}
