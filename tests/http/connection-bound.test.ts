import { once, type EventEmitter } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";
import { expect, it, vi } from "vitest";
import { boundConnections, connectionsMax } from "../../src/http/connection-bound.ts";

it.each([
  // Few descriptors: half of what is left beside the reserve; many: all but one a generation.
  [256, 1_000, 64],
  [1_024, 1_000, 448],
  [4_096, 1_000, 2_968],
  [20_000, 1_000, 18_872],
  [1_024, 10, 886],
  [100, 1_000, 1],
  [Infinity, 1_000, Infinity],
])("%d descriptors and %d generations leave %d connections", (descriptors, generations, most) => {
  expect(connectionsMax(descriptors, generations)).toBe(most);
});

it("a server is bounded by the descriptors of its process, and says once a minute that it is full", async () => {
  const server = createServer();
  const told: number[] = [];
  let nowMs = 0;
  boundConnections(server, 1_000, { monotonicMs: () => nowMs, onFull: (most) => told.push(most) });
  expect(server.maxConnections).toBeGreaterThan(0);
  server.maxConnections = 1;
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const first = connect(port, "127.0.0.1");
  await once(server, "connection");
  const second = connect(port, "127.0.0.1").on("error", () => undefined);
  await once(second, "close");
  expect(told).toHaveLength(1);
  const emitter: EventEmitter = server;
  nowMs = 59_999;
  emitter.emit("drop");
  expect(told).toHaveLength(1);
  nowMs = 60_000;
  emitter.emit("drop");
  expect(told).toHaveLength(2);
  first.destroy();
  server.close();
});

it("the descriptors are counted without asking the resolver who is connected", () => {
  const read = vi.spyOn(process.report, "getReport");
  const server = createServer();
  boundConnections(server, 1_000, { monotonicMs: () => 0, onFull: () => undefined });
  expect(read.mock.results).toHaveLength(1);
  const [counted] = read.mock.results.map(({ value }) => value as Report);
  read.mockRestore();
  expect(counted?.header).not.toHaveProperty("networkInterfaces");
  expect((process.report.getReport() as Report).header).toHaveProperty("networkInterfaces");
  const { soft } = counted?.userLimits.open_files ?? { soft: Number.NaN };
  const descriptors = soft === "unlimited" ? Infinity : soft;
  expect(server.maxConnections).toBe(connectionsMax(descriptors, 1_000));
});

interface Report {
  readonly header: object;
  readonly userLimits: { readonly open_files: { readonly soft: number | "unlimited" } };
}
