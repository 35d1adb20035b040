import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** What a fake package index does. Fields are read at every request, so that a test may change them. */
export interface FakeIndexBehaviour {
  /** Bytes of each file, by name. */
  files: Record<string, Buffer>;
  /** HTML pages as the old protocol has them, or JSON as the new one. */
  pages: "html" | "json";
  /** Hash beside the links; null: there is none. */
  sha256: string | null;
  /** Sends no byte of a file from this one on, and does not end; null sends it whole. */
  stallAfterBytes: number | null;
  /** Answers ranges with the whole file, as simple servers do. */
  ignoresRanges: boolean;
  /** Name and password that are asked for; null: none. */
  credentials: string | null;
}

/** A package index on the loopback interface. */
export interface FakeIndex extends AsyncDisposable {
  readonly url: string;
  readonly behaviour: FakeIndexBehaviour;
  /** `range` header of every request for a file. */
  readonly fileRequests: (string | undefined)[];
  readonly pageRequests: string[];
}

/** Opens it on a free port. */
export async function openFakeIndex(behaviour: Partial<FakeIndexBehaviour>): Promise<FakeIndex> {
  const settled: FakeIndexBehaviour = {
    files: {},
    pages: "html",
    sha256: null,
    stallAfterBytes: null,
    ignoresRanges: false,
    credentials: null,
    ...behaviour,
  };
  const fileRequests: (string | undefined)[] = [];
  const pageRequests: string[] = [];
  const server = createServer((request, response) => {
    const path = request.url ?? "";
    if (settled.credentials !== null && !isAllowed(request, settled.credentials)) {
      response.writeHead(401).end();
    } else if (path.startsWith("/simple/")) {
      pageRequests.push(path);
      sendPage(response, settled);
    } else {
      if (request.method === "GET") fileRequests.push(request.headers.range);
      sendFile(response, path.slice("/files/".length), { behaviour: settled, request });
    }
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/simple`,
    behaviour: settled,
    fileRequests,
    pageRequests,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => {
        server.close(resolve);
      });
    },
  };
}

function isAllowed(request: IncomingMessage, credentials: string): boolean {
  const expected = `Basic ${Buffer.from(credentials).toString("base64")}`;
  return request.headers.authorization === expected;
}

function sendPage(response: ServerResponse, { files, pages, sha256 }: FakeIndexBehaviour): void {
  const names = Object.keys(files);
  if (pages === "json") {
    const list = names.map((filename) => ({
      filename,
      url: `../../files/${filename}`,
      hashes: sha256 === null ? {} : { sha256 },
    }));
    response.writeHead(200, { "content-type": "application/vnd.pypi.simple.v1+json" });
    response.end(JSON.stringify({ files: list }));
    return;
  }
  const fragment = sha256 === null ? "" : `#sha256=${sha256}`;
  const links = names.map((name) => `<a data-x="1" href="/files/${name}${fragment}">${name}</a>`);
  response.writeHead(200, { "content-type": "text/html" });
  response.end(`<!DOCTYPE html><html><body>${links.join("<br/>\n")}</body></html>`);
}

interface FileAnswer {
  readonly behaviour: FakeIndexBehaviour;
  readonly request: IncomingMessage;
}

function sendFile(response: ServerResponse, name: string, answer: FileAnswer): void {
  const { behaviour, request } = answer;
  const file = behaviour.files[name];
  if (file === undefined) {
    response.writeHead(404).end();
    return;
  }
  const [, first, last] = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? "") ?? [];
  const isPart = first !== undefined && !behaviour.ignoresRanges;
  const from = isPart ? Number(first) : 0;
  const to = isPart && last !== undefined && last !== "" ? Number(last) : file.length - 1;
  const body = file.subarray(from, to + 1);
  response.writeHead(isPart ? 206 : 200, {
    "content-length": body.length,
    ...(!behaviour.ignoresRanges && { "accept-ranges": "bytes" }),
    ...(isPart && {
      "content-range": `bytes ${String(from)}-${String(to)}/${String(file.length)}`,
    }),
  });
  const { stallAfterBytes } = behaviour;
  if (request.method === "HEAD") response.end();
  else if (stallAfterBytes === null || to < stallAfterBytes) response.end(body);
  else response.write(body.subarray(0, Math.max(0, stallAfterBytes - from)));
}
