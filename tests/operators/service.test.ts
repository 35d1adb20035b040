import { afterAll, beforeAll, expect, test } from "vitest";
import type { WatchedRefusal } from "../../src/operators/watched-service.ts";
import { serveRequests, startOperators, type TestOperators } from "./start-operators.ts";
import { replicaFacts } from "./unwatched-service.ts";

// What the API says of the service itself: what runs, replicas, settings, refusals.

const refusals: WatchedRefusal[] = Array.from({ length: 5 }, (_, index) => ({
  atMs: 5_000 - index,
  requestId: `req_${String(index)}`,
  status: 429,
  code: "rate_limited",
  route: "/v1/messages",
  keyId: index === 0 ? null : "key_1",
}));
const running: { requestId: string; outputTokens: number }[] = [];
let looks = 0;
let verifications: (() => void)[] = [];

let operators: TestOperators;
beforeAll(async () => {
  operators = await startOperators({
    running: () => Promise.resolve(running),
    refusals: () => Promise.resolve(refusals),
    look: () => void (looks += 1),
    settings: () => [
      {
        name: "TRIBUTARY_PORT",
        value: "8080",
        source: ".env",
        secret: false,
        meaning: "where to listen",
        allowed: "a port",
      },
    ],
    verify: () =>
      new Promise((resolve) => {
        verifications.push(() => void operators.ledger.verify([]).then(resolve));
      }),
  });
});
afterAll(() => operators[Symbol.asyncDispose]());

type Json = Record<string, unknown>;

test("what runs is listed with its tokens so far, and cancelled", async () => {
  // Within a millisecond, either may have the request that is listed first.
  const accounts = [
    await serveRequests(operators.ledger, 1),
    await serveRequests(operators.ledger, 1),
  ];
  const all = await operators.ask("/api/v1/generations");
  expect(all.json["data"]).toHaveLength(2);
  const [one] = all.json["data"] as Json[];
  const account = String(one?.["account"]);
  expect(accounts).toContain(account);
  expect(one).toMatchObject({ output_tokens_so_far: null, cancelling: false });
  const id = String(one?.["id"]);
  running.push({ requestId: id, outputTokens: 7 });
  const [known] = (await operators.ask("/api/v1/generations?limit=1")).json["data"] as Json[];
  expect(known).toMatchObject({ id, output_tokens_so_far: 7 });
  const cancelled = await operators.ask(`/api/v1/generations/${id}`, { method: "DELETE" });
  expect(cancelled).toMatchObject({ status: 202, json: { id, cancelling: true } });
  expect(looks).toBe(1);
  // An answer is kept for a repeat.
  for (let tries = 0; tries < 2; tries += 1) {
    const headers = { "idempotency-key": "stop" };
    const again = await operators.ask(`/api/v1/generations/${id}`, { method: "DELETE", headers });
    expect(again).toMatchObject({ status: 202, json: { id } });
  }
  const [marked] = (await operators.ask("/api/v1/generations")).json["data"] as Json[];
  expect(marked).toMatchObject({ id, cancelling: true });
  const log = await operators.ask(`/api/v1/audit?target=${id}`);
  expect(log.json["data"]).toMatchObject([{ action: "generation.cancel" }]);
  const unknown = await operators.ask("/api/v1/generations/req_x", { method: "DELETE" });
  expect(unknown).toMatchObject({ status: 404, json: { code: "not_found" } });
  const receipts = await operators.ask(`/api/v1/receipts?account=${account}&outcome=completed`);
  const [ended] = receipts.json["data"] as Json[];
  const late = await operators.ask(`/api/v1/generations/${String(ended?.["id"])}`, {
    method: "DELETE",
  });
  expect(late).toMatchObject({ status: 409, json: { code: "not_possible" } });
});

test("refusals come in pages, of the replica that is asked", async () => {
  const first = await operators.ask("/api/v1/refusals?limit=2");
  expect(first.json).toMatchObject({ replica: "here", since: "1970-01-01T00:00:00.000Z" });
  expect(first.json["data"]).toMatchObject([
    { request: "req_0", status: 429, code: "rate_limited", route: "/v1/messages", key: null },
    { request: "req_1", key: "key_1" },
  ]);
  // What comes in meanwhile moves no page.
  refusals.unshift({ ...refusals[0], requestId: "req_new" } as WatchedRefusal);
  const cursor = String(first.json["next_cursor"]);
  const rest = await operators.ask(`/api/v1/refusals?cursor=${cursor}`);
  expect((rest.json["data"] as Json[]).map(({ request }) => request)).toEqual([
    "req_2",
    "req_3",
    "req_4",
  ]);
  expect(rest.json["next_cursor"]).toBeNull();
});

test("status has the replicas of the last minute, and what of their settings differs", async () => {
  const settings = { TRIBUTARY_MODEL: "cccc", TRIBUTARY_KEEPALIVE_MS: "bbbb" };
  const facts = { ...replicaFacts, host: "two", running: 3, settings };
  await operators.ledger.reportReplica("there", { ...facts, reasons: { ledger: "away" } });
  const { json } = await operators.ask("/api/v1/status");
  expect(json).toMatchObject({ replica: "here", version: "1.2.3" });
  const [here, there] = json["replicas"] as Json[];
  expect(here).toMatchObject({ id: "here", ready: true, differs: [], running: 0 });
  expect(there).toMatchObject({
    id: "there",
    host: "two",
    ready: false,
    reasons: { ledger: "away" },
    differs: ["TRIBUTARY_MODEL"],
    running: 3,
    draining: false,
    drain_asked_by: null,
  });
  expect(there?.["settings"]).not.toBe(here?.["settings"]);
  const drained = await operators.ask("/api/v1/replicas/there/drain", { method: "POST" });
  expect(drained).toMatchObject({ status: 202, json: { id: "there" } });
  expect(drained.json["drain_asked_by"]).toMatch(/^oper_/);
  expect((await operators.ledger.reportReplica("there", facts)).drainAskedBy).not.toBeNull();
  const unknown = await operators.ask("/api/v1/replicas/nowhere/drain", { method: "POST" });
  expect(unknown).toMatchObject({ status: 404, json: { code: "not_found" } });
});

test("settings and the deployment are told", async () => {
  const settings = await operators.ask("/api/v1/settings");
  expect(settings.json["data"]).toMatchObject([
    { name: "TRIBUTARY_PORT", value: "8080", source: ".env", secret: false },
  ]);
  expect((await operators.ask("/api/v1/deployment")).json).toEqual({
    kind: "embedded",
    url: null,
    model: "tiny",
    context_tokens: 512,
    takes_tools: true,
    ready: true,
    reasons: {},
  });
});

test("one verification runs at a time, and one that runs is said", async () => {
  expect((await operators.ask("/api/v1/verify")).json).toMatchObject({ state: "never" });
  for (let tries = 0; tries < 2; tries += 1)
    expect(await operators.ask("/api/v1/verify", { method: "POST" })).toMatchObject({
      status: 202,
      json: { state: "running", report: null },
    });
  expect(verifications).toHaveLength(1);
  expect((await operators.ask("/api/v1/verify")).json).toMatchObject({ state: "running" });
  verifications[0]?.();
  await expect
    .poll(async () => (await operators.ask("/api/v1/verify")).json)
    .toMatchObject({ state: "ended", report: { ok: true, problems: [] } });
  verifications = [];
});
