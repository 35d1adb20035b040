import { followLive } from "./follow-live.ts";
import { applyEvent, type LiveEvent, type LiveState, nothingYet } from "./live-state.ts";

/** What tabs say to each other. */
type Message =
  | { readonly type: "hello" }
  | { readonly type: "state"; readonly state: LiveState }
  | { readonly type: "event"; readonly event: LiveEvent };

const name = "tributary-live";

/**
 * What is live, from the one connection that all tabs of this browser have together: the tab that has the lock reads it
 * and tells the others. Returns what leaves; another tab takes the lock then. Pages without https have no locks, but for
 * those of this machine: there each tab reads by itself.
 */
export function joinLive(onState: (state: LiveState) => void): () => void {
  const stop = new AbortController();
  const locks = (navigator as { readonly locks?: LockManager }).locks;
  const channel = locks === undefined ? null : new BroadcastChannel(name);
  let state = nothingYet;
  let leads = false;
  const take = (next: LiveState): void => {
    state = next;
    onState(next);
  };
  const tell = (message: Message): void => channel?.postMessage(message);
  const lead = (): Promise<void> => {
    leads = true;
    return followLive((event) => {
      tell({ type: "event", event });
      take(applyEvent(state, event));
    }, stop.signal);
  };
  channel?.addEventListener("message", ({ data }: MessageEvent<Message>) => {
    if (data.type === "hello") {
      if (leads && state.rows !== null) tell({ type: "state", state });
    } else if (leads) return;
    else if (data.type === "state") take(data.state);
    else if (state.rows !== null || isBegin(data.event)) take(applyEvent(state, data.event));
  });
  tell({ type: "hello" });
  if (locks === undefined) void lead();
  // Left before the lock was had.
  else locks.request(name, { signal: stop.signal }, lead).catch(() => undefined);
  return () => {
    stop.abort();
    channel?.close();
  };
}

/** Rows that came before a tab listened are in the state of the one that leads, or in the first event of a stream. */
function isBegin(event: LiveEvent): boolean {
  return event.name !== "generations" || event.data.reset;
}
