import { z } from "zod";
import { chatCompletionChunkSchema } from "./schemas/chat-completions.ts";
import { messagesErrorBodySchema, openaiErrorBodySchema } from "./schemas/error.ts";
import { messagesStreamEventSchema } from "./schemas/messages.ts";
import { responsesStreamEventSchema } from "./schemas/responses.ts";
import type { WireFormatName } from "../../src/formats/wire-format.ts";
import { type Frame, framesOf, type Line, readFrames } from "../reader/frames.ts";
import { describeIssues } from "./describe-issues.ts";

/** Looks at a stream while it is written. */
export interface StreamCheck {
  /** Text as it comes, cut anywhere. */
  write(text: string): void;
  /** The stream has ended as its sender meant it to end. */
  end(): void;
}

/** What a stream is held against besides its schema. */
export interface StreamCheckSettings {
  readonly format: WireFormatName;
  /** Whether a Chat Completions request asked for usage; null where that is not known: as its first chunk has it. */
  readonly usageAsked: boolean | null;
  /** Hears what is wrong, with the frame. */
  readonly report: (problem: string) => void;
}

/** What a format says of one frame: its schema, and the law that no schema can say. */
interface FrameLaw {
  /** What is wrong with a frame, or null. */
  add(frame: Frame): string | null;
  /** What is wrong with the end after the frames so far, or null. */
  end(): string | null;
}

/** Opens the check of one stream: every frame by its schema, the first, the last, and what has to be in between. */
export function openStreamCheck({ format, usageAsked, report }: StreamCheckSettings): StreamCheck {
  const law =
    format === "chat-completions" ? openChatLaw(usageAsked) : openNamedLaw(namedFormats[format]);
  let pieces: string[] = [];
  let endsWithLineFeed = false;
  let count = 0;

  function look(lines: readonly Line[]): void {
    for (const line of lines) {
      if (line.kind === "comment" && line.text !== "ping") report(`a comment: ${line.text}`);
    }
    for (const frame of framesOf(lines)) {
      const problem = law.add(frame);
      if (problem !== null) report(`frame ${String(count)}: ${problem}: ${excerpt(frame)}`);
      count += 1;
    }
  }

  return {
    write(text) {
      const ended = text.includes("\n\n") || (endsWithLineFeed && text.startsWith("\n"));
      endsWithLineFeed = text === "" ? endsWithLineFeed : text.endsWith("\n");
      pieces.push(text);
      if (!ended) return;
      const all = pieces.join("");
      const end = all.lastIndexOf("\n\n") + 2;
      pieces = end === all.length ? [] : [all.slice(end)];
      try {
        look(readFrames(all.slice(0, end)));
      } catch (error) {
        report(String(error));
      }
    },
    end() {
      const rest = pieces.join("");
      if (rest !== "") report(`it ends in the middle of a frame: ${rest.slice(0, 300)}`);
      const problem = law.end();
      if (problem !== null) report(problem);
    },
  };
}

function excerpt({ event, data }: Frame): string {
  const shown = data.length > 400 ? `${data.slice(0, 400)}...` : data;
  return event === null ? shown : `${event} ${shown}`;
}

/** The schema of every frame of a format, those of errors too. */
export const frameSchemas = {
  "chat-completions": z.union([chatCompletionChunkSchema, openaiErrorBodySchema]),
  responses: responsesStreamEventSchema,
  messages: z.discriminatedUnion("type", [messagesStreamEventSchema, messagesErrorBodySchema]),
} as const satisfies Record<WireFormatName, z.ZodType>;

function openChatLaw(usageAsked: boolean | null): FrameLaw {
  let asked = usageAsked;
  let begun = false;
  let told = false;
  let last: "done" | "error" | null = null;

  function add({ event, data }: Frame): string | null {
    if (event !== null) return "it has an event name";
    if (last !== null) return "a frame after the last one";
    if (data === "[DONE]") {
      last = "done";
      return null;
    }
    const value = parse(data);
    if (isObject(value) && "error" in value) {
      last = "error";
      return problemOf(openaiErrorBodySchema, value);
    }
    const problem = problemOf(chatCompletionChunkSchema, value);
    if (problem !== null) return problem;
    const chunk = value as z.infer<typeof chatCompletionChunkSchema>;
    const [choice] = chunk.choices;
    asked ??= "usage" in chunk;
    const isFirst = !begun;
    begun = true;
    if (isFirst !== (choice !== undefined && "role" in choice.delta))
      return "the role belongs in the first chunk";
    if ("usage" in chunk !== asked)
      return asked ? "usage was asked for: it is missing" : "usage that was not asked for";
    if (choice === undefined) told = true;
    return null;
  }

  return {
    add,
    end() {
      if (last === null) return "the stream ends without [DONE] or an error";
      if (last === "done" && asked === true && !told) return "no chunk with the usage asked for";
      return null;
    },
  };
}

/** A format in which every frame is named by its type. */
interface NamedFormat {
  readonly schema: z.ZodType<{ readonly type: string }>;
  readonly first: string;
  readonly last: readonly string[];
  /** Whether frames are numbered from 0. */
  readonly numbered: boolean;
}

const namedFormats = {
  responses: {
    schema: frameSchemas.responses,
    first: "response.created",
    last: ["response.completed", "response.incomplete", "response.failed"],
    numbered: true,
  },
  messages: {
    schema: frameSchemas.messages,
    first: "message_start",
    last: ["message_stop", "error"],
    numbered: false,
  },
} as const satisfies Record<string, NamedFormat>;

function openNamedLaw({ schema, first, last, numbered }: NamedFormat): FrameLaw {
  let count = 0;
  let lastType = "";

  return {
    add({ event, data }) {
      const value = parse(data);
      const number = count;
      count += 1;
      if (last.includes(lastType)) return "a frame after the last one";
      const problem = problemOf(schema, value);
      lastType = isObject(value) ? String(value["type"]) : "";
      if (problem !== null) return problem;
      if (event !== lastType) return "its event name is not its type";
      if ((number === 0) !== (lastType === first)) return `${first} belongs first`;
      if (numbered && isObject(value) && value["sequence_number"] !== number)
        return `it is not number ${String(number)}`;
      return null;
    },
    end: () => (last.includes(lastType) ? null : "the stream ends without its last frame"),
  };
}

/** What a schema finds wrong with a value, or null. */
export function problemOf(schema: z.ZodType, value: unknown): string | null {
  const result = schema.safeParse(value);
  return result.success ? null : describeIssues(result.error);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}
