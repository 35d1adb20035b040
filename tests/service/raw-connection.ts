import { once } from "node:events";
import { connect, type Socket } from "node:net";
import type { PlainAnswer } from "./refusals.ts";

/** A TCP connection that a test writes by hand. */
export interface RawConnection extends Disposable {
  readonly socket: Socket;
  /** Everything that came so far, a character a byte. */
  readonly text: string;
  readonly closed: Promise<void>;
  write(bytes: string | Uint8Array): void;
  /** Resolves as soon as the pattern is there; rejects when the connection ends before. */
  waitFor(pattern: RegExp): Promise<string>;
  /** The next whole answer with a content-length or in chunks; it is taken off. */
  answer(): Promise<PlainAnswer>;
}

/** Connects to a service. */
export async function openRawConnection(url: string): Promise<RawConnection> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  await once(socket, "connect");
  let text = "";
  let over = false;
  let changed = Promise.withResolvers<void>();
  const notify = (): void => {
    changed.resolve();
    changed = Promise.withResolvers();
  };
  socket.on("data", (chunk: Buffer) => {
    text += chunk.toString("latin1");
    notify();
  });
  socket.on("error", () => undefined);
  const closed = new Promise<void>((resolve) => {
    socket.on("close", () => {
      over = true;
      notify();
      resolve();
    });
  });

  async function until<Found>(find: () => Found | null): Promise<Found> {
    for (;;) {
      const found = find();
      if (found !== null) return found;
      if (over) throw new Error(`the connection ended after: ${text.slice(-500)}`);
      await changed.promise;
    }
  }

  return {
    socket,
    get text() {
      return text;
    },
    closed,
    write: (bytes) => void socket.write(bytes),
    waitFor: (pattern) => until(() => pattern.exec(text)?.[0] ?? null),
    answer: () =>
      until(() => {
        const found = takeAnswer(text);
        if (found === null) return null;
        text = text.slice(found.characters);
        return found.answer;
      }),
    [Symbol.dispose]: () => void socket.destroy(),
  };
}

/** The head of a request, ready to write. */
export function requestHead(
  line: string,
  headers: Readonly<Record<string, string | number>> = {},
): string {
  const lines = Object.entries({ host: "service.test", ...headers }).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  );
  return `${line} HTTP/1.1\r\n${lines.join("")}\r\n`;
}

/** A whole POST of a JSON text. */
export function wholePost(
  path: string,
  body: string,
  headers: Readonly<Record<string, string>>,
): string {
  const length = Buffer.byteLength(body);
  const all = { "content-type": "application/json", "content-length": length, ...headers };
  return requestHead(`POST ${path}`, all) + body;
}

function takeAnswer(
  text: string,
): { readonly answer: PlainAnswer; readonly characters: number } | null {
  const headEnd = text.indexOf("\r\n\r\n");
  if (headEnd === -1) return null;
  const [statusLine = "", ...lines] = text.slice(0, headEnd).split("\r\n");
  const headers = new Headers(
    lines.map((line): [string, string] => {
      const colon = line.indexOf(":");
      return [line.slice(0, colon), line.slice(colon + 1).trim()];
    }),
  );
  const status = Number(statusLine.split(" ")[1]);
  const from = headEnd + 4;
  const chunked = headers.get("transfer-encoding") === "chunked";
  const body = chunked
    ? takeChunks(text, from)
    : takeLength(text, from, Number(headers.get("content-length") ?? 0));
  if (body === null) return null;
  return { answer: { status, headers, text: body.text }, characters: body.end };
}

interface TakenBody {
  readonly text: string;
  readonly end: number;
}

function takeLength(text: string, from: number, length: number): TakenBody | null {
  const end = from + length;
  return text.length < end ? null : { text: utf8(text.slice(from, end)), end };
}

function takeChunks(text: string, from: number): TakenBody | null {
  let whole = "";
  for (let at = from; ;) {
    const lineEnd = text.indexOf("\r\n", at);
    if (lineEnd === -1) return null;
    const length = Number.parseInt(text.slice(at, lineEnd), 16);
    at = lineEnd + 2 + length + 2;
    if (text.length < at) return null;
    if (length === 0) return { text: utf8(whole), end: at };
    whole += text.slice(lineEnd + 2, at - 2);
  }
}

function utf8(bytes: string): string {
  return Buffer.from(bytes, "latin1").toString("utf8");
}
