import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** What a fake host of models does. Fields are read at every request, so that a test may change them. */
export interface FakeModelHostBehaviour {
  /** Bytes of each file, by path. */
  files: Record<string, Buffer>;
  /** Where Hugging Face has it: in the answer to HEAD. */
  linkedEtag: string | null;
  /** Sends bodies in steps with a pause between them. */
  slow: boolean;
  /** Answers everything with this. */
  status: number | null;
  authorization: string | null;
}

/** One request for a file. */
export interface FileRequest {
  readonly method: string;
  readonly path: string;
  /** First byte that was asked for; null without a range. */
  readonly from: number | null;
  /** How many bytes were asked for; 0 for HEAD. */
  readonly bytes: number;
  readonly authorization: string | null;
}

/** A host of models on the loopback interface. */
export interface FakeModelHost extends AsyncDisposable {
  readonly url: string;
  readonly behaviour: FakeModelHostBehaviour;
  readonly requests: FileRequest[];
}

const stepBytes = 512 * 1024;
const stepMs = 10;

/** Opens it on a free port. */
export async function openFakeModelHost(
  given: Partial<FakeModelHostBehaviour>,
): Promise<FakeModelHost> {
  const behaviour: FakeModelHostBehaviour = {
    files: {},
    linkedEtag: null,
    slow: false,
    status: null,
    authorization: null,
    ...given,
  };
  const requests: FileRequest[] = [];
  const server = createServer((request, response) => {
    const path = decodeURIComponent(new URL(request.url ?? "/", "http://host").pathname);
    const [, from, to] = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? "") ?? [];
    const size = behaviour.files[path]?.length ?? 0;
    requests.push({
      method: request.method ?? "",
      path,
      from: from === undefined ? null : Number(from),
      bytes: request.method === "HEAD" ? 0 : (Number(to ?? "") || size - 1) - Number(from ?? 0) + 1,
      authorization: request.headers.authorization ?? null,
    });
    answer({ request, response, behaviour, file: behaviour.files[path] });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${String(port)}`,
    behaviour,
    requests,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => {
        server.close(resolve);
      });
    },
  };
}

interface Answering {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly behaviour: FakeModelHostBehaviour;
  readonly file: Buffer | undefined;
}

function answer({ behaviour, file, request, response }: Answering): void {
  if (behaviour.status !== null) {
    response.writeHead(behaviour.status).end();
    return;
  }
  const { authorization, linkedEtag } = behaviour;
  if (authorization !== null && request.headers.authorization !== authorization) {
    response.writeHead(401).end();
    return;
  }
  if (file === undefined) {
    response.writeHead(404).end();
    return;
  }
  const [, first, last] = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? "") ?? [];
  const from = Number(first ?? 0);
  const to = last === undefined || last === "" ? file.length - 1 : Number(last);
  const body = file.subarray(from, to + 1);
  response.writeHead(first === undefined ? 200 : 206, {
    "accept-ranges": "bytes",
    "content-length": body.length,
    ...(first !== undefined && { "content-range": `bytes ${from}-${to}/${file.length}` }),
    ...(linkedEtag !== null && request.method === "HEAD" && { "x-linked-etag": linkedEtag }),
  });
  if (request.method === "HEAD") response.end();
  else if (behaviour.slow) sendSlowly(response, body);
  else response.end(body);
}

function sendSlowly(response: ServerResponse, body: Buffer): void {
  let at = 0;
  const timer = setInterval(() => {
    if (at < body.length && !response.destroyed) response.write(body.subarray(at, at + stepBytes));
    else {
      clearInterval(timer);
      response.end();
    }
    at += stepBytes;
  }, stepMs);
}
