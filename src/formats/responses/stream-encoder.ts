import type { GenerationEvent } from "../../conversation/generation-event.ts";
import { Failure } from "../../failure.ts";
import { limits } from "../../limits.ts";
import { pingComment } from "../../sse/server-sent-event.ts";
import { buildOpenaiError } from "../error-answer.ts";
import type { AnswerContext, StreamEncoder } from "../wire-format.ts";
import { openFrameEncoder } from "./frame-encoder.ts";
import { openToolLookup } from "./tool-names.ts";
import { isCut } from "./output-items.ts";
import { type AnswerState, buildResponsesBody } from "./response.ts";
import {
  type ItemBeginning,
  type ItemSurroundings,
  openItemEncoder,
  type ItemEncoder,
} from "./item-encoder.ts";
import type { ItemStatus, OutputItem, ResponsesEcho } from "./wire.ts";

/** Opens the frames of one answer. The answer's own text is held, once: the last frame carries the whole object. */
export function openResponsesEncoder(context: AnswerContext<ResponsesEcho>): StreamEncoder {
  const id = context.newId("resp_");
  const frames = openFrameEncoder();
  const items = openAnswerItems({ frames, context });
  const encodeEvent = openEventEncoder(items, context.echo);

  function encodeBody(type: string, state: AnswerState): string {
    const body = JSON.stringify(buildResponsesBody(id, context, state));
    return frames.frame(type, `"response":${body}`);
  }

  return {
    open: () =>
      encodeBody("response.created", { type: "in-progress" }) +
      encodeBody("response.in_progress", { type: "in-progress" }),
    encode(batch) {
      let text = "";
      for (const event of batch) text += encodeEvent(event);
      return text;
    },
    // One agent's idle timer is reset by events only, and its SDK knows no other event without meaning.
    keepalive: () => pingComment + encodeBody("response.in_progress", { type: "in-progress" }),
    finish(finish) {
      const cut = isCut(finish.reason);
      const done = items.end(cut ? "incomplete" : "completed");
      const type = cut ? "response.incomplete" : "response.completed";
      return done + encodeBody(type, { type: "finished", finish, output: items.ended });
    },
    // No `output_item.done` for the last item, not even when it had ended: agents run a call as soon as they get it, and
    // would then repeat the whole answer.
    fail(failure) {
      const error = buildOpenaiError(failure, context.requestId);
      const { code, message, param } = error;
      // Twice: the documented event has the fields beside its type, and some SDKs throw only on an `error` object.
      const fields = JSON.stringify({ code, message, param, error });
      return (
        frames.frame("error", fields.slice(1, -1)) +
        encodeBody("response.failed", { type: "failed", failure, output: items.ended })
      );
    },
  };
}

/** The items of one answer, strictly one after another. */
interface AnswerItems {
  readonly ended: readonly OutputItem[];
  start(beginning: ItemBeginning): string;
  add(piece: string): string;
  endPart(): string;
  end(status: ItemStatus): string;
}

function openAnswerItems(surroundings: ItemSurroundings): AnswerItems {
  const { frames } = surroundings;
  const ended: OutputItem[] = [];
  /** The item that is open, or the last one: `output_item.done` waits until it is known whether the answer was cut. */
  let current: ItemEncoder | null = null;
  let characters = 0;

  function opened(): ItemEncoder {
    if (current === null) throw new Error("a piece of an answer came outside of a part");
    return current;
  }

  function end(status: ItemStatus): string {
    if (current === null) return "";
    const item = current.build(status);
    current = null;
    const index = String(ended.push(item) - 1);
    return frames.frame(
      "response.output_item.done",
      `"output_index":${index},"item":${JSON.stringify(item)}`,
    );
  }

  return {
    ended,
    end,
    start(beginning) {
      const done = end("completed");
      current = openItemEncoder(beginning, ended.length, surroundings);
      return done + current.start();
    },
    add(piece) {
      characters += piece.length;
      if (characters > limits.answerCharactersMax) throw answerTooLong();
      return opened().add(piece);
    },
    endPart: () => opened().endPart(),
  };
}

function openEventEncoder(
  items: AnswerItems,
  echo: ResponsesEcho,
): (event: GenerationEvent) => string {
  const findTool = openToolLookup(echo);
  return (event) => {
    switch (event.type) {
      case "text-delta":
      case "reasoning-delta":
        return items.add(event.text);
      case "tool-call-delta":
        return items.add(event.arguments);
      case "text-start":
        return items.start({ type: "text" });
      case "reasoning-start":
        return items.start({ type: "reasoning" });
      case "tool-call-start": {
        const { id, name } = event;
        return items.start({ type: "tool-call", id, name, tool: findTool(name) });
      }
      case "text-end":
      case "reasoning-end":
      case "tool-call-end":
        return items.endPart();
      default:
        return event satisfies never;
    }
  };
}

function answerTooLong(): Failure {
  return new Failure(
    "deployment_failed",
    "The answer grew beyond what this service holds. Ask for a shorter one.",
  );
}
