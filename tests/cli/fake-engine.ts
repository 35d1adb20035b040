import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** An engine that speaks Chat Completions over real HTTP. */
export interface FakeEngine extends AsyncDisposable {
  readonly url: string;
  /** Bodies of the generations that it was asked for. */
  readonly bodies: readonly string[];
  /** Lets answers that were held back end. */
  release(): void;
}

/** How the engine answers. */
export interface FakeEngineSettings {
  readonly contextTokens?: number;
  readonly words?: string;
  /** The answer's end waits until `release`. */
  readonly hold?: boolean;
  /** Status of every generation; 200 where it is left out. */
  readonly status?: number;
}

/** Opens an engine on loopback that answers every generation with the same words. */
export async function openFakeEngine(settings: FakeEngineSettings = {}): Promise<FakeEngine> {
  const bodies: string[] = [];
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  const server = createServer((request, response) => {
    void answer(request, response, {
      ...settings,
      bodies,
      released: settings.hold === true ? released : Promise.resolve(),
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${String(port)}`,
    bodies,
    release,
    [Symbol.asyncDispose]: () =>
      new Promise((resolve) => {
        release();
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

interface Answering extends FakeEngineSettings {
  readonly bodies: string[];
  readonly released: Promise<void>;
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  answering: Answering,
): Promise<void> {
  if (request.url === "/v1/models") {
    const model = { id: "tiny", owned_by: "vllm", max_model_len: answering.contextTokens ?? 8192 };
    response.end(JSON.stringify({ object: "list", data: [model] }));
    return;
  }
  if (request.url !== "/v1/chat/completions") {
    response.writeHead(404).end("{}");
    return;
  }
  let body = "";
  for await (const chunk of request) body += String(chunk);
  answering.bodies.push(body);
  if (answering.status !== undefined) {
    response.writeHead(answering.status, { "content-type": "application/json" });
    response.end(
      JSON.stringify({ error: { message: answering.words ?? "no", type: "engine_error" } }),
    );
    return;
  }
  response.writeHead(200, { "content-type": "text/event-stream" });
  const send = (choice: object, usage?: object): void => {
    const chunk = { id: "c", object: "chat.completion.chunk", model: "tiny", ...choice, usage };
    response.write(`data: ${JSON.stringify(chunk)}\n\n`);
  };
  send({ choices: [{ index: 0, delta: { content: answering.words ?? "Hello." } }] });
  await answering.released;
  send({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] });
  send({ choices: [] }, { prompt_tokens: 9, completion_tokens: 2, total_tokens: 11 });
  response.end("data: [DONE]\n\n");
}
