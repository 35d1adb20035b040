import type { IncomingMessage, ServerResponse } from "node:http";
import { Failure } from "../failure.ts";
import { limits } from "../limits.ts";

/** Reads a body of at most limits.bodyBytesMax, or throws a Failure; what comes after a Failure is not kept. */
export async function readRequestBody(
  request: IncomingMessage,
  response: ServerResponse,
  receiveMs: number = limits.requestReceiveMs,
): Promise<Uint8Array<ArrayBuffer>> {
  // Its end was told before anybody listened.
  if (request.destroyed || response.destroyed) throw brokenOff();
  checkHeaders(request);
  if (/^100-continue$/i.test(request.headers.expect ?? "")) response.writeContinue();
  const body = new BodyBytes();
  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(() => settle(tooSlow(receiveMs)), receiveMs);
    const onData = (chunk: Buffer): void => {
      if (body.byteLength + chunk.byteLength > limits.bodyBytesMax) return settle(tooLarge());
      body.append(chunk);
    };
    const onEnd = (): void => settle(null);
    const onClose = (): void => settle(brokenOff());
    function settle(failure: Failure | null): void {
      clearTimeout(timer);
      request.off("data", onData).off("end", onEnd).off("close", onClose).off("error", onClose);
      response.off("close", onClose);
      // A request that broke off raises its error after this listener is gone.
      request.on("error", () => undefined);
      if (failure === null) return resolve();
      request.pause();
      reject(failure);
    }
    request.on("data", onData).on("end", onEnd).on("close", onClose).on("error", onClose);
    // An answer that is over, such as that to a broken chunk, leaves nobody to read for.
    response.on("close", onClose);
  });
  return body.take();
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
  #memory = new ArrayBuffer(0);
  byteLength = 0;

  append(piece: Buffer): void {
    const end = this.byteLength + piece.byteLength;
    if (end > this.#memory.byteLength)
      this.#memory = this.#memory.transfer(Math.max(end, 2 * this.#memory.byteLength));
    new Uint8Array(this.#memory).set(piece, this.byteLength);
    this.byteLength = end;
    free(piece);
  }

  take(): Uint8Array<ArrayBuffer> {
    return new Uint8Array(this.#memory.transfer(this.byteLength));
  }
}

/** Frees the memory of a piece that nobody else looks at; one that is part of a pool stays. */
function free({ buffer, byteLength }: Buffer): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength) buffer.transfer(0);
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

function tooSlow(receiveMs: number): Failure {
  return new Failure(
    "request_timeout",
    `The body did not arrive within ${String(Math.ceil(receiveMs / 1_000))} seconds. Send it without pauses.`,
  );
}
