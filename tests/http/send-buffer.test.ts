import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";
import { describe, expect, it } from "vitest";
import { boundSendBuffers } from "../../src/http/send-buffer.ts";
import { boundReceiveBuffer } from "../doubles/receive-buffer.ts";

const kibibyte = 1024;

describe("what the kernel takes for a reader that does not read", () => {
  it("is bounded for every connection that a server accepts, and only there", async () => {
    const [bounded, unbounded] = [await listen(), await listen()];
    expect(boundSendBuffers(bounded, 64 * kibibyte)).toBe(true);
    const held = [await openPouring(bounded), await openPouring(bounded)];
    const free = await openPouring(unbounded);
    for (const each of held) await each.until(32 * kibibyte);
    // The same machine takes this of the other: what was not taken of these by then is the bound's doing.
    await free.until(1024 * kibibyte);
    for (const each of held) expect(each.taken()).toBeLessThan(384 * kibibyte);
    for (const each of [...held, free]) each.close();
    for (const server of [bounded, unbounded]) server.close();
  });

  it("stays as it is, and nothing breaks, where there is no descriptor", () => {
    expect(boundSendBuffers(createServer(), 64 * kibibyte)).toBe(false);
  });
});

async function listen(): Promise<Server> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return server;
}

/** A connection of the server that is written to as fast as the kernel takes it, while the other side reads nothing. */
async function openPouring(server: Server) {
  const accepted = once(server, "connection") as Promise<[Socket]>;
  const { port } = server.address() as { readonly port: number };
  const reader = connect(port, "127.0.0.1");
  reader.pause();
  await once(reader, "connect");
  boundReceiveBuffer(reader, 16 * kibibyte);
  const [socket] = await accepted;
  const piece = new Uint8Array(16 * kibibyte);
  let taken = -piece.byteLength;
  let closed = false;
  function pour(): void {
    taken += piece.byteLength;
    if (!closed && taken < 8 * 1024 * kibibyte) socket.write(piece, pour);
  }
  pour();
  return {
    taken: () => taken,
    until: (bytes: number) => expect.poll(() => taken).toBeGreaterThan(bytes),
    close(): void {
      closed = true;
      socket.destroy();
      reader.destroy();
    },
  };
}
