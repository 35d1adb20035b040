import type { JsonRecord } from "../cases/files.ts";

/** What a client sent, as the fake server saw it. */
export interface SeenRequest {
  readonly path: string;
  readonly body: JsonRecord;
}

/** A `fetch` that answers every request with one stream or one body, without a network. */
export interface FakeServer {
  readonly fetch: typeof globalThis.fetch;
  readonly seen: readonly SeenRequest[];
}

/** Answers with the frames of a stream, cut into pieces of so many bytes. */
export function serveStream(frames: string, pieceBytes = 7): FakeServer {
  const bytes = new TextEncoder().encode(frames);
  return serve(() => {
    let position = 0;
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        if (position >= bytes.length) return controller.close();
        controller.enqueue(bytes.slice(position, position + pieceBytes));
        position += pieceBytes;
      },
    });
    return new Response(body, { headers: { "content-type": "text/event-stream; charset=utf-8" } });
  });
}

/** Answers with one JSON body. */
export function serveBody(body: unknown): FakeServer {
  return serve(() => Response.json(body));
}

function serve(answer: () => Response): FakeServer {
  const seen: SeenRequest[] = [];
  return {
    seen,
    fetch: async (input, init) => {
      const request = new Request(input, init);
      // Vendors' SDKs send JSON objects; the tests look at single members of them.
      const body = (await request.json()) as JsonRecord;
      seen.push({ path: new URL(request.url).pathname, body });
      return answer();
    },
  };
}

/** A JSON value without some members, at any depth: ids, times and what an SDK adds of its own. */
export function without(value: unknown, names: readonly string[]): unknown {
  if (Array.isArray(value)) return value.map((entry) => without(entry, names));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([name, entry]) => !names.includes(name) && entry !== undefined)
      .map(([name, entry]) => [name, without(entry, names)]),
  );
}

/** A generation in which no member is named like one that the comparison leaves out. */
export const noRetries = { apiKey: "key", maxRetries: 0 } as const;
