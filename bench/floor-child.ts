import { createServer } from "node:http";
import { type AddressInfo, connect, createServer as createRawServer } from "node:net";
import { Agent } from "undici";

// What Node itself takes of a chunk: the smallest program that passes an answer on as it comes, with node:http and
// undici. With `raw` the connections are joined without HTTP, which tells how much of it HTTP is.

const [origin = "", kind = "http"] = process.argv.slice(2);
const { hostname, port } = new URL(origin);
const agent = new Agent({ pipelining: 1, headersTimeout: 0, bodyTimeout: 0 });

const overHttp = createServer((request, response) => {
  const body: Buffer[] = [];
  request.on("data", (piece: Buffer) => void body.push(piece));
  request.on("end", () => {
    const { method = "GET", url: path = "/" } = request;
    const headers = { "content-type": "application/json" };
    agent.dispatch(
      { origin, path, method, headers, body: Buffer.concat(body) },
      {
        onRequestStart: (controller) => void response.on("drain", () => controller.resume()),
        onResponseStart: (_controller, status, answered) =>
          void response.writeHead(status, { "content-type": String(answered["content-type"]) }),
        onResponseData: (controller, chunk) => {
          if (!response.write(chunk)) controller.pause();
        },
        onResponseEnd: () => void response.end(),
        onResponseError: () => void response.destroy(),
      },
    );
  });
});

const raw = createRawServer({ noDelay: true }, (client) => {
  const upstream = connect({ host: hostname, port: Number(port), noDelay: true });
  client.pipe(upstream).pipe(client);
  client.on("error", () => upstream.destroy());
  upstream.on("error", () => client.destroy());
});

// Its connections rest between two measurements, as those of the other arms do.
overHttp.keepAliveTimeout = 0;
const server = kind === "raw" ? raw : overHttp;
server.listen(0, "127.0.0.1", () => {
  process.stdout.write(`${String((server.address() as AddressInfo).port)}\n`);
});
// Ends with whoever started it.
process.stdin.resume().on("end", () => process.exit(0));
