import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { costNanos } from "../../src/admission/price.ts";
import { isRecord } from "../cases/files.ts";
import {
  delta,
  finish,
  type RecordedRequest,
  statusAnswer,
  type Step,
  textAnswer,
  type TextAnswerParts,
} from "../doubles/scripted-deployment.ts";
import { startService, type TestService } from "../service/start-service.ts";
import {
  type ClientKind,
  connectTo,
  errorOf,
  openRecordingFetch,
  type RecordingFetch,
  type SeenAnswer,
  silence,
} from "./client.ts";

const usage = { promptTokens: 21, completionTokens: 9, cachedTokens: 4, reasoningTokens: 3 };
const thought = "Two cities, so two calls.";
const romeCall = { id: "call_rome", name: "weather", arguments: '{"city": "Rome"}' };
const osloCall = { id: "call_oslo", name: "weather", arguments: '{ "city":"Oslo" }' };
const modes = ["whole", "streamed"] as const;

/** Answers that a client must see alike as a stream and as a body. */
const answers: Readonly<Record<string, readonly [text: string, parts: TextAnswerParts]>> = {
  text: ["Grüße aus Rom, 😀.", {}],
  "a thought and a text": ["It is sunny.", { reasoning: thought }],
  "a call": ["", { toolCalls: [romeCall] }],
  "a text and a call": ["Let me look.", { toolCalls: [romeCall] }],
  "a thought, a text and two calls": [
    "Both.",
    { reasoning: thought, toolCalls: [romeCall, osloCall] },
  ],
  "a call without arguments": ["", { toolCalls: [{ ...romeCall, arguments: "{}" }] }],
  "a text that was cut": ["It is", { finish: "length" }],
  nothing: ["", {}],
};

/** What every client must see of the service, whichever it is; its own file says what only it has. */
export function describeClient(kind: ClientKind): void {
  describe(kind.name, () => {
    const service = useService();
    describeAnswers(kind, service);
    describeLoops(kind, service);
    describeErrors(kind, service);
    describeLeaving(kind, service);
    describePatience(kind);
  });
}

/** A service for all tests of a block, begun with it. */
export function useService(environment: Readonly<Record<string, string>> = {}): () => TestService {
  let service: TestService | null = null;
  beforeAll(async () => {
    service = await startService({ environment });
  });
  afterAll(() => service?.[Symbol.asyncDispose]());
  return () => {
    if (service === null) throw new Error("the service has not started");
    return service;
  };
}

function describeAnswers(kind: ClientKind, service: () => TestService): void {
  describe("answers", () => {
    for (const [name, [text, parts]] of Object.entries(answers)) {
      it(`sees ${name} in a stream as in the body`, async () => {
        const client = connectTo(kind, service());
        const question = { prompt: "How is the weather?", tools: true };
        const steps = textAnswer(text, { usage, pieceCharacters: 3, ...parts });
        service().deployment.answerNext(...steps);
        const whole = await client.whole(question);
        service().deployment.answerNext(...steps);
        const heard: string[] = [];
        const streamed = await client.streamed({
          ...question,
          onText: (piece) => heard.push(piece),
        });
        expect(streamed).toEqual(whole);
        expect(heard.join("")).toBe(text);
        if (text.length > 3) expect(heard.length).toBeGreaterThan(1);
        const calls = (parts.toolCalls ?? []).map(({ id, name, arguments: json }) => ({
          id,
          name,
          input: JSON.parse(json) as unknown,
        }));
        const { finishes } = kind;
        expect(streamed).toMatchObject({
          text,
          reasoning: kind.showsReasoning ? (parts.reasoning ?? "") : "",
          calls,
          finish:
            parts.finish === "length"
              ? finishes.length
              : calls.length > 0
                ? finishes.calls
                : finishes.stop,
          inputTokens: usage.promptTokens,
          outputTokens: usage.completionTokens,
        } satisfies Omit<SeenAnswer, "vendor">);
      });
    }

    it("pays what the deployment counted", async () => {
      const { key, accountId } = await service().newKey("10");
      const client = connectTo(kind, service(), { key });
      const before = (await service().credit(accountId)).balance;
      for (const mode of modes) {
        service().deployment.answerNext(...textAnswer("paid", { usage }));
        await client[mode]({ prompt: "Hello" });
      }
      const charge = costNanos(21, 9, service().config.prices) * 2n;
      expect((await service().settledCredit(accountId)).balance).toBe(before - charge);
    });
  });
}

function describeLoops(kind: ClientKind, service: () => TestService): void {
  describe("tool loops", () => {
    for (const [name, returnsReasoning] of Object.entries(kind.loopsReturnReasoning)) {
      it.each([
        ["one call", [romeCall]],
        ["two calls in one turn", [romeCall, osloCall]],
      ] as const)(`${name}: %s`, async (_name, toolCalls) => {
        const recording = openRecordingFetch();
        const { deployment } = service();
        const first = deployment.requests.length;
        deployment.answerNext(
          ...textAnswer("Let me look.", { reasoning: thought, toolCalls, pieceCharacters: 4 }),
        );
        deployment.answerNext(...textAnswer("It is sunny.", { pieceCharacters: 4 }));
        const { loops } = connectTo(kind, service(), recording);
        expect(await loops[name]?.("How is the weather?")).toBe("It is sunny.");
        expect(recording.statuses.filter((status) => status === 200)).toHaveLength(2);
        const sent = deployment.requests.slice(first).map(conversationOf);
        const question = { role: "user", content: "How is the weather?" };
        expect(sent).toEqual([
          [question],
          [
            question,
            {
              role: "assistant",
              content: "Let me look.",
              ...(returnsReasoning ? { reasoning_content: thought } : {}),
              tool_calls: toolCalls.map((call) => expectedCall(call, kind)),
            },
            ...toolCalls.map(({ id, arguments: json }) => ({
              role: "tool",
              tool_call_id: id,
              content: expect.stringContaining(
                `${(JSON.parse(json) as { city: string }).city}: sun, 21 degrees`,
              ) as unknown,
            })),
          ],
        ]);
      });

      // Chat Completions has no seal: it takes the reasoning that it gets.
      if (!returnsReasoning || kind.format === "chat-completions") continue;
      it(`${name}: a thought that was changed on the way does not come back`, async () => {
        const recording = openRecordingFetch(tamper);
        const { deployment } = service();
        const first = deployment.requests.length;
        deployment.answerNext(
          ...textAnswer("", { reasoning: thought, toolCalls: [romeCall], pieceCharacters: 4 }),
        );
        deployment.answerNext(...textAnswer("It is sunny."));
        const { loops } = connectTo(kind, service(), recording);
        expect(await loops[name]?.("How is the weather?")).toBe("It is sunny.");
        const [, second] = deployment.requests.slice(first);
        expect(second?.body).toContain("call_rome");
        expect(second?.body).not.toContain(thought);
        expect(second?.body).not.toContain("reasoning_content");
      });
    }
  });
}

/** Calls keep their text byte for byte, except in Messages, which carries them parsed. */
function expectedCall(call: typeof romeCall, kind: ClientKind): unknown {
  const { id, name, arguments: json } = call;
  const exact = kind.format !== "messages" && !kind.name.startsWith("ai ");
  const text = exact ? json : JSON.stringify(JSON.parse(json));
  return { id, type: "function", function: { name, arguments: text } };
}

/** The messages of a request to the deployment, without absent contents. */
export function conversationOf(request: RecordedRequest): readonly unknown[] {
  const messages = isRecord(request.json) ? request.json["messages"] : null;
  if (!Array.isArray(messages)) throw new Error(`no messages in ${request.body}`);
  return messages;
}

/** Changes one character in the middle of every seal. */
export function tamper(body: string): string {
  return body.replaceAll(
    /("(?:encrypted_content|signature)":")([^"]{40})(.)/g,
    (_all, name: string, start: string, character: string) =>
      `${name}${start}${character === "A" ? "B" : "A"}`,
  );
}

function describeErrors(kind: ClientKind, service: () => TestService): void {
  describe("errors", () => {
    async function expectError(
      error: unknown,
      status: keyof ClientKind["errorNames"],
      wireStatus: number = status,
    ): Promise<ReturnType<ClientKind["describeError"]>> {
      const seen = kind.describeError(error);
      expect(seen).toMatchObject({ status: wireStatus, name: kind.errorNames[status] });
      expect(seen.requestId).toMatch(/^req_/);
      return seen;
    }

    describe.each(modes)("%s", (mode) => {
      const ask = async (
        different: Parameters<typeof connectTo>[2],
        prompt = "Hello",
      ): Promise<{ readonly error: unknown; readonly recording: RecordingFetch }> => {
        const recording = openRecordingFetch();
        const connection = { maxRetries: 2, fetch: recording.fetch, ...different };
        const client = connectTo(kind, service(), connection);
        return { error: await errorOf(client[mode]({ prompt })), recording };
      };

      it("a wrong key is 401 and asked once", async () => {
        const { error, recording } = await ask({ key: `${service().key.slice(0, -3)}aaa` });
        await expectError(error, 401);
        expect(recording.statuses).toEqual([401]);
      });

      it("no credit is 402 and asked once", async () => {
        const { key } = await service().newKey("0.000001");
        const { error, recording } = await ask({ key });
        const { message } = await expectError(error, 402);
        expect(message).toMatch(/credit/i);
        expect(recording.statuses).toEqual([402]);
      });

      it("a disabled account is 403 and asked once", async () => {
        const { key, accountId } = await service().newKey("1");
        await service().ledger.setAccountStatus(accountId, "disabled");
        const { error, recording } = await ask({ key });
        await expectError(error, 403);
        expect(recording.statuses).toEqual([403]);
      });

      it("a doubled base address is 404, tells the right one and is asked once", async () => {
        const { error, recording } = await ask({ url: `${service().url}/v1` });
        const { message } = await expectError(error, 404);
        expect(message).toContain("/v1");
        expect(recording.statuses).toEqual([404]);
      });

      it("a body above 4 MiB is 413 and asked once", async () => {
        const { error, recording } = await ask({}, "x".repeat(4 * 1_048_576));
        await expectError(error, 413);
        expect(recording.statuses).toEqual([413]);
      });

      it("a failing deployment is 502 and names no address of it", async () => {
        service().deployment.answerNext(...statusAnswer(500, { error: { message: "cuda" } }));
        const { error } = await ask({ maxRetries: 0 });
        const { message } = await expectError(error, 502);
        expect(message).not.toMatch(/cuda|127\.0\.0\.1/);
      });
    });

    it("an overloaded deployment is 503 or 529 with the time to wait", async () => {
      service().deployment.answerNext(...statusAnswer(429, {}));
      const error = await errorOf(connectTo(kind, service()).streamed({ prompt: "Hello" }));
      const status = kind.format === "messages" ? 529 : 503;
      expect((await expectError(error, 503, status)).retryAfter).toBe("5");
    });

    it("something that is not offered is 400, names the field and is asked once", async () => {
      const recording = openRecordingFetch();
      const client = connectTo(kind, service(), { maxRetries: 2, fetch: recording.fetch });
      const sent = service().deployment.requests.length;
      const { message } = await expectError(await errorOf(client.askForTheImpossible()), 400);
      expect(`${message} ${recording.answers.join("")}`).toContain(kind.impossibleField);
      expect(recording.statuses).toEqual([400]);
      expect(service().deployment.requests).toHaveLength(sent);
    });

    it("too many requests of a key are 429 with the time to wait", async () => {
      await using strict = await startService({
        environment: { TRIBUTARY_REQUESTS_PER_MINUTE: "1" },
      });
      const client = connectTo(kind, strict);
      await client.streamed({ prompt: "Hello" });
      const error = await errorOf(client.streamed({ prompt: "Hello" }));
      const { retryAfter } = await expectError(error, 429);
      expect(Number(retryAfter)).toBeGreaterThan(50);
      expect(Number(retryAfter)).toBeLessThanOrEqual(60);
    });

    it.each([
      ["ends without a finish", [delta({ content: "half" })]],
      ["is reset", [delta({ content: "half" }), silence(30), { type: "reset" }]],
      ["says an error", [delta({ content: "half" }), errorStep, finish("stop")]],
    ] as readonly (readonly [string, readonly Step[]])[])(
      "a stream throws, costs nothing and is not asked again when the deployment %s",
      async (_name, steps) => {
        const { key, accountId } = await service().newKey("10");
        const recording = openRecordingFetch();
        const connection = { key, maxRetries: 2, fetch: recording.fetch };
        const client = connectTo(kind, service(), connection);
        const before = (await service().credit(accountId)).balance;
        service().deployment.answerNext(...steps);
        const heard: string[] = [];
        const onText = (piece: string): void => void heard.push(piece);
        const error = await errorOf(client.streamed({ prompt: "Hello", onText }));
        expect(heard.join("")).toBe("half");
        expect(kind.describeError(error).message).toMatch(/deployment/i);
        expect(recording.statuses).toEqual([200]);
        expect((await service().settledCredit(accountId)).balance).toBe(before);
      },
    );
  });
}

const errorStep: Step = {
  type: "write",
  bytes: 'data: {"error":{"message":"boom","code":500}}\n\n',
};

/** Tests that mostly wait: at the same time, each with a service of its own. */
function describePatience(kind: ClientKind): void {
  describe.concurrent("patience", () => {
    it("waits as told when the deployment is overloaded, then succeeds", async ({ expect }) => {
      await using service = await startService();
      const refusal = statusAnswer(503, {}, { "retry-after": "1" });
      for (let count = 0; count < modes.length; count += 1)
        service.deployment.answerNext(...refusal);
      const overloaded = kind.format === "messages" ? 529 : 503;
      await Promise.all(
        modes.map(async (mode) => {
          const recording = openRecordingFetch();
          const client = connectTo(kind, service, { maxRetries: 1, fetch: recording.fetch });
          const startMs = performance.now();
          const { text } = await client[mode]({ prompt: "Hello" });
          expect(text).toBe("Hello from the deployment.");
          expect(performance.now() - startMs).toBeGreaterThan(990);
          expect(recording.statuses).toEqual([overloaded, 200]);
        }),
      );
    });

    it("waits as told for one of four places, then succeeds", async ({ expect }) => {
      await using service = await startService();
      const recording = openRecordingFetch();
      const client = connectTo(kind, service, { maxRetries: 1, fetch: recording.fetch });
      service.deployment.answerAlways({ type: "hang" });
      const leaving = new AbortController();
      const four = Array.from({ length: 4 }, () =>
        errorOf(connectTo(kind, service).whole({ prompt: "Hello", signal: leaving.signal })),
      );
      await service.deployment.request(3);
      service.deployment.answerAlways(...textAnswer("a place"));
      const fifth = client.streamed({ prompt: "Hello" });
      while (recording.statuses.length === 0) await sleep(5);
      const refusedMs = performance.now();
      leaving.abort();
      expect((await fifth).text).toBe("a place");
      expect(performance.now() - refusedMs).toBeGreaterThan(1_950);
      expect(recording.statuses).toEqual([429, 200]);
      await Promise.all(four);
    });

    it("lasts through silence before, between and inside of what it reads", async ({ expect }) => {
      const keepaliveMs = 120;
      await using service = await startService({
        environment: { TRIBUTARY_KEEPALIVE_MS: String(keepaliveMs) },
      });
      service.deployment.answerNext(...haltingAnswer(keepaliveMs * 3.5));
      const recording = openRecordingFetch();
      const client = connectTo(kind, service, recording);
      const seen = await client.streamed({ prompt: "Hello", tools: true });
      expect(seen).toMatchObject({
        text: "Let me look.",
        reasoning: kind.showsReasoning ? thought : "",
        calls: [{ id: "call_rome", name: "weather", input: { city: "Rome" } }],
        finish: kind.finishes.calls,
      });
      const pings = recording.answers.join("").split(": ping\n\n").length - 1;
      expect(pings).toBeGreaterThanOrEqual(4 * 2);
    });
  });
}

/** A thought, a text and a call with a pause before each and inside of two. */
function haltingAnswer(pauseMs: number): readonly Step[] {
  const pause = silence(pauseMs);
  const call = { index: 0, id: "call_rome", type: "function" };
  const pieceOf = (json: string): Step =>
    delta({ tool_calls: [{ index: 0, function: { arguments: json } }] });
  return [
    // The deployment has the request, so the answer begins, with nothing in it.
    { type: "write", bytes: ": processing\n\n" },
    pause,
    delta({ reasoning_content: thought }),
    pause,
    delta({ content: "Let me" }),
    pause,
    delta({ content: " look." }),
    delta({ tool_calls: [{ ...call, function: { name: "weather", arguments: "" } }] }),
    pieceOf('{"city":'),
    pause,
    pieceOf('"Rome"}'),
    finish("tool_calls", usage),
  ];
}

/** When a client leaves, what the deployment does then, and whether output had begun. */
const phases: readonly (readonly [name: string, steps: readonly Step[], pays: boolean])[] = [
  ["before the deployment answers", [{ type: "hang" }], false],
  [
    "while the prompt is processed",
    [{ type: "write", bytes: ": processing\n\n" }, { type: "hang" }],
    false,
  ],
  ["in mid-text", [delta({ content: "one" }), delta({ content: " two" }), { type: "hang" }], true],
];

function describeLeaving(kind: ClientKind, service: () => TestService): void {
  describe.each(modes)("leaving, %s", (mode) => {
    it.each(phases)("stops the deployment when it leaves %s", async (_name, steps, pays) => {
      const { key, accountId } = await service().newKey("10");
      const { deployment } = service();
      const count = deployment.requests.length;
      deployment.answerNext(...steps);
      const leaving = new AbortController();
      const heard = Promise.withResolvers<void>();
      const recording = openRecordingFetch();
      let text = "";
      const onText = (piece: string): void => {
        text += piece;
        if (text === "one two") heard.resolve();
      };
      const asked = errorOf(
        connectTo(kind, service(), { key, fetch: recording.fetch })[mode]({
          prompt: "Hello",
          signal: leaving.signal,
          onText,
        }),
      );
      const request = await deployment.request(count);
      expect((await service().credit(accountId)).held).toBeGreaterThan(0n);
      if (pays && mode === "streamed") await heard.promise;
      // What has reached the service shows nowhere until then.
      else await sleep(100);
      const leftMs = performance.now();
      leaving.abort();
      await asked;
      const end = await Promise.race([request.ended, sleep(3_000, null)]);
      expect(end?.byPeer).toBe(true);
      expect((end?.atMs ?? Infinity) - leftMs).toBeLessThan(1_000);
      const { balance } = await service().settledCredit(accountId);
      const inputTokens = Math.ceil(Buffer.byteLength(recording.requests[0] ?? "") / 4);
      const charge = pays ? costNanos(inputTokens, 2, service().config.prices) : 0n;
      expect(balance).toBe(10_000_000_000n - charge);
      expect(deployment.requests).toHaveLength(count + 1);
    });
  });
}
