import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { type IncomingMessage, request as startRequest, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { costNanos } from "../../src/admission/price.ts";
import { finish, type Step } from "../doubles/scripted-deployment.ts";
import { formats, startService, type TestKey, type TestService } from "./start-service.ts";
import { openRandom } from "../doubles/random.ts";
import { boundReceiveBuffer } from "../doubles/receive-buffer.ts";
import { untilStill } from "../doubles/until-still.ts";

const mebibyte = 1024 * 1024;
/** What a reader's own machine may take for it is the reader's affair: kept small, so that the rest is ours. */
const receiveBufferBytes = 64 * 1024;
const credit = 1_000_000_000_000n;

/** One of the streams: how its answer is made, and what its reader does. */
interface Plan {
  readonly number: number;
  readonly format: (typeof formats)[number];
  readonly deltas: number;
  /** Characters that each delta has beside its number. */
  readonly padding: number;
  readonly ending: "finish" | "client-leaves" | "deployment-breaks";
  readonly reader: "steady" | "stops";
}

/** A plan while it runs. Bytes of bodies, except at the sockets. */
interface Run {
  readonly plan: Plan;
  readonly account: TestKey;
  requestBytes: number;
  numbersRead: number;
  bytesRead: number;
  /** From the service to the deployment, and to the client. */
  upstream: { readonly socket: Socket; readonly before: number } | null;
  downstream: { readonly socket: Socket; readonly response: ServerResponse } | null;
  /** Most that waited in the service to be sent. */
  worstHeldBytes: number;
  /** Most that was taken from the deployment beyond what the client had read, whoever held it: we or a kernel. */
  worstUnreadBytes: number;
  stoppedAtBytes: number | null;
  failure: string | null;
}

let service: TestService;
beforeAll(async () => {
  service = await startService({
    environment: { TRIBUTARY_SEND_BUFFER_BYTES: String(128 * 1024) },
  });
});
afterAll(() => service[Symbol.asyncDispose]());

describe("32 concurrent streams of numbered deltas", () => {
  it("lose nothing, hold little for readers that stop, and are charged to the nano", async () => {
    const accounts = await Promise.all(Array.from({ length: 8 }, () => service.newKey("1000")));
    const runs = plans(20_251_121).map((plan, index) => newRun(plan, accounts[index >> 2]));
    using sockets = watchSockets(runs);
    const startMs = performance.now();
    await Promise.all(
      runs.map(async (run) => {
        service.deployment.answerFor(markerOf(run.plan), ...stepsOf(run.plan));
        await readStream(run, () => runs.forEach(sample));
      }),
    );
    const tookMs = Math.round(performance.now() - startMs);
    expect(sockets.seen()).toBe(64);

    for (const run of runs) {
      const { plan } = run;
      const what = `stream ${String(plan.number)}`;
      expect(run.failure, what).toBeNull();
      // A reset takes with it what was on the way.
      if (plan.ending === "deployment-breaks")
        expect(run.numbersRead).toBeLessThan(plan.deltas + 1);
      else expect(run.numbersRead, what).toBe(plan.deltas);
      // A mebibyte in the service, the bounded buffers of the kernel, and what one read brings; 5 without these bounds.
      expect(run.worstUnreadBytes, what).toBeLessThan(2.5 * mebibyte);
      // The last frames of Responses repeat the whole answer several times; nothing else holds so much.
      if (plan.format.name !== "responses")
        expect(run.worstHeldBytes, what).toBeLessThan(2 * mebibyte);
      if (plan.reader === "steady") continue;
      // It really was held up: a mebibyte waited, and the deployment was not drained meanwhile.
      expect(run.worstHeldBytes, what).toBeGreaterThan(mebibyte);
      expect(run.stoppedAtBytes, what).not.toBeNull();
    }
    await expectExactAccounts(accounts, runs);
    report(runs, tookMs);
  });
});

/** One stream as long as its allowance, four readers that stop, three clients that leave, a deployment that breaks, 23 others. */
function plans(seed: number): readonly Plan[] {
  const random = openRandom(seed);
  const plain = (number: number): Plan => ({
    number,
    format: formats[number % 3] ?? formats[0],
    deltas: 200 + Math.floor(random() * 400),
    padding: 0,
    ending: "finish",
    reader: "steady",
  });
  return Array.from({ length: 32 }, (_, number) => {
    const plan = plain(number);
    if (number === 0) return { ...plan, format: formats[0], deltas: 8_192, padding: 240 };
    // One on each of four accounts.
    if (number % 4 === 1 && number < 16)
      return { ...plan, deltas: 3_000, padding: 680, reader: "stops" };
    if (number % 9 === 3) return { ...plan, ending: "client-leaves" };
    if (number === 22) return { ...plan, ending: "deployment-breaks" };
    return plan;
  });
}

function markerOf(plan: Plan): string {
  return `stream-${String(plan.number)}.`;
}

function stepsOf({ number, deltas, padding, ending }: Plan): readonly Step[] {
  const pad = "x".repeat(padding);
  const numbers: Step = {
    type: "numbers",
    count: deltas,
    text: (index) => `<${String(index)}>${pad}`,
  };
  switch (ending) {
    case "finish":
      return [numbers, finish("stop", usageOf(number, deltas))];
    case "client-leaves":
      return [numbers, { type: "hang" }];
    case "deployment-breaks":
      return [numbers, { type: "reset" }];
    default:
      return ending satisfies never;
  }
}

function usageOf(number: number, deltas: number) {
  return { promptTokens: 100 + number, completionTokens: deltas + 1 };
}

function newRun(plan: Plan, account: TestKey | undefined): Run {
  if (account === undefined) throw new Error("no account");
  return {
    plan,
    account,
    requestBytes: 0,
    numbersRead: 0,
    bytesRead: 0,
    upstream: null,
    downstream: null,
    worstHeldBytes: 0,
    worstUnreadBytes: 0,
    stoppedAtBytes: null,
    failure: null,
  };
}

/** Posts and reads as the plan says; resolves when the connection has ended. */
async function readStream(run: Run, onRead: () => void): Promise<void> {
  const { plan, account } = run;
  const { format } = plan;
  const text = JSON.stringify(format.body).replace("Hi", markerOf(plan));
  const most = `"max_tokens":65536,"max_output_tokens":65536`;
  const body = `${text.slice(0, -1)},${most},"stream":true}`;
  run.requestBytes = Buffer.byteLength(body);
  const headers = {
    authorization: `Bearer ${account.key}`,
    "content-type": "application/json",
    "content-length": run.requestBytes,
    "x-stream": markerOf(plan),
  };
  const call = startRequest(service.url + format.path, { method: "POST", headers, agent: false });
  call.end(body);
  call.on("socket", (socket) =>
    socket.once("connect", () => boundReceiveBuffer(socket, receiveBufferBytes)),
  );
  const over = Promise.withResolvers<void>();
  call.on("error", () => over.resolve());
  call.on("response", (response) => {
    response.on("close", () => over.resolve());
    response.on("error", () => undefined);
    if (response.statusCode !== 200) run.failure = `status ${String(response.statusCode)}`;
    const read = openFrameReader(run);
    response.on("data", (chunk: Buffer) => {
      run.bytesRead += chunk.byteLength;
      onRead();
      read(chunk);
      if (plan.reader === "stops" && run.stoppedAtBytes === null && run.bytesRead > 65_536) {
        run.stoppedAtBytes = run.bytesRead;
        response.pause();
        void heldUp(run).then(() => response.resume());
      }
      if (plan.ending === "client-leaves" && run.numbersRead === plan.deltas) call.destroy();
    });
  });
  await over.promise;
}

/** Until the kernel's buffers are full, a mebibyte waits in the service, and nothing moves any more. */
async function heldUp(run: Run): Promise<void> {
  const worstHeld = (): number => {
    sample(run);
    return run.worstHeldBytes;
  };
  await expect.poll(worstHeld).toBeGreaterThan(mebibyte);
  await untilStill(() => worstHeld() + (run.upstream?.socket.bytesRead ?? 0));
}

/** Takes a stream apart and compares every number with the one that must come. */
function openFrameReader(run: Run): (chunk: Buffer) => void {
  const decoder = new TextDecoder();
  let rest = "";
  return (chunk) => {
    const frames = (rest + decoder.decode(chunk, { stream: true })).split("\n\n");
    rest = frames.pop() ?? "";
    for (const frame of frames) {
      const text = deltaOf(frame);
      if (text === null) continue;
      for (const piece of text.split("<").slice(1)) {
        const number = Number.parseInt(piece, 10);
        if (number !== run.numbersRead)
          run.failure ??= `${String(number)} came where ${String(run.numbersRead)} was due`;
        run.numbersRead += 1;
      }
    }
  };
}

/** The text of a delta in any format; null for other frames. */
function deltaOf(frame: string): string | null {
  const at = frame.indexOf("data: ");
  if (at === -1 || frame.startsWith(":") || frame === "data: [DONE]") return null;
  // The last object repeats the whole answer, which is not what is counted here.
  if (frame.startsWith("event: ") && !/^event: \S*delta\n/.test(frame)) return null;
  const data = JSON.parse(frame.slice(at + 6)) as {
    choices?: readonly { delta?: { content?: string } }[];
    delta?: string | { text?: string };
  };
  if (data.choices !== undefined) return data.choices[0]?.delta?.content ?? null;
  return typeof data.delta === "string" ? data.delta : (data.delta?.text ?? null);
}

/** Where the bytes of a run are at this moment; everything is in one process, so that the figures fit together. */
function sample(run: Run): void {
  const { upstream, downstream } = run;
  if (upstream === null || downstream === null) return;
  const taken = upstream.socket.bytesRead - upstream.before;
  const held = downstream.response.writableLength;
  run.worstHeldBytes = Math.max(run.worstHeldBytes, held);
  run.worstUnreadBytes = Math.max(run.worstUnreadBytes, taken - run.bytesRead);
}

/** Finds both sockets of each run: what undici writes a request to, and what its own request came from. */
function watchSockets(runs: readonly Run[]): Disposable & { seen(): number } {
  let seen = 0;
  const onSend = (message: unknown): void => {
    const { request, socket } = message as { request: { body: Uint8Array }; socket: Socket };
    const text = Buffer.from(request.body ?? []).toString("latin1");
    const run = runs.find(({ plan }) => text.includes(markerOf(plan)));
    if (run === undefined) return;
    // Connections are used again.
    for (const other of runs) if (other.upstream?.socket === socket) other.upstream = null;
    run.upstream = { socket, before: socket.bytesRead };
    seen += 1;
  };
  const onStart = (message: unknown): void => {
    const { request, response, socket } = message as {
      request: IncomingMessage;
      response: ServerResponse;
      socket: Socket;
    };
    const marker = request.headers["x-stream"];
    const run = runs.find(({ plan }) => markerOf(plan) === marker);
    if (run === undefined) return;
    run.downstream = { socket, response };
    seen += 1;
  };
  subscribe("undici:client:sendHeaders", onSend);
  subscribe("http.server.request.start", onStart);
  return {
    seen: () => seen,
    [Symbol.dispose]() {
      unsubscribe("undici:client:sendHeaders", onSend);
      unsubscribe("http.server.request.start", onStart);
    },
  };
}

/** The balance of every account by hand: what was reported, what was delivered until the cut, nothing for failures. */
async function expectExactAccounts(
  accounts: readonly TestKey[],
  runs: readonly Run[],
): Promise<void> {
  for (const { accountId } of accounts) {
    let due = 0n;
    for (const { account, plan, requestBytes } of runs) {
      if (account.accountId !== accountId || plan.ending === "deployment-breaks") continue;
      const { promptTokens, completionTokens } = usageOf(plan.number, plan.deltas);
      due +=
        plan.ending === "finish"
          ? costNanos(promptTokens, completionTokens, service.config.prices)
          : costNanos(Math.ceil(requestBytes / 4), countedTokens(plan), service.config.prices);
    }
    expect(await service.settledCredit(accountId)).toEqual({ balance: credit - due, held: 0n });
  }
}

/** What the service counts where no usage came: a token a delta, or one for four characters. */
function countedTokens({ deltas }: Plan): number {
  let characters = 0;
  for (let index = 0; index < deltas; index += 1) characters += `<${String(index)}>`.length;
  return Math.max(deltas, Math.ceil(characters / 4));
}

function report(runs: readonly Run[], tookMs: number): void {
  const worst = (field: "worstUnreadBytes" | "worstHeldBytes"): string =>
    `${(Math.max(...runs.map((run) => run[field])) / mebibyte).toFixed(2)} MiB`;
  console.log(
    `${String(tookMs)} ms; taken and not yet read ${worst("worstUnreadBytes")}, ` +
      `held in the service ${worst("worstHeldBytes")}`,
  );
}
