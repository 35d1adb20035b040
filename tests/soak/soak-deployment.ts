import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { finish, frame } from "../doubles/scripted-deployment.ts";
import type { SoakOrder } from "./orders.ts";

/** A deployment that does what each request's own text orders, for as many requests as come. */
export async function startSoakDeployment(): Promise<{ readonly url: string } & AsyncDisposable> {
  const server = createServer((request, response) => {
    if (request.method === "GET") {
      request.resume();
      response.setHeader("content-type", "application/json");
      response.end('{"data":[{"id":"soak","owned_by":"vllm","max_model_len":131072}]}');
      return;
    }
    let body = "";
    request.setEncoding("utf8").on("data", (chunk: string) => (body += chunk));
    request.on("end", () => void answer(orderOf(body), response));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${String(port)}`,
    async [Symbol.asyncDispose]() {
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

function orderOf(body: string): SoakOrder {
  const { messages } = JSON.parse(body) as { messages: { content: string }[] };
  return JSON.parse(messages.at(-1)?.content ?? "") as SoakOrder;
}

async function answer(order: SoakOrder, response: ServerResponse): Promise<void> {
  if (order.kind === "refuse") {
    response.writeHead(400, { "content-type": "application/json" });
    response.end('{"error":{"message":"refused by order","type":"invalid_request_error"}}');
    return;
  }
  response.writeHead(200, { "content-type": "text/event-stream" });
  for (let piece = 0; piece < order.pieces && !response.destroyed; piece += 1) {
    response.write(frame({ content: `${String(piece)},` }));
    if (order.pauseMs > 0) await sleep(order.pauseMs);
  }
  // Silent from here on: the client has all that it will pay for, and leaves.
  if (order.kind === "leave") return;
  if (order.kind === "fail") {
    response.end('data: {"error":{"message":"failed by order","code":500}}\n\n');
    return;
  }
  const usage = { promptTokens: order.inputTokens, completionTokens: order.pieces };
  const end = finish("stop", usage);
  if (end.type === "write") response.end(end.bytes);
}
