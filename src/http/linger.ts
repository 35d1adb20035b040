import { limits } from "../limits.ts";
import type { Timers } from "../timers.ts";
import type { Exchange } from "./exchange.ts";
import { freePiece } from "./free-piece.ts";
import { areTiny } from "./request-body.ts";

/** Lets clients that are still sending read answers that came early. */
export interface Lingering {
  /** Throws away for a while what is still sent: closing at once would reset the connection, and the answer with it. */
  begin(exchange: Exchange): void;
}

/** How long and how much is thrown away. */
interface LingerBounds {
  readonly ms: number;
  readonly bytesMax: number;
}

/** Opens it for one server. */
export function openLingering(timers: Timers): Lingering {
  /** Of accounts that send more at once than they may: how many of their requests are read to be thrown away. */
  const bounded = new Map<string, number>();

  function count(accountId: string, change: 1 | -1): void {
    const left = (bounded.get(accountId) ?? 0) + change;
    if (left > 0) bounded.set(accountId, left);
    else bounded.delete(accountId);
  }

  return {
    begin({ record, request }) {
      if (request.complete || request.destroyed) return;
      const { ms, bytesMax } = boundsFor(record);
      const timer = timers.set(() => request.destroy(), ms);
      const stop = (): void => timers.clear(timer);
      request.once("end", stop);
      request.once("close", stop);
      if (record.caller !== null && isBounded(record)) {
        const { accountId } = record.caller;
        // The connection stays, and whoever reads beside sending has the answer. Node would read to the end what was not
        // read at all.
        if ((bounded.get(accountId) ?? 0) >= limits.lingersBoundedMax) {
          request.read(0);
          return;
        }
        count(accountId, 1);
        request.once("close", () => count(accountId, -1));
      }
      throwAway(request, bytesMax);
    },
  };
}

function throwAway(request: Exchange["request"], bytesMax: number): void {
  let bytes = 0;
  let pieces = 0;
  request.on("data", (piece: Buffer) => {
    bytes += piece.byteLength;
    pieces += 1;
    freePiece(piece);
    if (bytes > bytesMax || areTiny(pieces, bytes)) request.destroy();
  });
  request.resume();
}

function boundsFor(record: Exchange["record"]): LingerBounds {
  if (record.caller === null)
    return { ms: limits.lingerWithoutKeyMs, bytesMax: limits.lingerWithoutKeyBytesMax };
  // Who sends more than an account may would only go on, and keep the event loop busy with reading it.
  if (isBounded(record))
    return { ms: limits.lingerWithoutKeyMs, bytesMax: limits.lingerBoundedBytesMax };
  return { ms: limits.lingerMs, bytesMax: limits.lingerBytesMax };
}

function isBounded({ failureCode }: Exchange["record"]): boolean {
  return failureCode === "too_many_concurrent";
}
