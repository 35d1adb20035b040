import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { type MockOrder, stampDigits, stampNanos } from "./wire.ts";

// A deployment that does nothing but send chunks of the usual size, each with the time at which it left.

const head =
  '{"id":"chatcmpl-0123456789abcdef","object":"chat.completion.chunk","created":1760000000,"model":"mock",';
const chunk = (delta: string, finish: string): string =>
  `data: ${head}"choices":[{"index":0,"delta":${delta},"logprobs":null,"finish_reason":${finish}}]}\n\n`;
const usage = (tokens: number): string =>
  `data: ${head}"choices":[],"usage":{"prompt_tokens":16,"completion_tokens":${String(tokens)},"total_tokens":${String(tokens + 16)}}}\n\n`;
const role = chunk('{"role":"assistant","content":""}', "null");
const [before = "", after = ""] = chunk('{"content":"<|"}', "null").split("|");
/** The last digits of a stamp tell the chunks of one write apart. */
const ordinalDigits = 3;

/** A chunk without the first digits of its stamp, in the framing of HTTP. */
interface Pattern {
  readonly before: string;
  readonly after: string;
}

/** Words are of all lengths, as a model's are. */
const patterns: readonly Pattern[] = Array.from({ length: 10 ** ordinalDigits }, (_, at) => {
  const word = "internationally".slice(0, (at * 7) % 13);
  const rest = `${String(at).padStart(ordinalDigits, "0")}> ${word}${after}`;
  const bytes = before.length + stampDigits - ordinalDigits + rest.length;
  return { before: `${bytes.toString(16)}\r\n${before}`, after: `${rest}\r\n` };
});
let at = 0;

/** So many chunks that leave now, each an HTTP chunk of its own, as engines send them however many go in one write. */
function stamped(count: number): string {
  const stamp = stampNanos().toString().padStart(stampDigits, "0").slice(0, -ordinalDigits);
  let text = "";
  for (let sent = 0; sent < count; sent += 1) {
    at = (at + 1) % patterns.length;
    const pattern = patterns[at];
    text += `${pattern?.before ?? ""}${stamp}${pattern?.after ?? ""}`;
  }
  return text;
}

/** Chunks of one write in a burst: engines under load send several at once. */
const burstChunks = 32;
/** Of a burst in one turn of the event loop, some 64 KiB: a deployment serves its other answers in between. */
const burstTurnChunks = 256;

const server = createServer((request, response) => {
  if (request.method === "GET") {
    request.resume();
    response.setHeader("content-type", "application/json");
    response.end(
      '{"object":"list","data":[{"id":"mock","object":"model","owned_by":"vllm","max_model_len":131072}]}',
    );
    return;
  }
  const parts: Buffer[] = [];
  request.on("data", (part: Buffer) => void parts.push(part));
  request.on("end", () => answer(orderOf(Buffer.concat(parts).toString()), response));
});

/** The order is the last message; what comes before it is ballast. */
function orderOf(body: string): MockOrder {
  type Content = string | { text: string }[];
  const { messages = [] } = JSON.parse(body) as { messages?: { content: Content }[] };
  const content = messages.at(-1)?.content ?? '{"chunks":0,"intervalMs":0}';
  return JSON.parse(typeof content === "string" ? content : (content[0]?.text ?? "")) as MockOrder;
}

function answer(order: MockOrder, response: ServerResponse): void {
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.flushHeaders();
  // What is framed by hand goes past the response, which would frame a write as one chunk.
  const { socket } = response;
  if (socket === null) return;
  socket.write(`${role.length.toString(16)}\r\n${role}\r\n`);
  if (order.intervalMs > 0) pace(order, response, socket);
  else burst(order, response, socket);
}

function end(order: MockOrder, response: ServerResponse): void {
  response.end(`${chunk("{}", '"stop"')}${usage(order.chunks)}data: [DONE]\n\n`);
}

function pace(order: MockOrder, response: ServerResponse, socket: Socket): void {
  let sent = 0;
  const startMs = performance.now();
  const timer = setInterval(() => {
    // A late timer catches up, so that every arm gets the same number of chunks a second.
    const due = Math.min(
      order.chunks,
      Math.floor((performance.now() - startMs) / order.intervalMs),
    );
    for (; sent < due; sent += 1) socket.write(stamped(1));
    if (sent < order.chunks && !response.destroyed) return;
    clearInterval(timer);
    end(order, response);
  }, order.intervalMs);
}

function burst(order: MockOrder, response: ServerResponse, socket: Socket): void {
  let sent = 0;
  const { chunks, writeBytes } = order;
  const atOnce =
    writeBytes === undefined
      ? burstChunks
      : Math.max(Math.round(writeBytes / stamped(1).length), 1);
  const more = (): void => {
    const most = sent + burstTurnChunks;
    while (sent < chunks && !response.destroyed) {
      if (sent >= most) {
        setImmediate(more);
        return;
      }
      const count = Math.min(atOnce, chunks - sent);
      sent += count;
      if (!socket.write(stamped(count))) {
        socket.once("drain", more);
        return;
      }
    }
    end(order, response);
  };
  more();
}

server.keepAliveTimeout = 0;
server.listen(0, "127.0.0.1", () => {
  process.stdout.write(`${String((server.address() as AddressInfo).port)}\n`);
});
// Ends with whoever started it.
process.stdin.resume().on("end", () => process.exit(0));
