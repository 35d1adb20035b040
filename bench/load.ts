import { connect, type Socket } from "node:net";
import type { Arm } from "./arms.ts";
import { type BenchFormat, chat, type MockOrder, stampNanos, stampPattern } from "./wire.ts";

// The load generator speaks HTTP over plain sockets: with node:http it would be the slower one of generator and gateway.

/** What one streamed request saw. Times in milliseconds. */
export interface StreamResult {
  /** From the request to its first content. */
  readonly firstMs: number;
  /** From the mock's write to our read, a figure a chunk. */
  readonly delaysMs: readonly number[];
}

/** A request, made beforehand: a large one would hold up the load generator itself. */
export interface LoadRequest {
  readonly format: BenchFormat;
  readonly chunks: number;
  readonly body: Buffer;
}

/** Connections are kept between requests, as every SDK keeps them. */
export interface Connections extends Disposable {
  take(url: URL): Socket;
  giveBack(url: URL, socket: Socket): void;
}

/** A request of `order` in a format, for an arm with its own name for the model. */
export function buildRequest(
  order: MockOrder,
  options: { readonly format?: BenchFormat; readonly ballast?: string; readonly arm?: Arm } = {},
): LoadRequest {
  const { arm, ballast, format = chat } = options;
  const model = arm?.models?.[format.name];
  const body = Buffer.from(JSON.stringify(format.body(order, { ballast, model })));
  return { format, chunks: order.chunks, body };
}

/** A server may close a connection that waits for longer; the shortest such time of an arm is 5 s. */
const keptMs = 1_000;

export function openConnections(): Connections {
  const waiting = new Map<string, { readonly socket: Socket; readonly sinceMs: number }[]>();
  const all = new Set<Socket>();
  return {
    take(url) {
      const kept = waiting.get(url.host) ?? [];
      for (let last = kept.pop(); last !== undefined; last = kept.pop()) {
        if (!last.socket.destroyed && performance.now() - last.sinceMs < keptMs) return last.socket;
        last.socket.destroy();
      }
      const socket = connect({ port: Number(url.port), host: url.hostname, noDelay: true });
      // Also when the connection is not in use.
      socket.on("error", () => {});
      all.add(socket.once("close", () => all.delete(socket)));
      return socket;
    },
    giveBack(url, socket) {
      const kept = waiting.get(url.host) ?? [];
      waiting.set(url.host, kept);
      kept.push({ socket, sinceMs: performance.now() });
    },
    [Symbol.dispose]() {
      for (const socket of all) socket.destroy();
    },
  };
}

/** How an answer's end is known: the last chunk of its framing, so many bytes, or the end of the connection. */
type Framing =
  | { readonly kind: "chunked" | "closed" }
  | { readonly kind: "length"; readonly bytes: number };

const lastChunk = "\r\n0\r\n\r\n";
const chunkFraming = /\r\n[0-9a-f]+\r\n/gi;
/** The ending of an answer fits into so many characters: its last chunk, usage and the mark of the end. */
const endingCharacters = 2_048;
/** A stamp fits into so many, however it was cut. */
const keptText = 96;

/**
 * Runs one streamed request to its end and rejects where the answer is not whole. `measure` is off in bursts, where
 * reading stamps would be the load.
 */
export function runStream(
  arm: Arm,
  request: LoadRequest,
  parts: {
    readonly connections: Connections;
    readonly measure: boolean;
    /** Counts chunks while they come, for windows that begin and end in the middle of streams. */
    readonly onChunks?: (count: number) => void;
  },
): Promise<StreamResult> {
  const url = new URL(request.format.path, arm.url);
  const delaysMs: number[] = [];
  let firstMs = 0;
  let head = "";
  let framing: Framing | null = null;
  let bytes = 0;
  let tail = "";
  let lastBytes = "";
  let whole = false;

  function readContents(text: string): void {
    if (!parts.measure) {
      tail = (tail + text).slice(-endingCharacters);
      return;
    }
    const plain = (tail + text).replace(chunkFraming, "");
    let now: bigint | null = null;
    let [end, count] = [0, 0];
    for (const match of plain.matchAll(stampPattern)) {
      end = match.index + match[0].length;
      // Responses say everything again at their end.
      if (delaysMs.length === request.chunks) continue;
      now ??= stampNanos();
      if (firstMs === 0) firstMs = performance.now() - startMs;
      delaysMs.push(Number(now - BigInt(match[1] ?? "0")) / 1e6);
      count += 1;
    }
    if (count > 0) parts.onChunks?.(count);
    whole ||= plain.includes(request.format.end);
    tail = plain.slice(Math.max(end, plain.length - keptText));
  }

  const startMs = performance.now();
  return new Promise((resolve, reject) => {
    const socket = parts.connections.take(url);
    function finish(problem: string | null): void {
      socket.off("data", read).off("close", closed).off("error", failed);
      if (problem !== null || /\r\nconnection: *close/i.test(head)) socket.destroy();
      else parts.connections.giveBack(url, socket);
      if (problem === null) resolve({ firstMs, delaysMs });
      else reject(new Error(`${arm.name} ${problem}, ${String(bytes)} bytes: ${tail}`));
    }
    function ended(): void {
      const status = /^HTTP\/1\.1 (\d+)/.exec(head)?.[1] ?? "no status";
      if (!parts.measure) whole = hasWholeEnding(tail.replace(chunkFraming, ""), request.format);
      const missing = parts.measure && delaysMs.length !== request.chunks;
      if (status !== "200") finish(`answered ${status}`);
      else if (!whole) finish("left out the end");
      else if (missing) finish(`passed on ${String(delaysMs.length)} chunks`);
      else finish(null);
    }
    function read(data: Buffer): void {
      const wanted = parts.measure || framing === null ? data : data.subarray(-endingCharacters);
      let text = wanted.toString("latin1");
      bytes += data.byteLength;
      if (framing === null) {
        head += text;
        const end = head.indexOf("\r\n\r\n");
        if (end < 0) return;
        // Of the empty line one half stays, as the first chunk's framing begins with it.
        text = head.slice(end + 2);
        head = head.slice(0, end);
        framing = readFraming(head);
        bytes = text.length - 2;
      }
      readContents(text);
      lastBytes = (lastBytes + text).slice(-lastChunk.length);
      if (framing.kind === "chunked" && lastBytes === lastChunk) ended();
      else if (framing.kind === "length" && bytes >= framing.bytes) ended();
    }
    const closed = (): void => (framing?.kind === "closed" ? ended() : finish("broke off"));
    const failed = (error: Error): void => finish(`broke off (${error.message})`);
    socket.on("data", read).on("close", closed).on("error", failed);
    socket.cork();
    socket.write(requestHead(arm, url, request.body.byteLength));
    socket.write(request.body);
    socket.uncork();
  });
}

/** Whether it is the end of an answer, and that of the model: what a gateway cut at a limit has fewer chunks than it counts for. */
function hasWholeEnding(text: string, { end, finish }: BenchFormat): boolean {
  return text.includes(end) && text.includes(finish);
}

function requestHead(arm: Arm, url: URL, length: number): string {
  const headers = Object.entries({
    host: url.host,
    "content-type": "application/json",
    "content-length": String(length),
    ...(arm.key === "" ? {} : { authorization: `Bearer ${arm.key}` }),
    ...arm.headers,
  });
  const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`);
  return `POST ${url.pathname} HTTP/1.1\r\n${lines.join("")}\r\n`;
}

function readFraming(head: string): Framing {
  const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1];
  if (length !== undefined) return { kind: "length", bytes: Number(length) };
  return { kind: /\r\ntransfer-encoding: *chunked/i.test(head) ? "chunked" : "closed" };
}

/** The value below which `share` of the sample lies. */
export function percentile(sample: readonly number[], share: number): number {
  const sorted = sample.toSorted((left, right) => left - right);
  return sorted[Math.min(Math.floor(sorted.length * share), sorted.length - 1)] ?? Number.NaN;
}

/** Of an even number the mean of the two in the middle. */
export function median(sample: readonly number[]): number {
  const sorted = sample.toSorted((left, right) => left - right);
  const [low, high] = [sorted[(sorted.length - 1) >> 1], sorted[sorted.length >> 1]];
  return ((low ?? Number.NaN) + (high ?? Number.NaN)) / 2;
}
