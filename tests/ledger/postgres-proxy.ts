import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import type { PostgresDatabases } from "./postgres-server.ts";

/** Between a replica and the server; can swallow the next answer and then cut the line. */
export async function openProxy(server: PostgresDatabases): Promise<
  AsyncDisposable & {
    url(database: string): string;
    loseNextAnswer(meanwhile?: () => Promise<unknown>): void;
  }
> {
  const sockets = new Set<Socket>();
  let lose: (() => Promise<unknown>) | null = null;
  const proxy = createServer((client) => {
    const upstream = connect(server.socket);
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => {
        client.destroy();
        upstream.destroy();
      });
    }
    client.on("data", (bytes) => upstream.write(bytes));
    upstream.on("data", (bytes) => {
      // The answer is there, so it has been committed.
      const meanwhile = lose;
      lose = null;
      if (meanwhile === null) client.write(bytes);
      else void meanwhile().finally(() => client.destroy());
    });
  });
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  const { port } = proxy.address() as AddressInfo;
  return {
    url: (database) => `postgres://ledger@127.0.0.1:${String(port)}/${database}`,
    loseNextAnswer(meanwhile = () => Promise.resolve()) {
      lose = meanwhile;
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      proxy.close();
      await once(proxy, "close");
    },
  };
}
