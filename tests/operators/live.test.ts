import { afterAll, beforeAll, expect, test } from "vitest";
import { limits } from "../../src/limits.ts";
import type { z } from "zod";
import type { ReceiptQuery } from "../../src/ledger/administration/lists.ts";
import type { Receipt } from "../../src/ledger/receipt.ts";
import { StoreFault } from "../../src/ledger/store-fault.ts";
import { LiveHub } from "../../src/operators/live-hub.ts";
import { LiveNow } from "../../src/operators/live-now.ts";
import type { liveGenerationsSchema } from "../../src/operators/live-routes.ts";
import type { StoreLedger } from "../../src/ledger/store-ledger.ts";
import { openManualTimers } from "../doubles/manual-timers.ts";
import { orderOf, settlementOf } from "../ledger/orders.ts";
import { startOperators, type TestOperators } from "./start-operators.ts";
import { replicaFacts, unwatchedService } from "./unwatched-service.ts";

// What happens now, as a stream. Its clock stands still until a test moves it.

const timers = openManualTimers();
const running = new Map<string, number>();
let fault: Error | null = null;
const failures = { rate_limited: 1, overloaded: 3 };
const firstOutputsMs = Array.from({ length: 20 }, (_, index) => (20 - index) * 10);

let operators: TestOperators;
let secret = "";
beforeAll(async () => {
  operators = await startOperators({
    timers,
    running: () =>
      fault === null
        ? Promise.resolve(
            [...running].map(([requestId, outputTokens]) => ({ requestId, outputTokens })),
          )
        : Promise.reject(fault),
    figures: () =>
      Promise.resolve({
        outputTokens: [...running.values()].reduce((sum, tokens) => sum + tokens, 0),
        failures,
        firstOutputsMs,
      }),
  });
  const account = await operators.ledger.createAccount("live", 10n ** 12n);
  ({ secret } = await operators.ledger.createKey(account.id, "key"));
});
afterAll(() => operators[Symbol.asyncDispose]());

type Json = Record<string, unknown>;
interface LiveEvent {
  readonly name: string;
  readonly data: Json;
}

/** A stream as its reader has it. */
interface Watched extends AsyncDisposable {
  readonly status: number;
  /** The very next event. */
  next(): Promise<LiveEvent>;
  /** The events up to the next one of this name. */
  until(name: string): Promise<LiveEvent>;
  /** The next look, and what it says of the running requests. */
  look(): Promise<Json>;
  ended(): Promise<readonly LiveEvent[]>;
}

async function watch(
  headers: Readonly<Record<string, string>> = { authorization: `Bearer ${operators.token}` },
): Promise<Watched> {
  const response = await fetch(`${operators.url}/api/v1/live`, { headers });
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  const read: LiveEvent[] = [];
  async function more(): Promise<boolean> {
    const { done = true, value = "" } = (await reader?.read()) ?? {};
    const frames = (rest + value).split("\n\n");
    rest = frames.pop() ?? "";
    for (const frame of frames) {
      const [, name, data] = /^event: (\w+)\ndata: (.*)$/.exec(frame) ?? [];
      if (name !== undefined) read.push({ name, data: JSON.parse(data ?? "") as Json });
    }
    return !done;
  }
  const until = async (name: string): Promise<LiveEvent> => {
    for (;;) {
      const found = read.findIndex((event) => event.name === name);
      const [event] = found < 0 ? [] : read.splice(0, found + 1).slice(-1);
      if (event !== undefined) return event;
      if (!(await more())) throw new Error(`the stream ended before ${name}`);
    }
  };
  return {
    status: response.status,
    async next() {
      while (read.length === 0)
        if (!(await more())) throw new Error("the stream ended before another event");
      const [event] = read.splice(0, 1);
      if (event === undefined) throw new Error("there is no event");
      return event;
    },
    until,
    async look() {
      await nextLook();
      return (await until("generations")).data;
    },
    async ended() {
      while (await more());
      return read;
    },
    async [Symbol.asyncDispose]() {
      await reader?.cancel().catch(() => undefined);
    },
  };
}

/** Without a watcher there is no next look. */
async function rested(): Promise<void> {
  await expect.poll(() => timers.waiting).toBe(0);
}

/** A look is over when the next one is waited for. */
async function looked(): Promise<void> {
  await expect.poll(() => timers.waiting).toBe(1);
}

async function nextLook(): Promise<void> {
  await looked();
  timers.advance(limits.liveEveryMs);
}

async function admit(id: string) {
  const order = orderOf(await operators.ledger.authorize(secret, true), { requestId: `req_${id}` });
  await operators.ledger.admit(order);
  return order;
}

test("who watches gets what runs, then what changes of it, and the service rests without one", async () => {
  expect(timers.waiting).toBe(0);
  const first = await admit("first");
  {
    await using watched = await watch();
    const begin = await watched.until("generations");
    expect(begin.data).toMatchObject({ reset: true, running: 1, removed: [], output_tokens: {} });
    expect(begin.data["data"]).toMatchObject([
      { id: "req_first", state: "open", cancelling: false },
    ]);
    const now = await watched.until("now");
    expect(now.data).toMatchObject({
      running: 1,
      replica: "here",
      since: "1970-01-01T00:00:00.000Z",
      output_tokens_per_second: null,
      first_output: { requests: 20, p50_ms: 100, p95_ms: 190 },
      failures: [
        { code: "overloaded", count: 3 },
        { code: "rate_limited", count: 1 },
      ],
      deployment: { model: "tiny", ready: true },
      replicas: [{ id: "here", ready: true }],
    });
    const second = await admit("second");
    running.set("req_second", 5);
    // One that has ended meanwhile, of which there is no row.
    running.set("req_ended", 9);
    const added = await watched.look();
    expect(added).toMatchObject({ reset: false, running: 2 });
    expect(added["output_tokens"]).toEqual({ req_second: 5 });
    expect(added["data"]).toMatchObject([{ id: "req_second" }]);
    running.set("req_second", 6);
    expect(await watched.look()).toEqual({
      reset: false,
      running: 2,
      data: [],
      removed: [],
      output_tokens: { req_second: 6 },
    });
    const by = { actor: "oper_1", once: null, ifVersion: null } as const;
    await operators.ledger.administer(by).cancelGeneration("req_first");
    const cancelled = await watched.look();
    expect(cancelled["data"]).toMatchObject([{ id: "req_first", cancelling: true }]);
    // Nor are tokens sent again that are what they were.
    expect(cancelled["output_tokens"]).toEqual({});
    running.set("req_second", 7);
    // Nor is the cancelled row.
    const output = { output_tokens: { req_second: 7 } };
    expect(await watched.look()).toMatchObject({ data: [], removed: [], ...output });
    await operators.ledger.settle(settlementOf(first));
    await operators.ledger.settle(settlementOf(second));
    running.clear();
    const gone = await watched.look();
    expect(gone).toMatchObject({ running: 0, data: [] });
    expect(new Set(gone["removed"] as string[])).toEqual(new Set(["req_first", "req_second"]));
  }
  await rested();
});

test("one that comes later gets everything at once, and both the same from then on", async () => {
  const order = await admit("shared");
  await using one = await watch();
  await one.until("now");
  await using other = await watch();
  expect((await other.until("generations")).data).toMatchObject({ reset: true, running: 1 });
  await operators.ledger.settle(settlementOf(order));
  const [first, second] = await Promise.all([one.look(), other.until("generations")]);
  expect(first).toEqual(second.data);
  await Promise.all([one, other].map((watched) => watched[Symbol.asyncDispose]()));
  await rested();
});

test("a stream ends with the operator's token or session, and says so", async () => {
  const viewer = await operators.newToken("viewer");
  const { cookie } = await operators.signIn({ token: (await operators.newToken("viewer")).token });
  const byToken = await watch({ authorization: `Bearer ${viewer.token}` });
  const bySession = await watch({ cookie });
  await Promise.all([byToken.until("now"), bySession.until("now")]);
  await operators.ledger.revokeOperator(viewer.id);
  await admit("unseen");
  await nextLook();
  // Nothing of what came after it.
  expect(await byToken.ended()).toEqual([{ name: "end", data: { code: "session_over" } }]);
  await bySession.until("generations");
  const headers = { cookie, origin: operators.url };
  await operators.ask("/api/v1/session", { method: "DELETE", token: null, headers });
  await nextLook();
  expect((await bySession.ended()).at(-1)?.name).toBe("end");
  await rested();
});

test("without the ledger a stream says so once, and has everything anew when it is back", async () => {
  await using watched = await watch();
  await watched.until("now");
  fault = new StoreFault("unavailable", "away");
  await nextLook();
  expect((await watched.until("problem")).data).toMatchObject({ code: "ledger_unavailable" });
  await nextLook();
  fault = null;
  await nextLook();
  // The problem once, and now the rows.
  expect(await watched.next()).toMatchObject({ name: "generations", data: { reset: true } });
  await watched[Symbol.asyncDispose]();
  await rested();
});

test("there are so many streams, and one that is left makes room", async () => {
  const all = await Promise.all(Array.from({ length: limits.liveStreamsMax }, () => watch()));
  expect(all.filter(({ status }) => status !== 200)).toEqual([]);
  const refused = await operators.ask("/api/v1/live");
  expect(refused).toMatchObject({ status: 429, json: { code: "too_many_streams" } });
  const [first, ...others] = all;
  await first?.[Symbol.asyncDispose]();
  await expect.poll(async () => (await operators.ask("/api/v1/live")).status).toBe(200);
  await Promise.all(others.map((one) => one[Symbol.asyncDispose]()));
  await rested();
});

test("the listener ends its streams with itself, at once", async () => {
  const before = operators;
  const own = await startOperators({ timers });
  operators = own;
  const watched = await watch();
  operators = before;
  await watched.until("now");
  await own[Symbol.asyncDispose]();
  await watched.ended();
  expect(timers.waiting).toBe(0);
});

/** Live streams over a ledger that a test makes up, on the clock of this file. */
function openHub(ledger: unknown): LiveHub {
  return new LiveHub({
    ledger: () => Promise.resolve(ledger as StoreLedger),
    service: unwatchedService(),
    now: timers.monotonicMs,
    timers,
    closing: new AbortController().signal,
    onFailure: () => {},
  });
}

/** What comes next of a stream, as its text. */
async function readText(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<string> {
  return new TextDecoder().decode((await reader.read()).value);
}

test("nothing is sent where nothing changed, but a sign of life now and then", async () => {
  let count = 0;
  const hub = openHub({
    openRequests: () => Promise.resolve({ ids: [], cancelled: [], count }),
    listReplicas: () => Promise.resolve([]),
  });
  const reader = hub.open(() => Promise.resolve(true)).getReader();
  expect(await readText(reader)).toContain('"reset":true');
  await nextLook();
  // From two looks on there is a rate.
  expect(await readText(reader)).toMatch(/^event: now\n.*"output_tokens_per_second":0,.*\n\n$/u);
  const next = readText(reader);
  for (let ms = 0; ms < limits.liveHeartbeatMs; ms += limits.liveEveryMs) await nextLook();
  expect(await next).toBe(": nothing new\n\n");
  count = 1;
  await nextLook();
  expect(await readText(reader)).toMatch(/^event: generations\n/u);
  await reader.cancel();
  await rested();
});

/** A running request that was admitted at this millisecond. */
function receiptOf(atMs: number): Receipt {
  return {
    requestId: `req_${String(atMs)}`,
    accountId: "acct_a",
    keyId: "key_a",
    state: "open",
    format: "messages",
    streamed: true,
    label: null,
    inputBound: 1,
    allowance: 1,
    priceList: "default",
    prices: { inputNanosPerMillion: 1n, outputNanosPerMillion: 1n },
    reservedNanos: 1n,
    chargedNanos: null,
    outcome: null,
    refundedNanos: 0n,
    usage: null,
    admittedAtMs: atMs,
    resolvedAtMs: null,
    firstOutputMs: null,
    totalMs: null,
    head: { accountId: "acct_a", sequence: 1, hash: new Uint8Array(32) },
  };
}

type LiveGenerations = z.infer<typeof liveGenerationsSchema>;

test("many rows come in several events, and the ledger is asked for each once", async () => {
  const receipts = Array.from({ length: 2 * limits.liveRowsAtOnce + 1 }, (_, at) =>
    receiptOf(1_000 - at),
  );
  const asked: number[] = [];
  const hub = openHub({
    openRequests: () => {
      const ids = receipts.map(({ requestId }) => requestId);
      return Promise.resolve({ ids, cancelled: [], count: ids.length });
    },
    listReplicas: () => Promise.resolve([]),
    pageReceipts: ({ after, rowsMax }: ReceiptQuery) => {
      asked.push(rowsMax);
      const from = after === null ? 0 : receipts.findIndex((one) => one.requestId === after.id) + 1;
      return Promise.resolve(receipts.slice(from, from + rowsMax));
    },
  });
  const reader = hub.open(() => Promise.resolve(true)).getReader();
  const rowsOf = (text: string): readonly LiveGenerations[] =>
    [...text.matchAll(/^event: generations\ndata: (.*)$/gmu)].map(
      ([, data = ""]) => JSON.parse(data) as LiveGenerations,
    );
  const first = rowsOf(await readText(reader));
  expect(first.map(({ data, reset }) => [data.length, reset])).toEqual([
    [limits.liveRowsAtOnce, true],
    [limits.liveRowsAtOnce, false],
    [1, false],
  ]);
  expect(new Set(first.flatMap(({ data }) => data.map(({ id }) => id))).size).toBe(receipts.length);
  asked.length = 0;
  receipts.unshift(receiptOf(2_000));
  receipts.pop();
  await nextLook();
  expect(rowsOf(await readText(reader))).toMatchObject([
    { reset: false, data: [{ id: "req_2000" }], removed: ["req_500"] },
  ]);
  // Not all of them again.
  expect(asked).toHaveLength(1);
  expect(asked[0]).toBeLessThan(limits.liveRowsAtOnce);
  receipts.pop();
  await nextLook();
  // What was removed before is not removed again.
  expect(rowsOf(await readText(reader))).toMatchObject([{ data: [], removed: ["req_501"] }]);
  await reader.cancel();
  await rested();
});

test("the rate is of the last seconds, and other replicas are asked for more seldom", async () => {
  let [nowMs, outputTokens, asked] = [1_000, 0, 0];
  const figures = () => Promise.resolve({ outputTokens, failures: {}, firstOutputsMs: [] });
  const ledger: unknown = {
    listReplicas: () => {
      asked += 1;
      return Promise.resolve([]);
    },
  };
  const live = new LiveNow(unwatchedService({ figures }), () => nowMs);
  const rates: (number | null)[] = [];
  // At the end a process has gone, with what it had counted.
  for (const tokens of [0, 10, 20, 30, 40, 50, 50, 50, 50, 50, 50, 40]) {
    outputTokens = tokens;
    const { output_tokens_per_second: rate } = await live.look(ledger as StoreLedger, 0);
    rates.push(rate);
    nowMs += limits.liveEveryMs;
  }
  expect(rates).toEqual([null, 10, 10, 10, 10, 10, 8, 6, 4, 2, 0, 0]);
  expect(asked).toBe(3);
});

test("who reads slowly misses looks, gets everything anew when it has caught up, and is cut off in the end", async () => {
  let running = 0;
  const words = { ledger: "x".repeat(limits.liveBufferedBytesMax) };
  const ledger = {
    openRequests: () => Promise.resolve({ ids: [], cancelled: [], count: (running += 1) }),
    listReplicas: () =>
      Promise.resolve([{ id: "there", facts: { ...replicaFacts, reasons: words } }]),
  };
  const hub = openHub(ledger);
  const open = () => hub.open(() => Promise.resolve(true)).getReader();
  const slow = open();
  const read = (): Promise<string> => readText(slow);
  await nextLook();
  await nextLook();
  await looked();
  expect(await read()).toContain('"reset":true,"running":1,');
  await nextLook();
  // Not the second and third look, which it missed.
  expect(await read()).toContain('"reset":true,"running":4,');
  await nextLook();
  expect(await read()).toContain('"reset":false,"running":5,');
  const never = open();
  const cut = never.closed.catch(String);
  for (let ms = 0; ms <= limits.liveBehindMs; ms += limits.liveEveryMs) {
    await nextLook();
    await read();
  }
  expect(await cut).toContain("too slowly");
  // One that has caught up is behind from anew.
  await nextLook();
  await nextLook();
  await looked();
  expect(await read()).toContain("event: now");
  await slow.cancel();
  await rested();
});
