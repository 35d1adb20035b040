import { ApiError, endSession, openStream } from "../api/client.ts";
import { dataOf, openFrames } from "../frames.ts";
import type { LiveEvent } from "./live-state.ts";

/** A stream in which nothing came for so long is taken for dead: the service says something every 15 s. */
const silenceMs = 40_000;
/** Between a stream that has ended and the next try, at first and at most. */
const pauseFirstMs = 500;
const pauseLongestMs = 10_000;

/** Reads the live stream until it is stopped or the session is over; where it breaks off it is opened again. */
export async function followLive(
  onEvent: (event: LiveEvent) => void,
  stopped: AbortSignal,
): Promise<void> {
  let pauseMs = pauseFirstMs;
  while (!stopped.aborted) {
    try {
      await readStream((event) => {
        pauseMs = pauseFirstMs;
        onEvent(event);
      }, stopped);
    } catch (error) {
      if (stopped.aborted) return;
      if (error instanceof ApiError && error.status === 401) return;
      const { code, message: detail, status } = problemOf(error);
      onEvent({ name: "problem", data: { code, detail, status } });
    }
    await pause(pauseMs, stopped);
    pauseMs = Math.min(pauseMs * 2, pauseLongestMs);
  }
}

async function readStream(
  onEvent: (event: LiveEvent) => void,
  stopped: AbortSignal,
): Promise<void> {
  const silent = new AbortController();
  let timer: ReturnType<typeof setTimeout> | null = null;
  const heard = (): void => {
    if (timer !== null) clearTimeout(timer);
    timer = setTimeout(() => silent.abort(), silenceMs);
  };
  heard();
  try {
    const signal = AbortSignal.any([stopped, silent.signal]);
    const stream = await openStream("/live", signal);
    const frames = openFrames();
    const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      heard();
      for (const frame of frames(value)) take(frame, onEvent);
    }
  } finally {
    if (timer !== null) clearTimeout(timer);
  }
}

function take(frame: string, onEvent: (event: LiveEvent) => void): void {
  const data = dataOf(frame);
  // What is no event is a sign of life.
  if (data === null) return;
  const [, name = ""] = /^event: *(\w+)/m.exec(frame) ?? [];
  const value = JSON.parse(data) as never;
  if (name === "now" || name === "generations") onEvent({ name, data: value });
  else if (name === "problem")
    onEvent({ name, data: { ...(value as object), status: 503 } as never });
  else if (name === "end") {
    endSession();
    throw new ApiError({ status: 401, code: "session_over", detail: "The session has ended." });
  }
}

function problemOf(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  return new ApiError({
    status: 0,
    code: "no_answer",
    detail: "The connection to the service broke off. It is tried again.",
  });
}

function pause(ms: number, stopped: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    stopped.addEventListener(
      "abort",
      () => {
        clearTimeout(timer);
        resolve();
      },
      { once: true },
    );
  });
}
