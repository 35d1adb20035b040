import type { JsonRecord } from "../cases/files.ts";

/** A `fetch` that answers without a network. */
export interface FakeServer {
  readonly fetch: typeof globalThis.fetch;
}

/** What a fake server answers: frames of a stream, or a body. */
export type FakeAnswer =
  | { readonly frames: string }
  | { readonly body: unknown; readonly status?: number };

/** Answers every request with one stream, cut into pieces of so many bytes. */
export function serveStream(frames: string, pieceBytes = 7): FakeServer {
  return serve(() => streamResponse(frames, pieceBytes));
}

/** Answers every request with one JSON body. */
export function serveBody(body: unknown): FakeServer {
  return serve(() => Response.json(body));
}

/** Answers each request by what it says. */
export function serveAnswers(answer: (body: JsonRecord) => FakeAnswer): FakeServer {
  return serve((body) => {
    const answered = answer(body);
    return "frames" in answered
      ? streamResponse(answered.frames, 64)
      : Response.json(answered.body, { status: answered.status ?? 200 });
  });
}

function streamResponse(frames: string, pieceBytes: number): Response {
  const bytes = new TextEncoder().encode(frames);
  let position = 0;
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      if (position >= bytes.length) return controller.close();
      controller.enqueue(bytes.slice(position, position + pieceBytes));
      position += pieceBytes;
    },
  });
  return new Response(body, { headers: { "content-type": "text/event-stream; charset=utf-8" } });
}

function serve(answer: (body: JsonRecord) => Response): FakeServer {
  return {
    fetch: async (input, init) => {
      // Vendors' SDKs send JSON objects; the tests look at single members of them.
      const body = (await new Request(input, init).json()) as JsonRecord;
      return answer(body);
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

/** Settings of a vendor's client that has nothing to wait for. */
export const noRetries = { apiKey: "key", maxRetries: 0 } as const;
