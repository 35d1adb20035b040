import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Timers } from "../timers.ts";

/** Ends a response whose reader takes nothing of what waits for it. */
export interface ReaderWatch {
  /** From now on the reader has so many milliseconds for each byte that waits for it. */
  allow(stallMs: number): void;
}

/** How often the watch looks within its time, so that it ends at most this share later than it says. */
const looksAStall = 4;

/**
 * Watches the connection of a response. A reader that never comes back, or one that sends requests and reads no
 * answers, would hold memory, a place, and while the response runs a slot and credit, for ever. A reader that is slow is
 * not one that has stopped: a single byte taken begins the time anew, and so does having read everything.
 */
export function openReaderWatch(
  response: ServerResponse,
  socket: Socket,
  timers: Timers,
): ReaderWatch {
  let timer: unknown;
  response.once("close", () => timers.clear(timer));

  function lookAfter(everyMs: number, last: { readonly taken: number; readonly looks: number }) {
    timer = timers.set(() => {
      const { taken, unsent } = progressOf(socket);
      const stopped = taken === last.taken && (unsent > 0 || response.writableLength > 0);
      const looks = stopped ? last.looks + 1 : 0;
      // Not the response: one that waits behind another on its connection has no socket of its own yet.
      if (looks === looksAStall) socket.destroy();
      else lookAfter(everyMs, { taken, looks });
    }, everyMs);
  }

  return {
    allow(stallMs) {
      timers.clear(timer);
      if (!response.closed)
        lookAfter(stallMs / looksAStall, { taken: progressOf(socket).taken, looks: 0 });
    },
  };
}

/** Bytes that the kernel has taken, and that wait for it. The counts of the socket itself move a whole write at a time. */
function progressOf(socket: Socket): { readonly taken: number; readonly unsent: number } {
  const { _handle: handle } = socket as Socket & {
    readonly _handle?: { readonly bytesWritten?: number; readonly writeQueueSize?: number } | null;
  };
  const unsent = handle?.writeQueueSize ?? 0;
  return { taken: (handle?.bytesWritten ?? socket.bytesWritten) - unsent, unsent };
}
