import { limits } from "../limits.ts";
import type { Timers } from "../timers.ts";
import type { Exchange } from "./exchange.ts";
import { areTiny, freePiece } from "./request-body.ts";

/**
 * Lets a client that is still sending read an answer that came early: what it sends is thrown away for a while.
 * Closing at once would reset the connection, and the answer with it.
 */
export function lingerAfterEarlyAnswer({ record, request }: Exchange, timers: Timers): void {
  if (request.complete || request.destroyed) return;
  const known = record.caller !== null;
  // Who sends more than an account may would only go on, and keep the event loop busy with reading it.
  const bounded = record.failureCode === "too_many_concurrent";
  const bytesMax = bounded
    ? limits.lingerBoundedBytesMax
    : known
      ? limits.lingerBytesMax
      : limits.lingerWithoutKeyBytesMax;
  let bytes = 0;
  let pieces = 0;
  const timer = timers.set(
    () => request.destroy(),
    known && !bounded ? limits.lingerMs : limits.lingerWithoutKeyMs,
  );
  request.on("data", (piece: Buffer) => {
    bytes += piece.byteLength;
    pieces += 1;
    freePiece(piece);
    if (bytes > bytesMax || areTiny(pieces, bytes)) request.destroy();
  });
  const stop = (): void => timers.clear(timer);
  request.once("end", stop);
  request.once("close", stop);
  request.resume();
}
