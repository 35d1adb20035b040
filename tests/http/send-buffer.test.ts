import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";
import { describe, expect, it } from "vitest";
import { boundSendBuffers } from "../../src/http/send-buffer.ts";
import { boundReceiveBuffer } from "../doubles/receive-buffer.ts";

const kibibyte = 1024;

describe("what the kernel takes for a reader that does not read", () => {
  it("is bounded for every connection that a server accepts", async () => {
    const server = await listen();
    expect(boundSendBuffers(server, 64 * kibibyte)).toBe(true);
    const taken = [await takenByKernel(server), await takenByKernel(server)];
    server.close();
    for (const bytes of taken) {
      expect(bytes).toBeGreaterThan(32 * kibibyte);
      expect(bytes).toBeLessThan(384 * kibibyte);
    }
  });

  it("is more than that where nothing was bounded, so that the bound is what is seen above", async () => {
    const server = await listen();
    const taken = await takenByKernel(server);
    server.close();
    expect(taken).toBeGreaterThan(1024 * kibibyte);
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

/** Bytes that go out of the process while the other side reads nothing. */
async function takenByKernel(server: Server): Promise<number> {
  const accepted = once(server, "connection") as Promise<[Socket]>;
  const { port } = server.address() as { readonly port: number };
  const reader = connect(port, "127.0.0.1");
  reader.pause();
  await once(reader, "connect");
  boundReceiveBuffer(reader, 16 * kibibyte);
  const [socket] = await accepted;
  const piece = new Uint8Array(16 * kibibyte);
  let taken = 0;
  // The kernel has had enough when a piece is still ours after a while in which nothing else happens.
  while (taken < 8 * 1024 * kibibyte && (await isTaken(socket, piece))) taken += piece.byteLength;
  socket.destroy();
  reader.destroy();
  return taken;
}

async function isTaken(socket: Socket, piece: Uint8Array): Promise<boolean> {
  const written = new Promise<boolean>((resolve) => {
    socket.write(piece, () => resolve(true));
  });
  const waited = new Promise<boolean>((resolve) => {
    setTimeout(() => resolve(false), 200);
  });
  return Promise.race([written, waited]);
}
