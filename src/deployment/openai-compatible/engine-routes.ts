import { Agent, buildConnector, type Dispatcher, request } from "undici";
import { Failure } from "../../failure.ts";
import { limits } from "../../limits.ts";
import type { Ask } from "./discovery.ts";
import type { TlsOptions } from "./tls-files.ts";
import type { PostToEngine } from "./tokenizer.ts";

/** Where an engine is, and what every request to it carries. */
export interface EngineRoutesSettings {
  readonly origin: string;
  readonly query: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly connectMs: number;
  readonly tls: () => TlsOptions;
}

/** An engine's routes beside the one of generations: what it is, which models it has, its token counts. */
export class EngineRoutes implements AsyncDisposable {
  readonly #settings: EngineRoutesSettings;
  readonly #agent: Agent;

  constructor(settings: EngineRoutesSettings) {
    this.#settings = settings;
    const { connectMs, tls } = settings;
    this.#agent = new Agent({
      headersTimeout: askMs,
      bodyTimeout: askMs,
      // Not as generations are connected: what these bodies are read into is theirs.
      connect: (options, callback) =>
        buildConnector({ timeout: connectMs, ...tls() })(options, callback),
    });
  }

  /** Asks within a time of its own, and no longer than the signal. Rejects with a Failure when there is no answer. */
  asking(signal: AbortSignal): Ask {
    return async (path, body) => {
      const over = AbortSignal.any([signal, AbortSignal.timeout(askMs)]);
      const bytes = body === undefined ? null : Buffer.from(JSON.stringify(body));
      const { status, text } = await this.#request(path, bytes, over);
      return { status, json: parsedOrNull(text) };
    };
  }

  posting(signal: AbortSignal): PostToEngine {
    return (path, body) => this.#request(path, Buffer.concat(body), signal);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#agent.destroy();
  }

  async #request(
    path: string,
    body: Buffer | null,
    signal: AbortSignal,
  ): Promise<{ readonly status: number; readonly text: string }> {
    const { headers, origin, query } = this.#settings;
    try {
      const asked = request(`${origin}${path}${query}`, {
        dispatcher: this.#agent,
        method: body === null ? "GET" : "POST",
        headers,
        body,
        signal,
      });
      // Undici looks at the signal only once it is connected.
      const answer = await orAborted(asked, signal);
      return { status: answer.statusCode, text: await readText(answer.body) };
    } catch (error) {
      throw new Failure("overloaded", "The deployment cannot be reached.", {
        retryAfterSeconds: 5,
        cause: error,
      });
    }
  }
}

async function readText(body: Dispatcher.ResponseData["body"]): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    const read = chunk as Buffer;
    bytes += read.byteLength;
    if (bytes > limits.engineAnswerBytesMax)
      throw new Error(`its answer is longer than ${String(limits.engineAnswerBytesMax)} bytes`);
    chunks.push(read);
  }
  return Buffer.concat(chunks).toString("utf8");
}

async function orAborted<Value>(promise: Promise<Value>, signal: AbortSignal): Promise<Value> {
  const aborted = Promise.withResolvers<never>();
  const onAbort = (): void => aborted.reject(signal.reason);
  signal.addEventListener("abort", onAbort, { once: true });
  if (signal.aborted) onAbort();
  try {
    return await Promise.race([promise, aborted.promise]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

const askMs = 10_000;

function parsedOrNull(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
