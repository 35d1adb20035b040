import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** What passed between a client and the service. */
export interface Recorder extends AsyncDisposable {
  /** Where the client connects instead, without `/v1`. */
  readonly url: string;
  /** Statuses of the answers, in the order in which they began. */
  readonly statuses: readonly number[];
  /** Bodies of the requests that arrived whole, as the client wrote them. */
  readonly requests: readonly string[];
  /** Everything that the service sent, heads and all, a character a byte. */
  readonly answers: string;
}

/**
 * Stands between a client and the service as a wire does: bytes, ends and resets pass as they are, whatever program
 * the client is. `rewrite` changes the body of a request without changing its length.
 */
export async function startRecorder(
  target: string,
  rewrite?: (body: string) => string,
): Promise<Recorder> {
  const statuses: number[] = [];
  const requests: string[] = [];
  const sockets = new Set<Socket>();
  let answers = "";

  const server = createServer((client) => {
    const upstream = connect(Number(new URL(target).port), "127.0.0.1");
    join(client, upstream);
    join(upstream, client);
    const reader = new RequestReader((body) => requests.push(body));
    if (rewrite === undefined) {
      client.on("data", (bytes: Buffer) => void reader.read(bytes));
      client.pipe(upstream);
    } else {
      client.on("data", (bytes: Buffer) => {
        for (const { head, body } of reader.read(bytes)) upstream.write(head + rewrite(body));
      });
      client.on("end", () => upstream.end());
    }
    let unread = "";
    upstream.on("data", (bytes) => {
      const text = bytes.toString("latin1");
      answers += text;
      unread += text;
      for (const [, status] of unread.matchAll(/HTTP\/1\.1 (\d{3}) [^\r]*\r\n/gu)) {
        statuses.push(Number(status));
      }
      unread = unread.slice(unread.lastIndexOf("\n") + 1);
    });
    upstream.pipe(client);
  });

  function join(one: Socket, other: Socket): void {
    sockets.add(one);
    one.on("error", () => void other.resetAndDestroy());
    one.on("close", () => {
      sockets.delete(one);
      // What the other end has not read yet still goes out.
      other.destroySoon();
    });
  }

  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${String(port)}`,
    statuses,
    requests,
    get answers() {
      return answers;
    },
    async [Symbol.asyncDispose]() {
      const closed = once(server, "close");
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

interface ReadRequest {
  readonly head: string;
  readonly body: string;
}

/** Finds the requests in what one connection sends; every client here tells the length of its bodies. */
class RequestReader {
  private readonly onBody: (body: string) => void;
  private pieces: Buffer[] = [];
  private bytes = 0;
  private wanted = 0;

  constructor(onBody: (body: string) => void) {
    this.onBody = onBody;
  }

  /** The requests that these bytes complete. */
  read(bytes: Buffer): readonly ReadRequest[] {
    this.pieces.push(bytes);
    this.bytes += bytes.length;
    const complete: ReadRequest[] = [];
    while (this.bytes > 0 && this.bytes >= this.wanted) {
      const all = Buffer.concat(this.pieces);
      this.pieces = [all];
      const headBytes = all.indexOf("\r\n\r\n") + 4;
      if (headBytes < 4) break;
      const head = all.toString("latin1", 0, headBytes);
      if (/^transfer-encoding:/imu.test(head)) throw new Error("a request without its length");
      this.wanted = headBytes + Number(/^content-length: *(\d+)/imu.exec(head)?.[1] ?? 0);
      if (all.length < this.wanted) break;
      const body = all.toString("utf8", headBytes, this.wanted);
      this.onBody(body);
      complete.push({ head, body });
      this.pieces = [all.subarray(this.wanted)];
      this.bytes -= this.wanted;
      this.wanted = 0;
    }
    return complete;
  }
}
