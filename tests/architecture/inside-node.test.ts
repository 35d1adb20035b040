import { execFile } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { promisify } from "node:util";
import { Worker } from "node:worker_threads";
import { expect, test } from "vitest";
import { freePiece } from "../../src/http/free-piece.ts";
import { limits } from "../../src/limits.ts";

// What the sources rely on beside what Node and npm promise: these fail when one of them changes. The chunks of an event
// stream have theirs in tests/http/event-stream.test.ts, the send buffers in tests/http/send-buffer.test.ts.

const root = new URL("../../", import.meta.url);

test("serve: V8 reads how the space for young objects grows each time, also when it is told so late", async () => {
  const program = `
    import { getHeapSpaceStatistics, setFlagsFromString } from "node:v8";
    setFlagsFromString("--semi-space-growth-factor=1");
    const kept = [];
    for (let round = 0; round < 40; round += 1) {
      if (round === 10 && process.argv[1] === "again") setFlagsFromString("--semi-space-growth-factor=2");
      kept.push(Array.from({ length: 20_000 }, (_, index) => ({ index, inner: [index] })));
      if (kept.length > 4) kept.shift();
    }
    console.log(getHeapSpaceStatistics().find((space) => space.space_name === "new_space").space_size);`;
  const sizeOf = async (word: string): Promise<number> => {
    const words = ["--input-type=module", "--eval", program, "--", word];
    return Number((await promisify(execFile)(process.execPath, words)).stdout);
  };
  const [told = 0, again = 0] = await Promise.all(["told", "again"].map(sizeOf));
  expect(told).toBeLessThanOrEqual(4 * 1024 * 1024);
  expect(again).toBeGreaterThan(2 * told);
});

test("threads: each says how large its space for young objects may be, and V8 keeps it to that", async () => {
  const wish = "resourceLimits: { maxYoungGenerationSizeMb: limits.threadYoungMebibytes }";
  for (const path of ["src/http/body-workers.ts", "src/ledger/sqlite/thread-line.ts"])
    expect(readFileSync(new URL(path, root), "utf8")).toContain(wish);
  const program = `
    const { getHeapSpaceStatistics } = require("node:v8");
    const kept = [];
    for (let round = 0; round < 20; round += 1) {
      kept.push(Array.from({ length: 20_000 }, (_, index) => ({ index, inner: [index] })));
      if (kept.length > 4) kept.shift();
    }
    const young = getHeapSpaceStatistics().find((space) => space.space_name === "new_space");
    require("node:worker_threads").parentPort.postMessage(young.space_size);`;
  const worker = new Worker(program, {
    eval: true,
    resourceLimits: { maxYoungGenerationSizeMb: limits.threadYoungMebibytes },
  });
  const [bytes] = (await once(worker, "message")) as [number];
  await worker.terminate();
  expect(bytes).toBeLessThanOrEqual((limits.threadYoungMebibytes * 1024 * 1024 * 2) / 3);
});

test("free-piece: Node gives each read of a request memory of its own, which can be freed by hand", async () => {
  const pieces: Buffer[] = [];
  const server = createServer((incoming, response) => {
    incoming.on("data", (piece: Buffer) => pieces.push(piece));
    incoming.on("end", () => response.end());
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const outgoing = request({ port, host: "127.0.0.1", method: "POST" });
  outgoing.end(Buffer.alloc(1024 * 1024));
  const [response] = (await once(outgoing, "response")) as [NodeJS.ReadableStream];
  response.resume();
  await once(response, "end");
  server.close();
  const bytes = pieces.reduce((sum, piece) => sum + piece.byteLength, 0);
  expect(bytes).toBe(1024 * 1024);
  for (const piece of pieces) freePiece(piece);
  // The pieces of one read share its memory, so that freeing one frees them all; none is from a pool.
  expect(pieces.reduce((sum, piece) => sum + piece.byteLength, 0)).toBeLessThan(bytes / 8);
});

test("package.json: the GPU builds that node-llama-cpp wishes for are all aliased to a build that no x64 takes", () => {
  interface Manifest {
    readonly optionalDependencies: Readonly<Record<string, string>>;
  }
  const read = (path: string): Manifest =>
    JSON.parse(readFileSync(new URL(path, root), "utf8")) as Manifest;
  const ours = read("package.json").optionalDependencies;
  const wished = read("node_modules/node-llama-cpp/package.json").optionalDependencies;
  const unwanted = Object.keys(wished).filter((name) => /cuda|vulkan|armv7l/u.test(name));
  expect(unwanted.length).toBeGreaterThan(5);
  const version = ours["node-llama-cpp"] ?? "";
  const alias = `npm:@node-llama-cpp/linux-riscv64@${version}`;
  expect(ours).toEqual({
    "node-llama-cpp": version,
    ...Object.fromEntries(unwanted.map((name) => [name, alias])),
  });
});
