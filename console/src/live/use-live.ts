import { useEffect, useState } from "preact/hooks";
import { ApiError } from "../api/client.ts";
import type { Load } from "../api/use-load.ts";
import { joinLive } from "./join-live.ts";
import { type LiveState, nothingYet } from "./live-state.ts";

/** A page that follows another one takes over its connection. */
const graceMs = 1_000;

let state = nothingYet;
let leave: (() => void) | null = null;
let timer: ReturnType<typeof setTimeout> | null = null;
const listeners = new Set<(state: LiveState) => void>();

/** What is live, as long as the page is looked at: a tab in the background has no part in the connection. */
export function useLive(): LiveState {
  const [shown, setShown] = useState(state);
  useEffect(() => {
    listeners.add(setShown);
    setShown(state);
    connect();
    return () => {
      listeners.delete(setShown);
      if (listeners.size === 0) leaveSoon();
    };
  }, []);
  return shown;
}

/** The same for `Loaded`: on its way, there, or not to be had. */
export function liveLoad(live: LiveState): Load<LiveState> {
  const { now, problem, rows } = live;
  return {
    data: now === null || rows === null ? null : live,
    error: problem === null ? null : new ApiError(problem),
    loading: problem === null && (now === null || rows === null),
    reload() {
      disconnect();
      connect();
      return Promise.resolve();
    },
  };
}

function connect(): void {
  if (timer !== null) clearTimeout(timer);
  timer = null;
  if (leave !== null || document.hidden || listeners.size === 0) return;
  leave = joinLive((next) => {
    state = next;
    for (const listener of listeners) listener(next);
  });
}

function disconnect(): void {
  leave?.();
  leave = null;
}

function leaveSoon(): void {
  timer ??= setTimeout(() => {
    timer = null;
    if (listeners.size > 0) return;
    disconnect();
    state = nothingYet;
  }, graceMs);
}

document.addEventListener("visibilitychange", () => {
  if (document.hidden) disconnect();
  else connect();
});
