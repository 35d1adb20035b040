import { expect, test } from "vitest";
import { openRefusals } from "../../src/http/refusal-log.ts";
import { limits } from "../../src/limits.ts";
import type { RequestFacts } from "../../src/telemetry/events.ts";

const facts: RequestFacts = {
  requestId: "req_1",
  method: "POST",
  route: "/v1/messages",
  path: null,
  status: 429,
  failureCode: "rate_limited",
  client: "192.0.2.7",
  accountId: "acct_a",
  keyId: "key_a",
  totalMs: 1,
  generation: null,
};

test("the refusals that came last are kept, newest first, and nothing else of a request", () => {
  let nowMs = 5;
  const refusals = openRefusals(() => nowMs);
  const ended: RequestFacts[] = [];
  const telemetry = refusals.watch({ requestEnded: (one: RequestFacts) => void ended.push(one) });
  telemetry.requestEnded({ ...facts, failureCode: null });
  expect(refusals.list()).toEqual([]);
  expect(ended).toHaveLength(1);
  telemetry.requestEnded(facts);
  const [refusal] = refusals.list();
  expect(refusal).toEqual({
    atMs: 5,
    requestId: "req_1",
    status: 429,
    code: "rate_limited",
    route: "/v1/messages",
    keyId: "key_a",
  });
  for (let count = 1; count <= limits.refusalsKept + 2; count += 1) {
    nowMs = count;
    telemetry.requestEnded({ ...facts, requestId: `req_${String(count)}` });
  }
  const ids = refusals.list().map(({ requestId }) => requestId);
  expect(ids).toHaveLength(limits.refusalsKept);
  expect([ids[0], ids.at(-1)]).toEqual([`req_${String(limits.refusalsKept + 2)}`, "req_3"]);
});
