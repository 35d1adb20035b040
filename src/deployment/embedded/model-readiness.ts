import { Failure } from "../../failure.ts";
import { limits } from "../../limits.ts";

/** How far the model is from answering. */
export type ModelReadinessState =
  | { readonly type: "ready" }
  /** Weights are here and are being loaded, or a child is being started again. */
  | { readonly type: "loading" }
  | { readonly type: "fetching"; readonly bytes: number; readonly totalBytes: number }
  /** The log says why; it is tried again. */
  | { readonly type: "failed" }
  | { readonly type: "stopped" };

/** What `whenReady` waits for. */
export interface ModelReadiness {
  readonly ready: boolean;
  set(state: ModelReadinessState): void;
  /** Resolves when ready; rejects with `overloaded` when that does not come within `waitMs`, or cannot. */
  wait(waitMs: number, signal: AbortSignal): Promise<void>;
  /** The Failure of a request that comes now. */
  failure(): Failure;
}

const mebibyte = 2 ** 20;
const loadAdviceSeconds = 5;

/** Begins with "loading". */
export function openModelReadiness(now: () => number): ModelReadiness {
  let state: ModelReadinessState = { type: "loading" };
  let fetchStart: { readonly bytes: number; readonly atMs: number } | null = null;
  const watchers = new Set<() => void>();

  function failure(): Failure {
    switch (state.type) {
      case "fetching":
        return fetchingFailure(state, fetchStart, now());
      case "failed":
        return overloaded(
          "The model is not available on this server; its operator finds the reason in the log.",
          limits.retryAfterSecondsMax,
        );
      case "stopped":
        return overloaded("The service is stopping.", loadAdviceSeconds);
      case "loading":
      case "ready":
        return overloaded(
          "The model is being loaded. Try again in a few seconds.",
          loadAdviceSeconds,
        );
      default:
        return state satisfies never;
    }
  }

  function isKnown(): boolean {
    return state.type !== "loading";
  }

  return {
    get ready() {
      return state.type === "ready";
    },
    set(next) {
      if (next.type !== "fetching") fetchStart = null;
      else fetchStart ??= { bytes: next.bytes, atMs: now() };
      state = next;
      for (const look of watchers) look();
    },
    async wait(waitMs, signal) {
      if (!isKnown()) await waitUntil(isKnown, watchers, { waitMs, signal });
      if (state.type !== "ready") throw failure();
    },
    failure,
  };
}

function fetchingFailure(
  state: ModelReadinessState & { readonly type: "fetching" },
  start: { readonly bytes: number; readonly atMs: number } | null,
  nowMs: number,
): Failure {
  const bytesPerMs = start === null ? 0 : (state.bytes - start.bytes) / (nowMs - start.atMs);
  const leftSeconds = (state.totalBytes - state.bytes) / bytesPerMs / 1_000 + loadAdviceSeconds;
  const seconds = Number.isFinite(leftSeconds)
    ? Math.min(limits.retryAfterSecondsMax, Math.ceil(leftSeconds))
    : limits.retryAfterSecondsMax;
  const here = Math.floor(state.bytes / mebibyte);
  const all = Math.ceil(state.totalBytes / mebibyte);
  return overloaded(
    `The model is being downloaded: ${here} of ${all} MiB are here. Try again in ${seconds} seconds.`,
    seconds,
  );
}

function overloaded(message: string, retryAfterSeconds: number): Failure {
  return new Failure("overloaded", message, { retryAfterSeconds });
}

interface WaitLimits {
  readonly waitMs: number;
  readonly signal: AbortSignal;
}

function waitUntil(
  done: () => boolean,
  watchers: Set<() => void>,
  { signal, waitMs }: WaitLimits,
): Promise<void> {
  return new Promise((resolve) => {
    const finish = (): void => {
      clearTimeout(timer);
      watchers.delete(look);
      signal.removeEventListener("abort", finish);
      resolve();
    };
    const look = (): void => {
      if (done()) finish();
    };
    const timer = setTimeout(finish, waitMs);
    watchers.add(look);
    signal.addEventListener("abort", finish, { once: true });
    if (signal.aborted) finish();
  });
}
