import type { IncomingMessage, ServerResponse } from "node:http";
import { Failure } from "../failure.ts";
import { limits } from "../limits.ts";
import type { Timers } from "../timers.ts";
import type { AccountEntry } from "./account-bounds.ts";
import { freePiece } from "./free-piece.ts";

/** A body that came whole. */
export interface ReceivedBody {
  readonly byteLength: number;
  /** null: it is longer than was to be kept. */
  readonly bytes: Uint8Array<ArrayBuffer> | null;
}

/** What a body is read with. */
export interface BodyReading {
  /** Where its bytes count until they are released. */
  readonly entry: Pick<AccountEntry, "expect" | "hold" | "release">;
  /** A longer one is read to its end, so that its sender can read the answer, and thrown away. */
  readonly keptBytesMax: number;
  readonly timers: Timers;
}

/** How often a body is looked at within the time that it may stand still. */
const looksAStall = 4;

/** Reads a body of at most limits.bodyBytesMax, or throws a Failure; what comes after a Failure is not kept. */
export async function readRequestBody(
  request: IncomingMessage,
  response: ServerResponse,
  reading: BodyReading,
): Promise<ReceivedBody> {
  // The event of its end came before readRequestBody listened.
  if (request.destroyed || response.destroyed) throw brokenOff();
  checkHeaders(request);
  const { keptBytesMax, timers } = reading;
  const announced = Number(request.headers["content-length"] ?? 0);
  const body = new BodyBytes(reading.entry, { announced, keptBytesMax });
  if (/^100-continue$/i.test(request.headers.expect ?? "")) response.writeContinue();
  await new Promise<void>((resolve, reject) => {
    const late = timers.set(() => settle(tooSlow()), limits.requestReceiveMs);
    let pieces = 0;
    let stall = lookAfter({ pieces, looks: 1 });

    function lookAfter(last: { readonly pieces: number; readonly looks: number }): unknown {
      return timers.set(() => {
        const looks = pieces === last.pieces ? last.looks + 1 : 1;
        if (looks > looksAStall) settle(stoodStill());
        else stall = lookAfter({ pieces, looks });
      }, limits.bodyStallMs / looksAStall);
    }

    const onData = (piece: Buffer): void => {
      pieces += 1;
      try {
        body.append(piece);
        if (areTiny(pieces, body.byteLength)) throw tinyPieces();
      } catch (error) {
        settle(error);
      }
    };
    const onEnd = (): void => settle(null);
    const onClose = (): void => settle(brokenOff());
    function settle(failure: unknown): void {
      timers.clear(late);
      timers.clear(stall);
      request.off("data", onData).off("end", onEnd).off("close", onClose).off("error", onClose);
      response.off("close", onClose);
      // A request that broke off raises its error after this listener is gone.
      request.on("error", () => undefined);
      if (failure === null) return resolve();
      request.pause();
      body.drop();
      reject(failure);
    }
    request.on("data", onData).on("end", onEnd).on("close", onClose).on("error", onClose);
    // Nothing is read for an answer that is over, such as that to a broken chunk.
    response.on("close", onClose);
  });
  return { byteLength: body.byteLength, bytes: body.take() };
}

/** Whether so many pieces are an attack: each costs the event loop as much as one of 64 KiB does. */
export function areTiny(pieces: number, bytes: number): boolean {
  return pieces > limits.tinyPiecesMax && bytes < pieces * limits.tinyPieceBytes;
}

function checkHeaders(request: IncomingMessage): void {
  const type = request.headers["content-type"];
  if (type !== undefined && !/^application\/(?:[\w.-]+\+)?json\s*(?:;|$)/i.test(type.trim()))
    throw new Failure(
      "unsupported_media_type",
      "The body must be JSON: send the header `content-type: application/json`.",
    );
  const charset = /;\s*charset\s*=\s*"?([^\s;"]+)/iu.exec(type ?? "")?.[1]?.toLowerCase();
  if (charset !== undefined && charset !== "utf-8" && charset !== "utf8" && charset !== "us-ascii")
    throw new Failure(
      "unsupported_media_type",
      "The body must be UTF-8: send it so, and leave `charset` out of `content-type`.",
    );
  const encoding = request.headers["content-encoding"];
  if (encoding !== undefined && encoding.trim().toLowerCase() !== "identity")
    throw new Failure(
      "unsupported_media_type",
      "Compressed bodies are not accepted: send the body as it is, without `content-encoding`.",
    );
}

/**
 * Bytes that come in pieces, in memory of their own: pooled buffers could not be transferred to a worker. Each piece is
 * freed as soon as it is copied. V8 frees it with the next collection only, and collects for the sake of a few large
 * bodies, on the event loop, which holds up every stream.
 */
class BodyBytes {
  readonly #entry: BodyReading["entry"];
  readonly #keptBytesMax: number;
  /** null: nothing is kept any more. */
  #memory: ArrayBuffer | null = null;
  byteLength = 0;

  constructor(
    entry: BodyReading["entry"],
    sizes: { readonly announced: number; readonly keptBytesMax: number },
  ) {
    this.#entry = entry;
    this.#keptBytesMax = sizes.keptBytesMax;
    if (sizes.announced > sizes.keptBytesMax) return;
    entry.expect(sizes.announced);
    // All at once where the length is known: the system gives the memory page by page, as it is written to.
    this.#memory = new ArrayBuffer(sizes.announced);
  }

  append(piece: Buffer): void {
    const from = this.byteLength;
    const end = from + piece.byteLength;
    if (end > limits.bodyBytesMax) throw tooLarge();
    this.byteLength = end;
    if (end > this.#keptBytesMax) this.drop();
    if (this.#memory !== null) {
      this.#entry.hold(piece.byteLength);
      if (end > this.#memory.byteLength)
        this.#memory = this.#memory.transfer(Math.max(end, 2 * this.#memory.byteLength));
      new Uint8Array(this.#memory).set(piece, from);
    }
    freePiece(piece);
  }

  /** Frees the memory by hand too: V8 would let tens of refused bodies wait for its next collection. */
  drop(): void {
    this.#memory?.transfer(0);
    this.#memory = null;
    this.#entry.release();
  }

  take(): Uint8Array<ArrayBuffer> | null {
    return this.#memory === null ? null : new Uint8Array(this.#memory.transfer(this.byteLength));
  }
}

/** For the log: the client that sent half a request does not read its answer. */
export function brokenOff(): Failure {
  return new Failure("invalid_request", "The request broke off.");
}

function tooLarge(): Failure {
  return new Failure(
    "body_too_large",
    `The body is larger than ${String(limits.bodyBytesMax)} bytes (4 MiB). Send a shorter conversation.`,
  );
}

function tooSlow(): Failure {
  return new Failure(
    "request_timeout",
    `The body did not arrive within ${seconds(limits.requestReceiveMs)} seconds. Send it without pauses.`,
  );
}

function stoodStill(): Failure {
  return new Failure(
    "request_timeout",
    `Nothing of the body arrived for ${seconds(limits.bodyStallMs)} seconds. Send it without pauses.`,
  );
}

function tinyPieces(): Failure {
  return new Failure(
    "invalid_request",
    `The body comes in pieces of fewer than ${String(limits.tinyPieceBytes)} bytes. Send it in larger ones, best with \`content-length\`.`,
  );
}

function seconds(ms: number): string {
  return String(Math.ceil(ms / 1_000));
}
