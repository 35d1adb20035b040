import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Agent, request } from "undici";
import { expect, onTestFinished, test, vi } from "vitest";
import { drain } from "../../src/http/drain.ts";
import type { Exchange } from "../../src/http/exchange.ts";
import type { Service } from "../../src/http/service.ts";
import { limits } from "../../src/limits.ts";

/** A server whose drain has begun, with one exchange under way, and a connection that its client keeps. */
async function openDraining() {
  const server = createServer((_request, response) => response.end("x"));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const agent = new Agent({ connections: 1, keepAliveTimeout: 600_000 });
  const use = async (): Promise<void> => {
    const answer = await request(`http://127.0.0.1:${String(port)}/`, { dispatcher: agent });
    await answer.body.text();
  };
  await use();
  const clock = { nowMs: 0 };
  const state = { leaving: false, draining: false, closing: false, generations: new Set() };
  const service = { monotonicMs: () => clock.nowMs, state } as unknown as Service;
  const running = { record: { caller: {} }, response: {} } as unknown as Exchange;
  const exchanges = new Set([running]);
  const looks = vi.spyOn(server, "getConnections");
  const order = { withinMs: 600_000, listener: "closed" } as const;
  const draining = drain(order, { server, service, exchanges });
  onTestFinished(async () => {
    exchanges.clear();
    clock.nowMs += order.withinMs;
    await draining;
    await agent.close();
  });
  /** Until the drain has looked again, with the clock as it is now. */
  const look = async (): Promise<void> => {
    const before = looks.mock.calls.length;
    await vi.waitFor(() => expect(looks.mock.calls.length).toBeGreaterThan(before + 2));
  };
  await look();
  return { clock, state, draining, look, use, end: () => exchanges.delete(running) };
}

test("a proxy has time to use up the connection of the last answer, however long that took", async () => {
  const { clock, draining, end, look, state } = await openDraining();
  clock.nowMs += 10 * limits.drainConnectionsMs;
  await look();
  end();
  clock.nowMs += limits.drainConnectionsMs - 1;
  await look();
  expect(state.draining).toBe(false);
  clock.nowMs += 1;
  await draining;
  expect(state).toMatchObject({ leaving: true, draining: true, closing: false });
});

test("a connection that is used has its time again", async () => {
  const { clock, draining, end, look, state, use } = await openDraining();
  end();
  await look();
  for (let round = 0; round < 3; round += 1) {
    clock.nowMs += limits.drainConnectionsMs - 1;
    await use();
  }
  await look();
  expect(state.draining).toBe(false);
  clock.nowMs += limits.drainConnectionsMs;
  await draining;
});
