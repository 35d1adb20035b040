import { connect } from "node:net";
import { mutateBytes } from "./mutate-bytes.ts";
import { count, pick, repeat, type Stage, type Tally } from "./stage.ts";

/** How long a connection may stay silent before it is given up; whole requests are answered within a few milliseconds. */
const patienceMs = 300;

/** Writes byte sequences that are no HTTP, or nearly, or two requests in one, each on a connection of its own. */
export async function sendRawBytes(runs: number, stage: Stage): Promise<Tally> {
  const { random } = stage;
  const tally: Tally = new Map();
  const requests = wholeRequests(stage.key);
  const { hostname, port } = new URL(stage.url);
  await repeat(runs, 48, async (index) => {
    const base =
      random() < 0.05
        ? Uint8Array.from({ length: 1 + Math.floor(random() * 500) }, () => random() * 256)
        : pick(requests, random);
    const bytes = random() < 0.02 ? new Uint8Array(base) : mutateBytes(base, random);
    const text = await exchange(bytes, { host: hostname, port: Number(port), random });
    const status = /^HTTP\/1\.1 (\d{3}) /u.exec(text)?.[1] ?? (text === "" ? "silence" : "noise");
    count(tally, status);
    if (status === "noise" || status.startsWith("5"))
      stage.report(
        `raw ${String(index)}: ${text.slice(0, 300)}; sent ${JSON.stringify(Buffer.from(bytes).toString("latin1").slice(0, 2_000))}`,
      );
  });
  return tally;
}

function wholeRequests(key: string): readonly Uint8Array[] {
  const chat = '{"messages":[{"role":"user","content":"Hi"}]}';
  const message = '{"max_tokens":9,"stream":true,"messages":[{"role":"user","content":"Hi"}]}';
  const auth = `authorization: Bearer ${key}\r\n`;
  const length = (body: string): string => `content-length: ${String(body.length)}\r\n`;
  const json = "content-type: application/json\r\n";
  const post = (path: string, body: string): string =>
    `POST ${path} HTTP/1.1\r\nhost: x\r\n${auth}${json}${length(body)}\r\n${body}`;
  const chunked = `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n${auth}${json}transfer-encoding: chunked\r\n\r\n${chat.length.toString(16)}\r\n${chat}\r\n0\r\n\r\n`;
  const get = (path: string): string => `GET ${path} HTTP/1.1\r\nhost: x\r\n${auth}\r\n`;
  return [
    post("/v1/chat/completions", chat),
    post("/v1/messages?beta=true", message),
    post("/v1/responses", '{"input":"Hi"}'),
    post("/v1/messages/count_tokens", message),
    chunked,
    `${chunked}${get("/v1/models")}`,
    get("/v1/models/a%20b"),
    get("/account"),
    get("/receipts/req_none"),
    `${get("/healthz")}${post("/v1/chat/completions", chat)}`,
    `POST /v1/responses HTTP/1.1\r\nhost: x\r\n${auth}expect: 100-continue\r\n${json}${length(chat)}\r\n`,
    `GET /v1/responses HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n`,
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
  ].map((text) => new TextEncoder().encode(text));
}

/** Writes bytes in one to three pieces; resolves with what came back until the peer closed or fell silent. */
async function exchange(
  bytes: Uint8Array,
  {
    host,
    port,
    random,
  }: { readonly host: string; readonly port: number; readonly random: () => number },
): Promise<string> {
  const socket = connect(port, host);
  socket.setNoDelay(true);
  socket.setTimeout(patienceMs, () => socket.destroy());
  let text = "";
  socket.on("data", (piece: Buffer) => {
    if (text.length < 10_000) text += piece.toString("latin1");
  });
  socket.on("error", () => undefined);
  const cut = Math.floor(random() * bytes.length);
  socket.write(bytes.subarray(0, cut));
  socket.write(bytes.subarray(cut));
  // Half of the clients close their side, the others wait; a request that is not whole is answered neither way.
  if (random() < 0.8) socket.end();
  await new Promise<void>((resolve) => socket.once("close", () => resolve()));
  return text;
}
