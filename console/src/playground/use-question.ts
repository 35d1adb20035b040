import { useRef, useState } from "preact/hooks";
import { addEvent, type Answer, noAnswer, readBody } from "./answer.ts";
import { bodyOf, headersOf, paths, type Question, type Tool } from "./ask.ts";
import { dataOf, openFrames } from "../frames.ts";

/** A piece of the answer as it came, with its time since the request was sent. */
export interface Frame {
  readonly atMs: number;
  readonly text: string;
}

/** How a question goes. */
export interface Asked {
  readonly state: "asking" | "done" | "cancelled" | "failed";
  readonly answer: Answer;
  readonly frames: readonly Frame[];
  readonly status: number | null;
  readonly requestId: string | null;
  readonly firstMs: number | null;
  readonly totalMs: number | null;
}

const framesShownMax = 2_000;

/** Sends questions, one at a time, and follows the answer. */
export function useQuestion(): {
  readonly asked: Asked | null;
  readonly send: (question: Question, tools: readonly Tool[], key: string) => void;
  readonly cancel: () => void;
} {
  const [asked, setAsked] = useState<Asked | null>(null);
  const running = useRef<AbortController | null>(null);
  return {
    asked,
    send: (question, tools, key) => {
      running.current?.abort();
      const stop = new AbortController();
      running.current = stop;
      const show = (next: Asked): void => {
        if (running.current === stop) setAsked(next);
      };
      void follow({ question, tools, key, signal: stop.signal }, show);
    },
    cancel: () => running.current?.abort(),
  };
}

async function readFrames(
  body: ReadableStream<Uint8Array>,
  take: (frames: readonly string[]) => void,
): Promise<void> {
  const split = openFrames();
  const decoder = new TextDecoder();
  const reader = body.getReader();
  for (let read = await reader.read(); !read.done; read = await reader.read())
    take(split(decoder.decode(read.value, { stream: true })));
}

async function follow(
  order: {
    readonly question: Question;
    readonly tools: readonly Tool[];
    readonly key: string;
    readonly signal: AbortSignal;
  },
  show: (asked: Asked) => void,
): Promise<void> {
  const { key, question, signal, tools } = order;
  const { format } = question;
  const startedMs = performance.now();
  const sinceMs = (): number => performance.now() - startedMs;
  let asked: Asked = {
    state: "asking",
    answer: noAnswer,
    frames: [],
    status: null,
    requestId: null,
    firstMs: null,
    totalMs: null,
  };
  const update = (change: Partial<Asked>): void => {
    asked = { ...asked, ...change };
    show(asked);
  };
  update({});
  try {
    const response = await fetch(paths[format], {
      method: "POST",
      headers: { "content-type": "application/json", ...headersOf(format, key) },
      body: JSON.stringify(bodyOf(question, tools)),
      signal,
    });
    const requestId = response.headers.get("x-request-id") ?? response.headers.get("request-id");
    update({ status: response.status, requestId });
    const streamed = response.headers.get("content-type")?.startsWith("text/event-stream") === true;
    if (streamed && response.body !== null) {
      await readFrames(response.body, (frames) => {
        const atMs = sinceMs();
        const answer = frames.reduce(
          (before, frame) => addEvent(format, before, dataOf(frame) ?? ""),
          asked.answer,
        );
        const began = answer.text + answer.reasoning !== "" || answer.calls.length > 0;
        const came = frames.map((frame) => ({ atMs, text: frame }));
        update({
          answer,
          frames: [...asked.frames, ...came].slice(-framesShownMax),
          firstMs: asked.firstMs ?? (began ? atMs : null),
        });
      });
    } else {
      const text = await response.text();
      const answer = readBody(format, text);
      const atMs = sinceMs();
      update({
        answer,
        frames: [{ atMs, text }],
        // The body of an error is no output.
        firstMs: answer.error === null ? atMs : null,
      });
    }
    update({ state: asked.answer.error === null ? "done" : "failed", totalMs: sinceMs() });
  } catch (error) {
    const words = error instanceof Error ? error.message : String(error);
    update(
      signal.aborted
        ? { state: "cancelled", totalMs: sinceMs() }
        : { state: "failed", totalMs: sinceMs(), answer: { ...asked.answer, error: words } },
    );
  }
}
