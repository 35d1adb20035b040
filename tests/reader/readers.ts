import type { WireFormatName } from "../../src/formats/wire-format.ts";
import type { GenerationEvent } from "../../src/conversation/generation-event.ts";
import { readChatCompletions } from "./read-chat-completions.ts";
import { readMessages } from "./read-messages.ts";
import { readResponses } from "./read-responses.ts";
import type { ReadFinish, Reading } from "./reading.ts";

/** The independent reader of every format. */
export const readers: Readonly<Record<WireFormatName, (stream: string) => Reading>> = {
  "chat-completions": readChatCompletions,
  responses: readResponses,
  messages: readMessages,
};

/** A generation as far as a format can tell it. */
export interface Tellable {
  readonly events: readonly GenerationEvent[];
  readonly finish: ReadFinish | null;
}

/**
 * What a reader of a stream can know of a generation: what the format has no word for is left out. For example, texts "a" and "b" in a row
 * are one text "ab" in Chat Completions, and a custom call with the arguments `{"input":"ls"}` has the input `ls` in Responses.
 */
export function tellable(
  format: WireFormatName,
  { events, finish }: Tellable,
  isCustomCall: (name: string) => boolean,
): Tellable {
  const merged = format === "chat-completions" ? mergeParts(events) : events;
  return {
    events:
      format === "messages"
        ? joinCustomCalls(merged, isCustomCall)
        : rawInputs(merged, isCustomCall),
    finish: finish === null ? null : tellableFinish(format, finish),
  };
}

/**
 * The pieces of custom calls as one, since their raw text may be cut elsewhere than the arguments were: the pieces `{"inp` and `ut":"ls"}` are
 * `{"input":"ls"}`.
 */
export function joinCustomCalls(
  events: readonly GenerationEvent[],
  isCustomCall: (name: string) => boolean,
): readonly GenerationEvent[] {
  return mapCustomCalls(events, isCustomCall, (whole) => whole);
}

function tellableFinish(format: WireFormatName, finish: ReadFinish): ReadFinish {
  if (format !== "messages") return { ...finish, stopSequence: null };
  const { usage } = finish;
  return { ...finish, usage: usage === null ? null : { ...usage, reasoningTokens: 0 } };
}

/** Chat Completions has no parts: two texts in a row are one. */
function mergeParts(events: readonly GenerationEvent[]): readonly GenerationEvent[] {
  const merged: GenerationEvent[] = [];
  for (const event of events) {
    const last = merged.at(-1);
    const continues =
      (event.type === "text-start" && last?.type === "text-end") ||
      (event.type === "reasoning-start" && last?.type === "reasoning-end");
    if (continues) merged.pop();
    else merged.push(event);
  }
  return merged;
}

function rawInputs(
  events: readonly GenerationEvent[],
  isCustomCall: (name: string) => boolean,
): readonly GenerationEvent[] {
  return mapCustomCalls(events, isCustomCall, rawInput);
}

/** The text that `{"input": "..."}` stands for, also when it was cut off; anything else is the text as it is. */
function rawInput(whole: string): string {
  const inside = /^\s*\{\s*"input"\s*:\s*"(?<string>(?:[^"\\]|\\u[0-9a-fA-F]{4}|\\[^u])*)/.exec(
    whole,
  );
  const string = inside?.groups?.["string"];
  return string === undefined ? whole : String(JSON.parse(`"${string}"`));
}

function mapCustomCalls(
  events: readonly GenerationEvent[],
  isCustomCall: (name: string) => boolean,
  change: (whole: string) => string,
): readonly GenerationEvent[] {
  const mapped: GenerationEvent[] = [];
  let held: string[] | null = null;
  for (const event of events) {
    if (event.type === "tool-call-start" && isCustomCall(event.name)) held = [];
    if (held !== null && event.type === "tool-call-delta") {
      held.push(event.arguments);
      continue;
    }
    if (held !== null && event.type === "tool-call-end") {
      const whole = change(held.join(""));
      if (whole !== "") mapped.push({ type: "tool-call-delta", arguments: whole });
      held = null;
    }
    mapped.push(event);
  }
  return mapped;
}
