import { afterAll, beforeAll, expect, test } from "vitest";
import { limits } from "../../src/limits.ts";
import { StoreFault } from "../../src/ledger/store-fault.ts";
import { LiveHub } from "../../src/operators/live-hub.ts";
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
    const added = await watched.look();
    expect(added).toMatchObject({ reset: false, running: 2, output_tokens: { req_second: 5 } });
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
    expect((await watched.look())["data"]).toMatchObject([{ id: "req_first", cancelling: true }]);
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
  expect((await watched.until("generations")).data).toMatchObject({ reset: true });
  await watched[Symbol.asyncDispose]();
  await rested();
});

test("there are so many streams, and one that is left makes room", async () => {
  const all = await Promise.all(Array.from({ length: limits.liveStreamsMax }, () => watch()));
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

test("who reads slowly misses looks, gets everything anew when it has caught up, and is cut off in the end", async () => {
  let running = 0;
  const words = { ledger: "x".repeat(limits.liveBufferedBytesMax) };
  const ledger: unknown = {
    openRequests: () => Promise.resolve({ ids: [], cancelled: [], count: (running += 1) }),
    listReplicas: () =>
      Promise.resolve([{ id: "there", facts: { ...replicaFacts, reasons: words } }]),
  };
  const hub = new LiveHub({
    ledger: () => Promise.resolve(ledger as StoreLedger),
    service: unwatchedService(),
    now: timers.monotonicMs,
    timers,
    closing: new AbortController().signal,
    onFailure: () => {},
  });
  const open = () => hub.open(() => Promise.resolve(true)).getReader();
  const slow = open();
  const read = async (): Promise<string> => new TextDecoder().decode((await slow.read()).value);
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
  await slow.cancel();
  await rested();
});
