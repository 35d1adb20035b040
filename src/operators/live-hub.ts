import type { StoreLedger } from "../ledger/store-ledger.ts";
import { limits } from "../limits.ts";
import type { Timers } from "../timers.ts";
import { LiveNow } from "./live-now.ts";
import { LiveRows, type RowChanges } from "./live-rows.ts";
import { problemOf } from "./problem.ts";
import type { WatchedService } from "./watched-service.ts";

/** What live streams are made of. */
export interface LiveHubParts {
  readonly ledger: () => Promise<StoreLedger>;
  readonly service: WatchedService;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly timers: Timers;
  /** The listener ends, and every stream with it. */
  readonly closing: AbortSignal;
  readonly onFailure: (cause: unknown) => void;
}

interface Watcher {
  readonly controller: ReadableStreamDefaultController<Uint8Array>;
  /** Whether its operator may still watch. */
  readonly mayStill: () => Promise<boolean>;
  /** Whether it has been sent everything once; what it missed makes it false again. */
  knowsAll: boolean;
  /** Since when it reads slower than it is sent; null: it does not. */
  behindSinceMs: number | null;
}

/**
 * Live streams. As long as there is one, the service is looked at every `limits.liveEveryMs`, once for all of them, and
 * each is sent what has changed; without one nothing is done.
 */
export class LiveHub {
  readonly #parts: LiveHubParts;
  readonly #watchers = new Set<Watcher>();
  #state: { readonly rows: LiveRows; readonly now: LiveNow } | null = null;
  #lastNow = "";
  #lastSentMs = 0;
  #looking = false;
  #failing = false;
  #timer: unknown = null;

  constructor(parts: LiveHubParts) {
    this.#parts = parts;
    parts.closing.addEventListener("abort", () => this.#closeAll(), { once: true });
  }

  get isFull(): boolean {
    return this.#watchers.size >= limits.liveStreamsMax;
  }

  /** The stream of one who watches; before anything is sent it is asked whether that may still be. */
  open(mayStill: Watcher["mayStill"]): ReadableStream<Uint8Array> {
    let watcher: Watcher | null = null;
    const strategy = new ByteLengthQueuingStrategy({
      highWaterMark: limits.liveBufferedBytesMax,
    });
    return new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          watcher = { controller, mayStill, knowsAll: false, behindSinceMs: null };
          this.#add(watcher);
        },
        cancel: () => {
          if (watcher !== null) this.#remove(watcher);
        },
      },
      strategy,
    );
  }

  #add(watcher: Watcher): void {
    if (this.#parts.closing.aborted) {
      watcher.controller.close();
      return;
    }
    this.#watchers.add(watcher);
    if (this.#state !== null && this.#lastNow !== "") this.#sendAll(watcher, this.#state.rows);
    else if (!this.#looking) void this.#look();
  }

  #remove(watcher: Watcher): void {
    this.#watchers.delete(watcher);
    if (!this.#looking) this.#restUnlessWatched();
  }

  #restUnlessWatched(): void {
    if (this.#watchers.size > 0) return;
    this.#parts.timers.clear(this.#timer);
    this.#state = null;
    this.#lastNow = "";
    this.#failing = false;
  }

  #closeAll(): void {
    for (const watcher of this.#watchers) this.#close(watcher);
  }

  #close(watcher: Watcher, lastFrame = ""): void {
    this.#remove(watcher);
    if (lastFrame !== "") watcher.controller.enqueue(bytesOf(lastFrame));
    watcher.controller.close();
  }

  async #look(): Promise<void> {
    this.#looking = true;
    const { ledger, now, service, timers } = this.#parts;
    this.#state ??= { rows: new LiveRows(), now: new LiveNow(service, now) };
    const { rows, now: live } = this.#state;
    try {
      const opened = await ledger();
      const changes = await rows.look(opened, service);
      const nowText = JSON.stringify(await live.look(opened, rows.running));
      await this.#endForbidden();
      const frames =
        (changes.isNothing ? "" : rowFrames(changes, false)) +
        (nowText === this.#lastNow ? "" : frameOf("now", nowText));
      this.#lastNow = nowText;
      this.#failing = false;
      this.#send(frames, rows);
    } catch (error) {
      this.#tellFailure(error);
    }
    this.#looking = false;
    this.#restUnlessWatched();
    if (this.#watchers.size === 0) return;
    this.#timer = timers.set(() => void this.#look(), limits.liveEveryMs);
  }

  /** Ends the streams of those who may not watch any more. One who came meanwhile may: its request has just been let in. */
  async #endForbidden(): Promise<void> {
    const asked = [...this.#watchers];
    const answers = await Promise.all(asked.map(({ mayStill }) => mayStill()));
    for (const [at, watcher] of asked.entries())
      if (answers[at] !== true && this.#watchers.has(watcher)) this.#close(watcher, endFrame);
  }

  #send(frames: string, rows: LiveRows): void {
    const nowMs = this.#parts.now();
    const isDue = nowMs - this.#lastSentMs >= limits.liveHeartbeatMs;
    const text = frames === "" && isDue ? heartbeat : frames;
    if (text !== "") this.#lastSentMs = nowMs;
    const bytes = bytesOf(text);
    for (const watcher of this.#watchers) {
      if (this.#isBehind(watcher, nowMs)) continue;
      if (!watcher.knowsAll) this.#sendAll(watcher, rows);
      else if (text !== "") watcher.controller.enqueue(bytes);
    }
  }

  #sendAll(watcher: Watcher, rows: LiveRows): void {
    watcher.knowsAll = true;
    const frames = rowFrames(rows.all(), true) + frameOf("now", this.#lastNow);
    watcher.controller.enqueue(bytesOf(frames));
  }

  /** One that is behind misses what comes now, and gets everything anew when it has read what waits. */
  #isBehind(watcher: Watcher, nowMs: number): boolean {
    if ((watcher.controller.desiredSize ?? 0) > 0) {
      watcher.behindSinceMs = null;
      return false;
    }
    watcher.knowsAll = false;
    watcher.behindSinceMs ??= nowMs;
    if (nowMs - watcher.behindSinceMs >= limits.liveBehindMs) {
      this.#remove(watcher);
      watcher.controller.error(new Error("the stream was read too slowly"));
    }
    return true;
  }

  /** Says nothing of what runs: whether an operator may still watch is not known without the ledger. */
  #tellFailure(error: unknown): void {
    const { code, detail, status } = problemOf(error);
    if (status === 500 && !this.#failing) this.#parts.onFailure(error);
    const bytes = bytesOf(frameOf("problem", JSON.stringify({ code, detail })));
    for (const watcher of this.#watchers) {
      // What the look had learnt before it failed was not sent.
      watcher.knowsAll = false;
      if (!this.#failing) watcher.controller.enqueue(bytes);
    }
    this.#lastNow = "";
    this.#failing = true;
  }
}

const encoder = new TextEncoder();
const heartbeat = ": nothing new\n\n";
const endFrame = frameOf("end", JSON.stringify({ code: "session_over" }));

function bytesOf(text: string): Uint8Array {
  return encoder.encode(text);
}

function frameOf(event: string, json: string): string {
  return `event: ${event}\ndata: ${json}\n\n`;
}

/** In several frames where there are many rows, so that no page has to take them up in one piece. */
function rowFrames(changes: RowChanges, begins: boolean): string {
  const { removed, rows, running, tokens } = changes;
  const frames: string[] = [];
  for (let at = 0; at === 0 || at < rows.length; at += limits.liveRowsAtOnce) {
    const isLast = at + limits.liveRowsAtOnce >= rows.length;
    const data = rows.slice(at, at + limits.liveRowsAtOnce).join(",");
    const gone = JSON.stringify(at === 0 ? removed : []);
    const counts = JSON.stringify(isLast ? Object.fromEntries(tokens) : {});
    frames.push(
      frameOf(
        "generations",
        `{"reset":${String(begins && at === 0)},"running":${String(running)},"data":[${data}],"removed":${gone},"output_tokens":${counts}}`,
      ),
    );
  }
  return frames.join("");
}
