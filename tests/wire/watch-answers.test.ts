import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { Worker } from "node:worker_threads";
import { describe, expect, it } from "vitest";
import { formats, post, startService } from "../service/start-service.ts";
import {
  countInspectedAnswers,
  ensureNoWireProblems,
  reportWireProblem,
  takeWireProblems,
} from "./watch-answers.ts";

const planted = {
  chat: '{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"m","choices":[]}',
  delta:
    'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}\n\n',
  done: "data: [DONE]\n\n",
  renamed: 'event: ping\ndata: {"type":"ping","sort":"ping"}\n\n',
} as const;

/** What claims to be the service, in this process, and says something else. */
async function askPretender(
  listener: RequestListener,
  path: string,
  body: unknown = {},
): Promise<readonly string[]> {
  const server = createServer((request, response) => {
    response.setHeader("x-request-id", "req_1");
    request.resume().once("end", () => listener(request, response));
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  try {
    const { port } = server.address() as AddressInfo;
    await post(`http://127.0.0.1:${String(port)}${path}`, body)
      .then((response) => response.text())
      .catch(() => "");
    return takeWireProblems();
  } finally {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
}

const answering =
  (type: string, ...pieces: readonly string[]): RequestListener =>
  (_request, response) => {
    response.setHeader("content-type", type);
    for (const piece of pieces) response.write(piece);
    response.end();
  };

describe("what a service of a test writes", () => {
  it("is looked at, every answer of it, without being asked to", async () => {
    await using service = await startService();
    const before = countInspectedAnswers();
    for (const { path, body } of formats) {
      for (const stream of [true, false]) {
        expect(await (await service.post(path, { ...body, stream })).text()).not.toBe("");
      }
    }
    for (const path of ["/v1/models", "/account", "/healthz", "/readyz", "/metrics", "/nowhere"])
      await (
        await fetch(service.url + path, { headers: { authorization: `Bearer ${service.key}` } })
      ).text();
    expect(countInspectedAnswers() - before).toBe(12);
  });

  it("is found out for a body without usage", async () => {
    const listener = answering("application/json; charset=utf-8", planted.chat);
    expect(await askPretender(listener, "/v1/chat/completions")).toEqual([
      expect.stringMatching(
        /^POST \/v1\/chat\/completions 200: choices: .*; usage: .*received undefined: \{"id"/u,
      ),
    ]);
  });

  it("is found out for a stream without the usage that was asked for", async () => {
    const listener = answering("text/event-stream", planted.delta, planted.done);
    const asked = { stream: true, stream_options: { include_usage: true } };
    expect(await askPretender(listener, "/v1/chat/completions", { stream: true })).toEqual([]);
    expect(await askPretender(listener, "/v1/chat/completions", asked)).toEqual([
      expect.stringContaining("frame 0: usage was asked for: it is missing"),
      expect.stringContaining("no chunk with the usage asked for"),
    ]);
  });

  it("is found out for a frame with a renamed field, one that is no frame, and the end", async () => {
    const listener = answering("text/event-stream", planted.renamed, "event: x\n", "\n", "data: ");
    expect(await askPretender(listener, "/v1/messages")).toEqual([
      expect.stringMatching(/frame 0: : Unrecognized key: "sort": ping \{"type"/u),
      expect.stringContaining("a frame of an unknown shape"),
      expect.stringContaining("it ends in the middle of a frame: data: "),
    ]);
  });

  it("is found out for an error in the other shape, and for what no schema knows", async () => {
    const listener: RequestListener = (_request, response) => {
      response.setHeader("content-type", "application/json");
      response.statusCode = 400;
      response.end('{"type":"error","error":{"type":"api_error","message":"m"}}');
    };
    expect(await askPretender(listener, "/v1/responses")).toHaveLength(1);
    expect(await askPretender(answering("application/json", "{}"), "/v1/files")).toEqual([
      "POST /v1/files 200: a body that no schema knows",
    ]);
    expect(await askPretender(answering("text/html", "<p>"), "/v1/responses")).toEqual([
      "POST /v1/responses 200: a content-type that is not known: text/html",
    ]);
  });

  it("fails the test in which it is found out, once", async () => {
    const fail = async (): Promise<never> => {
      const problems = await askPretender(answering("application/json", "{}"), "/v1/files");
      for (let count = 0; count < 12; count += 1) problems.forEach(reportWireProblem);
      ensureNoWireProblems();
      throw new Error("nothing was found");
    };
    await expect(fail()).rejects.toThrow(
      /^what the service wrote is not what it may write:\n(?:POST \/v1\/files 200: .*\n){10}and 2 more$/u,
    );
    expect(takeWireProblems()).toEqual([]);
  });

  it("may break off, and is looked at until then", async () => {
    const cutAfter =
      (...pieces: readonly string[]): RequestListener =>
      (_request, response) => {
        response.setHeader("content-type", "text/event-stream");
        for (const piece of pieces) response.write(piece);
        response.destroy();
      };
    const path = "/v1/chat/completions";
    expect(await askPretender(cutAfter(planted.delta, "data: {"), path)).toEqual([]);
    expect(await askPretender(cutAfter(planted.delta, planted.renamed), path)).toHaveLength(1);
  });
});

describe("what a service in another process sends", () => {
  it("is looked at where fetch receives it", async () => {
    // Another thread has channels of its own, as a process has.
    const worker = new Worker(
      `const { createServer } = require("node:http");
       const { parentPort, workerData } = require("node:worker_threads");
       const server = createServer((request, response) => {
         response.setHeader("x-request-id", "req_2");
         response.setHeader("content-type", request.headers.accept);
         response.end(workerData[request.headers["x-planted"]]);
       });
       server.listen(0, "127.0.0.1", () => parentPort.postMessage(server.address().port));`,
      { eval: true, workerData: planted },
    );
    const [port] = (await once(worker, "message")) as [number];
    const ask = async (path: string, type: string, what: string): Promise<readonly string[]> => {
      const headers = { accept: type, "x-planted": what };
      await (await post(`http://127.0.0.1:${String(port)}${path}`, {}, { headers })).text();
      return takeWireProblems();
    };
    try {
      expect(await ask("/v1/chat/completions", "application/json", "chat")).toEqual([
        expect.stringMatching(/^POST \/v1\/chat\/completions 200: .*usage: .*received undefined/u),
      ]);
      expect(await ask("/v1/messages?beta=true", "text/event-stream", "renamed")).toEqual([
        expect.stringContaining('frame 0: : Unrecognized key: "sort"'),
        expect.stringContaining("the stream ends without its last frame"),
      ]);
    } finally {
      await worker.terminate();
    }
  });
});
