import * as fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { caseFiles, isRecord, readJson, type JsonRecord } from "../cases/files.ts";
import { mutate, type Mutation } from "../properties/mutate-json.ts";
import { framesOf, readFrames } from "../reader/frames.ts";
import { expectRefusal, shapeOf } from "./refusals.ts";
import { formats, startService, type TestService } from "./start-service.ts";

let service: TestService;
beforeAll(async () => {
  service = await startService({
    environment: {
      TRIBUTARY_REQUESTS_PER_MINUTE: "1000000",
      TRIBUTARY_STARTING_CREDIT: "100000",
    },
  });
});
afterAll(() => service[Symbol.asyncDispose]());

const requests = caseFiles("requests").filter((file) => file.kind === "request");

const mutation: fc.Arbitrary<Mutation> = fc.record({
  kind: fc.constantFrom("replace", "remove", "duplicate", "add", "move", "stretch"),
  place: fc.nat(),
  value: fc.oneof(
    fc.jsonValue({ maxDepth: 2 }),
    fc.constantFrom(1e308, -0, 1e-7, "\ud800", "__proto__", "a".repeat(5_000)),
  ),
});

// The same mutations meet the formats alone 1,500 times each, in tests/properties/mutated-requests.test.ts; here they meet the joints
// behind them. `npm run test:fuzz` sends thousands more.
const runs = 120;

describe.each(formats)("a mutated request at the door of $name", ({ name, path }) => {
  const files = requests.filter((file) => file.format === name);

  it("is served or refused in its format; as many reach the deployment as were admitted", async () => {
    const before = service.deployment.requests.length;
    let admitted = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...files),
        fc.array(mutation, { maxLength: 3 }),
        async (file, mutations) => {
          const body = mutations.reduce(mutateBody, readJson(file));
          const response = await service.post(path, body);
          const allowance = response.headers.get("x-tributary-output-allowance");
          if (allowance !== null) admitted += 1;
          if (response.status === 200) {
            expect(Number(allowance)).toBeGreaterThanOrEqual(1);
            expectWhole(await response.text(), response.headers, path);
          } else {
            expect(allowance).toBeNull();
            await expectBadRequest(response, path);
          }
        },
      ),
      { numRuns: runs },
    );
    expect((await service.settledCredit()).held).toBe(0n);
    expect(service.deployment.requests.length - before).toBe(admitted);
    expect(admitted / runs).toBeGreaterThanOrEqual(0.4);
    expect((await fetch(`${service.url}/readyz`)).status).toBe(200);
  });
});

describe("a mutated message to count_tokens", () => {
  const files = requests.filter((file) => file.format === "messages");
  const path = "/v1/messages/count_tokens";

  it("is counted or refused, and never reaches the deployment", async () => {
    const sent = service.deployment.requests.length;
    let counted = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...files),
        fc.array(mutation, { maxLength: 3 }),
        async (file, mutations) => {
          const body = mutations.reduce(mutateBody, readJson(file));
          const response = await service.post(path, body);
          if (response.status !== 200) return expectBadRequest(response, path);
          const { input_tokens: tokens } = (await response.json()) as { input_tokens: unknown };
          expect(Number.isSafeInteger(tokens)).toBe(true);
          expect(tokens).toBeGreaterThan(0);
          counted += 1;
        },
      ),
      { numRuns: runs / 2 },
    );
    expect(counted / (runs / 2)).toBeGreaterThanOrEqual(0.4);
    expect(service.deployment.requests.length).toBe(sent);
    expect((await service.credit()).held).toBe(0n);
  });
});

/** A 400 of one of the three kinds that a body can be refused with. */
async function expectBadRequest(response: Response, path: string): Promise<void> {
  const text = await response.clone().text();
  const code = text.includes("unsupported_value")
    ? "not_offered"
    : text.includes("context_length_exceeded")
      ? "input_too_large"
      : "invalid_request";
  const shape = shapeOf(path);
  // In the Messages shape both have one type, so the first guess holds for all.
  const param = code === "input_too_large" ? {} : { param: /./ };
  await expectRefusal(response, { code, shape, says: /.{10}/, ...param });
}

/** A body or a stream that ends as its format says. */
function expectWhole(text: string, headers: Headers, path: string): void {
  if (!(headers.get("content-type") ?? "").startsWith("text/event-stream")) {
    expect(JSON.parse(text)).toHaveProperty("usage");
    return;
  }
  const last = framesOf(readFrames(text)).at(-1);
  expect(last?.event ?? last?.data).toBe(
    path === "/v1/chat/completions"
      ? "[DONE]"
      : path === "/v1/responses"
        ? "response.completed"
        : "message_stop",
  );
}

function mutateBody(body: JsonRecord, step: Mutation): JsonRecord {
  const mutated = mutate(body, step);
  return isRecord(mutated) ? mutated : body;
}
