import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { Agent, request } from "undici";
import { describe, expect, it } from "vitest";
import { occupy } from "./occupy.ts";
import { formats, startService, type TestService } from "./start-service.ts";

/** One request over the agent's connections; whether it was answered, and whether its connection goes on. */
async function send(
  service: TestService,
  agent: Agent,
  index = 0,
): Promise<{ readonly status: number; readonly connection: string }> {
  const { body, path } = formats[index] ?? formats[0];
  const answer = await request(service.url + path, {
    method: "POST",
    dispatcher: agent,
    headers: { authorization: `Bearer ${service.key}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  await answer.body.text();
  return { status: answer.statusCode, connection: String(answer.headers["connection"]) };
}

describe("a drain with a closed listener", () => {
  it("serves what comes on open connections, one last time each, and refuses new connections", async () => {
    await using service = await startService({
      environment: { TRIBUTARY_DRAIN_SECONDS: "20", TRIBUTARY_DRAIN_LISTENER: "closed" },
    });
    const running = await occupy(service, [service.key]);
    const agents = formats.map(() => new Agent({ connections: 1 }));
    for (const agent of agents)
      expect(await send(service, agent)).toEqual({ status: 200, connection: "keep-alive" });
    let drained = false;
    const draining = service.gateway.drain().then(() => (drained = true));
    await expect.poll(() => refused(service)).toBe("ECONNREFUSED");
    for (const [index, agent] of agents.entries()) {
      expect(await send(service, agent, index)).toEqual({ status: 200, connection: "close" });
      await expect(send(service, agent)).rejects.toMatchObject({ code: "ECONNREFUSED" });
    }
    expect(drained).toBe(false);
    running.open();
    for (const answer of running.answers) expect(await answer).toContain("[DONE]");
    await draining;
    await Promise.all(agents.map((agent) => agent.close()));
    expect((await service.settledCredit()).held).toBe(0n);
    expect(service.deployment.requests).toHaveLength(1 + 2 * formats.length);
  });

  it("serves every connection that the kernel had accepted before the listener closed", async () => {
    await using service = await startService({
      environment: { TRIBUTARY_DRAIN_SECONDS: "20", TRIBUTARY_DRAIN_LISTENER: "closed" },
    });
    const { hostname, port } = new URL(service.url);
    // They are there, with their requests, before the event loop looks at the listener, which it does once a turn.
    const answers = Array.from({ length: 20 }, () => {
      const socket = connect(Number(port), hostname);
      socket.write("GET /healthz HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
      return text(socket);
    });
    const draining = service.gateway.drain();
    for (const answer of answers) expect(await answer).toMatch(/^HTTP\/1\.1 200 OK\r\n/u);
    await draining;
  });

  it("ends though a connection stays open that is not used", async () => {
    await using service = await startService({
      environment: { TRIBUTARY_DRAIN_SECONDS: "1", TRIBUTARY_DRAIN_LISTENER: "closed" },
    });
    const agent = new Agent({ connections: 1 });
    expect((await send(service, agent)).status).toBe(200);
    await service.gateway.drain();
    expect(await send(service, agent)).toMatchObject({ status: 503 });
    await agent.close();
  });
});

describe("a service that leaves", () => {
  it("is not ready any more, and serves every format as before", async () => {
    await using service = await startService();
    service.gateway.leave();
    const ready = await fetch(`${service.url}/readyz`);
    expect([ready.status, await ready.json()]).toEqual([
      503,
      { status: "not ready", reasons: { service: "shutting down" } },
    ]);
    for (const { body, path } of formats) expect((await service.post(path, body)).status).toBe(200);
    expect((await fetch(`${service.url}/healthz`)).status).toBe(200);
  });
});

async function refused(service: TestService): Promise<string | null> {
  const agent = new Agent({ connections: 1 });
  try {
    await (await request(`${service.url}/healthz`, { dispatcher: agent })).body.text();
    return null;
  } catch (error) {
    return error instanceof Error && "code" in error ? String(error.code) : String(error);
  } finally {
    await agent.close();
  }
}
