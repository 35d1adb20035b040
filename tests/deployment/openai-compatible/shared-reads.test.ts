import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { Client } from "undici";
import { expect, onTestFinished, test } from "vitest";
import { openConnector } from "../../../src/deployment/openai-compatible/shared-reads.ts";

/** Numbers below `end`, the same in each run. */
function numbers(seed: number): (end: number) => number {
  let state = seed;
  return (end) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return Math.floor((state / 2_147_483_648) * end);
  };
}

/** A text in which no piece can stand for another. */
function textOf(seed: number, words: number): string {
  return Array.from({ length: words }, (_, word) => `${String(seed)}.${String(word)} `).join("");
}

/** An answer in HTTP chunks. */
function answerOf(text: string, next: (end: number) => number): string {
  let body = "";
  for (let from = 0; from < text.length;) {
    const chunk = text.slice(from, from + 1 + next(900));
    body += `${chunk.length.toString(16)}\r\n${chunk}\r\n`;
    from += chunk.length;
  }
  return `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n${body}0\r\n\r\n`;
}

/** A client of a server that answers its n-th connection with `answers[n]`, cut anywhere. */
async function openClients(answers: readonly string[]): Promise<readonly Client[]> {
  let connections = 0;
  const server = createServer({ noDelay: true }, (socket) => {
    const answer = answers[connections] ?? "";
    const next = numbers((connections += 1));
    let from = 0;
    const send = (): void => {
      if (from >= answer.length) return;
      const end = from + 1 + next(9_000);
      socket.write(answer.slice(from, end));
      from = end;
      setImmediate(send);
    };
    socket.once("data", send);
    socket.on("error", () => undefined);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const origin = `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`;
  const clients = answers.map(() => new Client(origin, { connect: openConnector(1_000) }));
  onTestFinished(async () => {
    await Promise.all(clients.map(async (client) => client.destroy()));
    server.close();
  });
  return clients;
}

/** What comes, each piece looked at as late as it may be; paused where `pauses` says so. */
function read(client: Client, pauses: (pieces: number) => boolean) {
  const pieces: Buffer[] = [];
  const texts: string[] = [];
  const whole = new Promise<string>((resolve, reject) => {
    client.dispatch(
      { method: "GET", path: "/" },
      {
        onRequestStart: () => undefined,
        onResponseStart: () => undefined,
        onResponseData(controller, piece) {
          pieces.push(piece);
          queueMicrotask(() => texts.push(piece.toString()));
          if (!pauses(pieces.length)) return;
          controller.pause();
          setImmediate(() => setImmediate(() => controller.resume()));
        },
        onResponseEnd: () => queueMicrotask(() => resolve(texts.join(""))),
        onResponseError: (_controller, error) => reject(error),
      },
    );
  });
  return { pieces, whole };
}

test("answers that come at once on many connections are whole, wherever they are cut and paused", async () => {
  const texts = Array.from({ length: 6 }, (_, seed) => textOf(seed, 12_000));
  const clients = await openClients(texts.map((text, seed) => answerOf(text, numbers(seed))));
  const reads = clients.map((client, index) => {
    const next = numbers(index + 100);
    return read(client, () => next(20) < index);
  });
  const found = await Promise.all(reads.map(({ whole }) => whole));
  expect(found.toSorted()).toEqual(texts.toSorted());
});

test("a piece is in memory that all reads share", async () => {
  const clients = await openClients([
    answerOf(textOf(1, 4_000), numbers(1)),
    answerOf("x", numbers(2)),
  ]);
  const reads = clients.map((client) => read(client, () => false));
  await Promise.all(reads.map(({ whole }) => whole));
  const memories = new Set(reads.flatMap(({ pieces }) => pieces.map((piece) => piece.buffer)));
  expect(reads.flatMap(({ pieces }) => pieces).length).toBeGreaterThan(10);
  expect(memories.size).toBe(1);
});

test("a connection that cannot be had is an error, not a fault of the reading", async () => {
  const client = new Client("http://127.0.0.1:9", { connect: openConnector(1_000) });
  await expect(read(client, () => false).whole).rejects.toMatchObject({ code: "ECONNREFUSED" });
  await client.destroy();
});
