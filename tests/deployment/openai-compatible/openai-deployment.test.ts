import { once } from "node:events";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { describe, expect, test } from "vitest";
import type { Conversation } from "../../../src/conversation/conversation.ts";
import type { Deployment, Ending } from "../../../src/deployment/deployment.ts";
import {
  delta,
  finish,
  frame,
  openGate,
  type ScriptedDeployment,
  startScriptedDeployment,
  statusAnswer,
  type Step,
  textAnswer,
} from "../../doubles/scripted-deployment.ts";
import { openManualTimers } from "../../doubles/manual-timers.ts";
import { untilStill } from "../../doubles/until-still.ts";
import { record, type Recording } from "../recording-sink.ts";
import { openDeployment, openReadyDeployment } from "./open-deployment.ts";

const never = new AbortController().signal;

const hi: Conversation = {
  turns: [{ role: "user", text: "hi" }],
  tools: [],
  toolChoice: { type: "auto" },
  parallelToolCalls: null,
};

function run(
  deployment: Deployment,
  onEvents?: Parameters<typeof record>[2],
  text = "hi",
): Recording {
  const conversation: Conversation = { ...hi, turns: [{ role: "user", text }] };
  const prompt = deployment.prepare(conversation, {
    temperature: null,
    topP: null,
    topK: null,
    stopSequences: [],
    seed: null,
    presencePenalty: null,
    frequencyPenalty: null,
    reasoningEffort: null,
    responseFormat: "text",
  });
  return record(deployment, prompt, onEvents);
}

function codeOf(ending: Ending): string {
  return ending.type === "failed" ? ending.failure.code : ending.type;
}

/** A clock for a deployment, which stands still until the test moves it. */
function openClock() {
  const timers = openManualTimers();
  return {
    advance: (ms: number) => timers.advance(ms),
    clock: { timers, monotonicMs: timers.monotonicMs },
  };
}

const started: Step = {
  type: "headers",
  status: 200,
  headers: { "content-type": "text/event-stream" },
};

/** Stands for a wait until what was written before has been read: a reset takes with it what is on the way. */
const untilRead: Step = { type: "hang" };

describe("an answer", () => {
  test("is passed on and ended with what the deployment says", async () => {
    await using engine = await startScriptedDeployment();
    await using deployment = await openReadyDeployment(engine.url);
    engine.answerNext(
      ...textAnswer("Hello.", {
        reasoning: "Greet.",
        toolCalls: [{ id: "c1", name: "wave", arguments: "{}" }],
        usage: { promptTokens: 9, completionTokens: 4, cachedTokens: 3, reasoningTokens: 2 },
      }),
    );
    const recording = run(deployment);
    expect(await recording.ended).toEqual({
      type: "finished",
      finish: { reason: "tool-calls", stopSequence: null },
      usage: { inputTokens: 9, cachedInputTokens: 3, outputTokens: 4, reasoningTokens: 2 },
    });
    expect(recording.acceptedCalls).toBe(1);
    expect(recording.batches.flat().map((event) => event.type)).toEqual([
      "reasoning-start",
      "reasoning-delta",
      "reasoning-end",
      "text-start",
      "text-delta",
      "text-end",
      "tool-call-start",
      "tool-call-delta",
      "tool-call-end",
    ]);
  });

  test("comes as one batch a read, however many chunks the read holds", async () => {
    await using engine = await startScriptedDeployment();
    await using deployment = await openReadyDeployment(engine.url);
    engine.answerNext(...textAnswer("x".repeat(40), { pieceCharacters: 1 }));
    const recording = run(deployment);
    expect(codeOf(await recording.ended)).toBe("finished");
    expect(recording.text).toBe("x".repeat(40));
    expect(recording.batches).toHaveLength(1);
  });

  test("comes while the deployment is still writing", async () => {
    await using engine = await startScriptedDeployment();
    await using deployment = await openReadyDeployment(engine.url);
    const gate = openGate();
    engine.answerNext(
      delta({ content: "first" }),
      gate.step,
      delta({ content: "last" }),
      finish("stop"),
    );
    const recording = run(deployment);
    await recording.begun;
    expect(recording.text).toBe("first");
    gate.open();
    expect(codeOf(await recording.ended)).toBe("finished");
    expect(recording.text).toBe("firstlast");
  });

  test("is accepted as soon as its status is there", async () => {
    await using engine = await startScriptedDeployment();
    await using deployment = await openReadyDeployment(engine.url);
    const gate = openGate();
    engine.answerNext(started, gate.step, ...textAnswer("a"));
    const recording = run(deployment);
    await recording.accepted;
    expect(recording.batches).toHaveLength(0);
    gate.open();
    expect(codeOf(await recording.ended)).toBe("finished");
  });

  test("of an engine that does not stream is folded from its body", async () => {
    await using engine = await startScriptedDeployment();
    await using deployment = await openReadyDeployment(engine.url);
    const call = { id: "c1", type: "function", function: { name: "f", arguments: '{"a":1}' } };
    const message = {
      role: "assistant",
      content: "text",
      reasoning_content: "r",
      tool_calls: [call],
    };
    engine.answerNext(
      ...statusAnswer(200, {
        object: "chat.completion",
        choices: [{ index: 0, message, finish_reason: "tool_calls" }],
        usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
      }),
    );
    const recording = run(deployment);
    expect(await recording.ended).toMatchObject({
      type: "finished",
      finish: { reason: "tool-calls" },
      usage: { inputTokens: 3, outputTokens: 2 },
    });
    expect(recording.batches.flat()).toContainEqual({
      type: "tool-call-delta",
      arguments: '{"a":1}',
    });
    engine.answerNext(...statusAnswer(200, "{"));
    expect(codeOf(await run(deployment).ended)).toBe("deployment_failed");
    engine.answerNext(...statusAnswer(200, { error: { message: "no", code: 503 } }));
    expect(codeOf(await run(deployment).ended)).toBe("overloaded");
  });

  test("whose body stays open after its last word is ended at once, and its connection soon after", async () => {
    await using engine = await startScriptedDeployment();
    const { advance, clock } = openClock();
    await using deployment = await openReadyDeployment(engine.url, {}, { clock });
    engine.answerNext(...textAnswer("a"), { type: "hang" });
    expect(codeOf(await run(deployment).ended)).toBe("finished");
    advance(1_000);
    expect((await (await engine.request(0)).ended).byPeer).toBe(true);
  });

  test.each([
    ["without a finish", textAnswer("a", { finish: null }), "deployment_failed"],
    ["with nothing in it", [started], "deployment_failed"],
    [
      "with a page of a proxy in it",
      statusAnswer(200, "<html>", { "content-type": "text/html" }),
      "deployment_failed",
    ],
    [
      "broken off before a finish",
      [delta({ content: "a" }), untilRead, { type: "reset" }],
      "deployment_failed",
    ],
    ["closed before a finish", [delta({ content: "a" }), { type: "close" }], "deployment_failed"],
    ["broken off after its headers", [started, { type: "reset" }], "deployment_failed"],
    [
      "with an error in it",
      [
        delta({ content: "a" }),
        { type: "write", bytes: 'data: {"error":{"code":500}}\n\n' },
        finish("stop"),
      ],
      "deployment_failed",
    ],
    [
      "broken off after its finish",
      [
        { type: "write", bytes: frame({ content: "a" }) + frame({}, "stop") },
        untilRead,
        { type: "reset" },
      ],
      "finished",
    ],
  ] as const)("%s: the ending is right", async (_name, steps, code) => {
    await using engine = await startScriptedDeployment();
    await using deployment = await openReadyDeployment(engine.url);
    const read = openGate();
    const all: readonly Step[] = steps;
    engine.answerNext(...all.map((step) => (step === untilRead ? read.step : step)));
    const recording = run(deployment);
    void recording.begun.then(() => read.open());
    expect(codeOf(await recording.ended)).toBe(code);
    expect(engine.requests).toHaveLength(1);
  });

  test("that the sink cannot take is failed and not paid for any longer", async () => {
    await using engine = await startScriptedDeployment();
    await using deployment = await openReadyDeployment(engine.url);
    engine.answerNext(delta({ content: "a" }), { type: "hang" });
    const recording = run(deployment, () => {
      throw new Error("the sink broke");
    });
    expect(codeOf(await recording.ended)).toBe("internal");
    expect((await (await engine.request(0)).ended).byPeer).toBe(true);
  });
});

describe("the request", () => {
  test("carries the deployment's key and nothing that could be a caller's", async () => {
    await using engine = await startScriptedDeployment({ model: "m-1" });
    await using deployment = await openReadyDeployment(engine.url);
    await run(deployment).ended;
    const request = await engine.request(0);
    expect(request.path).toBe("/v1/chat/completions");
    expect(request.json).toMatchObject({ model: "m-1", max_tokens: 65_536, stream: true });
    expect(request.headers).toEqual({
      host: engine.origin.slice("http://".length),
      connection: "keep-alive",
      "content-type": "application/json",
      "user-agent": "tributary",
      authorization: "Bearer secret-key",
      accept: "text/event-stream",
      "content-length": String(Buffer.byteLength(request.body)),
    });
  });

  test("carries no key when there is none", async () => {
    await using engine = await startScriptedDeployment();
    await using deployment = await openReadyDeployment(engine.url, { apiKey: null });
    await run(deployment).ended;
    expect((await engine.request(0)).headers).not.toHaveProperty("authorization");
  });

  test.each([
    ["", "/v1/chat/completions"],
    ["/", "/v1/chat/completions"],
    ["/v1", "/v1/chat/completions"],
    ["/v1/", "/v1/chat/completions"],
    ["/engines/llm/v1", "/engines/llm/v1/chat/completions"],
    ["/v1?api-version=3", "/v1/chat/completions?api-version=3"],
  ])("goes to the right place for an address that ends in %j", async (end, path) => {
    await using engine = await startScriptedDeployment();
    const listed = { object: "list", data: [{ id: "m", owned_by: "vllm" }] };
    engine.route("GET", path.replace("chat/completions", "models"), { body: listed });
    await using deployment = await openReadyDeployment(`${engine.origin}${end}`);
    engine.answerNext(...textAnswer("a"));
    const recording = run(deployment);
    if (!path.includes("?")) expect(codeOf(await recording.ended)).toBe("finished");
    else await recording.ended;
    const paths = [...engine.requests.map((each) => each.path), ...engine.otherRequests];
    expect(paths.some((each) => each.endsWith(path))).toBe(true);
  });

  test("goes where the models are listed, for a host that has no /v1", async () => {
    await using engine = await startScriptedDeployment();
    engine.route("GET", "/openai/models", { body: { data: [{ id: "m", owned_by: "x" }] } });
    await using deployment = await openReadyDeployment(`${engine.origin}/openai`);
    expect(codeOf(await run(deployment).ended)).toBe("finished");
    expect((await engine.request(0)).path).toBe("/openai/chat/completions");
  });

  test("uses one connection for one after the other, and one each for several at once", async () => {
    await using engine = await startScriptedDeployment();
    await using deployment = await openReadyDeployment(engine.url);
    const before = engine.connectionsAccepted;
    for (let index = 0; index < 3; index += 1) await run(deployment).ended;
    expect(engine.connectionsAccepted - before).toBe(1);
    expect(engine.requests.map((each) => each.requestOfConnection)).toEqual([1, 2, 3]);
    const endings = await Promise.all(Array.from({ length: 8 }, async () => run(deployment).ended));
    expect(endings.map(codeOf)).toEqual(Array.from({ length: 8 }, () => "finished"));
    expect(engine.connectionsAccepted - before).toBe(8);
  });
});

describe("a cancelled generation", () => {
  const phases: readonly (readonly [
    string,
    readonly Step[],
    (recording: Recording, engine: ScriptedDeployment) => Promise<unknown>,
  ])[] = [
    ["before its headers", [{ type: "hang" }], async (_recording, engine) => engine.request(0)],
    [
      "before its first event",
      [started, { type: "hang" }],
      async (recording) => recording.accepted,
    ],
    [
      "in the middle",
      [delta({ content: "a" }), { type: "hang" }],
      async (recording) => recording.begun,
    ],
    [
      "while it pours",
      [{ type: "numbers", count: 1_000_000, text: String }],
      async (recording) => recording.begun,
    ],
    [
      "while it is paused",
      [delta({ content: "a" }), { type: "hang" }],
      async (recording) => {
        await recording.begun;
        recording.generation.pause();
      },
    ],
  ];

  test.each(phases)(
    "%s leaves the deployment, long before its time limits",
    async (_name, steps, phase) => {
      await using engine = await startScriptedDeployment();
      const never = { firstEventMs: 3_600_000, silenceMs: 3_600_000 };
      await using deployment = await openReadyDeployment(engine.url, never);
      engine.answerNext(...steps);
      const recording = run(deployment);
      await phase(recording, engine);
      recording.generation.cancel();
      recording.generation.cancel();
      expect(await recording.ended).toEqual({ type: "cancelled" });
      expect(await (await engine.request(0)).ended).toMatchObject({ byPeer: true });
      const batches = recording.batches.length;
      await run(deployment).ended;
      expect(recording.batches).toHaveLength(batches);
    },
  );

  test("in the tick of its start never reaches the deployment's engine", async () => {
    await using engine = await startScriptedDeployment();
    await using deployment = await openReadyDeployment(engine.url);
    const recording = run(deployment);
    recording.generation.cancel();
    recording.generation.pause();
    recording.generation.resume();
    expect(await recording.ended).toEqual({ type: "cancelled" });
    // Whatever it had sent would be there before the next one.
    await run(deployment).ended;
    expect(engine.requests).toHaveLength(1);
  });

  test("inside its own events hears nothing more but its end", async () => {
    await using engine = await startScriptedDeployment();
    await using deployment = await openReadyDeployment(engine.url);
    engine.answerNext(...textAnswer("abc", { pieceCharacters: 1 }));
    const recording = run(deployment, (_batch, generation) => generation.cancel());
    expect(await recording.ended).toEqual({ type: "cancelled" });
    expect(recording.batches).toHaveLength(1);
  });

  test("that has ended already stays as it ended", async () => {
    await using engine = await startScriptedDeployment();
    await using deployment = await openReadyDeployment(engine.url);
    const recording = run(deployment);
    expect(codeOf(await recording.ended)).toBe("finished");
    recording.generation.cancel();
    // Another end would be heard before that of the next one, and fail as one too many.
    expect(codeOf(await run(deployment).ended)).toBe("finished");
  });

  test("is what remains of one when the deployment is disposed of", async () => {
    await using engine = await startScriptedDeployment();
    const deployment = await openReadyDeployment(engine.url);
    engine.answerNext({ type: "hang" });
    const recording = run(deployment);
    const request = await engine.request(0);
    await deployment[Symbol.asyncDispose]();
    expect(await recording.ended).toEqual({ type: "cancelled" });
    expect((await request.ended).byPeer).toBe(true);
  });
});

describe("the one retry", () => {
  /** A deployment with one idle connection that has carried a request. */
  async function withUsedConnection(engine: ScriptedDeployment): Promise<Deployment> {
    const deployment = await openReadyDeployment(engine.url);
    expect(codeOf(await run(deployment).ended)).toBe("finished");
    return deployment;
  }

  test("is made on a fresh connection when a used one closes before any byte of an answer", async () => {
    for (const way of ["reset", "close"] as const) {
      await using engine = await startScriptedDeployment();
      await using deployment = await withUsedConnection(engine);
      engine.answerNext({ type: way });
      expect(codeOf(await run(deployment).ended)).toBe("finished");
      expect(engine.requests.map((each) => each.requestOfConnection)).toEqual([1, 2, 1]);
      expect(engine.requests[2]?.body).toBe(engine.requests[1]?.body);
    }
  });

  test("is made once", async () => {
    await using engine = await startScriptedDeployment();
    await using deployment = await withUsedConnection(engine);
    engine.answerAlways({ type: "reset" });
    // An engine that dies closes what is open, then what still reaches its listener: come again, in a moment.
    expect(await run(deployment).ended).toMatchObject({
      failure: { code: "overloaded", facts: { retryAfterSeconds: 5 } },
    });
    expect(engine.requests).toHaveLength(3);
  });

  test("is not made on a connection that was fresh", async () => {
    await using engine = await startScriptedDeployment();
    await using deployment = await openReadyDeployment(engine.url);
    engine.answerNext({ type: "reset" });
    expect(codeOf(await run(deployment).ended)).toBe("deployment_failed");
    expect(engine.requests).toHaveLength(1);
  });

  test.each([
    ["its headers", [started, { type: "reset" }]],
    ["text", [delta({ content: "a" }), { type: "reset" }]],
    ["a status that says no", statusAnswer(503, "")],
  ] as const)("is not made after %s", async (_name, steps) => {
    await using engine = await startScriptedDeployment();
    await using deployment = await withUsedConnection(engine);
    engine.answerNext(...(steps as readonly Step[]));
    await run(deployment).ended;
    expect(engine.requests).toHaveLength(2);
  });

  test("is made when the deployment did not take the whole request, also on a fresh connection", async () => {
    await using engine = await startScriptedDeployment();
    await using deployment = await openReadyDeployment(engine.url);
    engine.answerNext({ type: "reset-before-body" });
    const text = "x".repeat(16 * 1024 * 1024);
    expect(codeOf(await run(deployment, undefined, text).ended)).toBe("finished");
    expect(engine.requests).toHaveLength(1);
    expect(engine.requests[0]?.body).toContain(text);
  });

  test("is made once there too", async () => {
    await using engine = await startScriptedDeployment();
    await using deployment = await openReadyDeployment(engine.url);
    engine.answerAlways({ type: "reset-before-body" });
    const before = engine.connectionsAccepted;
    const text = "x".repeat(16 * 1024 * 1024);
    expect(codeOf(await run(deployment, undefined, text).ended)).toBe("overloaded");
    expect(engine.connectionsAccepted - before).toBe(2);
  });

  test("leaves a cancelled generation alone", async () => {
    await using engine = await startScriptedDeployment();
    await using deployment = await withUsedConnection(engine);
    const gate = openGate();
    engine.answerNext(gate.step, { type: "reset" });
    const recording = run(deployment);
    await engine.request(1);
    recording.generation.cancel();
    gate.open();
    expect(await recording.ended).toEqual({ type: "cancelled" });
    await run(deployment).ended;
    expect(engine.requests).toHaveLength(3);
  });
});

describe("back-pressure", () => {
  test("stops the reading, and all is there after it", async () => {
    await using engine = await startScriptedDeployment();
    await using deployment = await openReadyDeployment(engine.url);
    const count = 130_000;
    engine.answerNext({ type: "numbers", count, text: (index) => `${index} ` }, finish("stop"));
    let resuming = false;
    const recording = run(deployment, (_batch, generation) => {
      generation.pause();
      if (resuming) setImmediate(() => generation.resume());
    });
    const request = await engine.request(0);
    await recording.begun;
    // What sockets hold, far from the 23 MB of the whole.
    expect(await untilStill(() => request.bytesWritten)).toBeLessThan(16_000_000);
    expect(recording.text.length).toBeLessThan(600_000);
    const batches = recording.batches.length;
    // A whole answer to another meanwhile brings nothing more of this one.
    expect(codeOf(await run(deployment).ended)).toBe("finished");
    expect(recording.batches).toHaveLength(batches);
    resuming = true;
    recording.generation.resume();
    expect(codeOf(await recording.ended)).toBe("finished");
    const numbers = recording.text.split(/ +/u).filter((each) => each !== "");
    expect(numbers).toHaveLength(count);
    expect(numbers.every((each, index) => each === String(index))).toBe(true);
  });

  test("before the answer begins keeps the answer away until it is over", async () => {
    await using engine = await startScriptedDeployment();
    await using deployment = await openReadyDeployment(engine.url);
    const recording = run(deployment);
    recording.generation.pause();
    await recording.accepted;
    // Whatever had not been kept away would be there before the whole answer to another.
    expect(codeOf(await run(deployment).ended)).toBe("finished");
    expect(recording.batches).toHaveLength(0);
    recording.generation.resume();
    expect(codeOf(await recording.ended)).toBe("finished");
  });
});

describe("a time limit", () => {
  test("ends a generation that does not begin", async () => {
    await using engine = await startScriptedDeployment();
    const { advance, clock } = openClock();
    await using deployment = await openReadyDeployment(
      engine.url,
      { firstEventMs: 60, silenceMs: 5_000 },
      { clock },
    );
    for (const [index, steps] of ([[], [started]] as const).entries()) {
      engine.answerNext(...steps, { type: "hang" });
      const recording = run(deployment);
      const request = await engine.request(index);
      if (index === 1) await recording.accepted;
      advance(59);
      // One that has ended has no timer.
      expect(clock.timers.waiting).toBe(1);
      advance(1);
      expect(codeOf(await recording.ended)).toBe("deployment_timeout");
      expect((await request.ended).byPeer).toBe(true);
    }
  });

  test("ends a generation that falls silent", async () => {
    await using engine = await startScriptedDeployment();
    const { advance, clock } = openClock();
    await using deployment = await openReadyDeployment(
      engine.url,
      { firstEventMs: 5_000, silenceMs: 60 },
      { clock },
    );
    engine.answerNext(delta({ content: "a" }), { type: "hang" });
    const recording = run(deployment);
    await recording.begun;
    advance(60);
    expect(await recording.ended).toMatchObject({
      failure: {
        code: "deployment_timeout",
        message: "The deployment stopped in the middle of its answer. Try again.",
      },
    });
    expect(recording.text).toBe("a");
    expect((await (await engine.request(0)).ended).byPeer).toBe(true);
  });

  test("is not touched by silence after the finish", async () => {
    await using engine = await startScriptedDeployment();
    const { advance, clock } = openClock();
    await using deployment = await openReadyDeployment(engine.url, { silenceMs: 60 }, { clock });
    const last =
      'data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}\n\n';
    engine.answerNext({ type: "write", bytes: last }, { type: "hang" });
    const recording = run(deployment);
    await recording.begun;
    advance(60);
    expect(codeOf(await recording.ended)).toBe("finished");
  });

  test("of the connection is a deployment that has too much to do", async () => {
    const silent = createServer(() => undefined);
    silent.listen(0, "127.0.0.1");
    await once(silent, "listening");
    const { port } = silent.address() as AddressInfo;
    // A TLS handshake that is never answered.
    const connectMs = 3_600_000;
    const settings = { model: "m", connectMs };
    const { advance, clock } = openClock();
    await using deployment = openDeployment(`https://127.0.0.1:${port}`, settings, { clock });
    const recording = run(deployment);
    advance(connectMs);
    expect(codeOf(await recording.ended)).toBe("overloaded");
    silent.close();
  });
});

describe("a refusal", () => {
  test.each([
    [400, "refused_by_deployment"],
    [401, "deployment_failed"],
    [404, "deployment_failed"],
    [429, "overloaded"],
    [500, "deployment_failed"],
    [503, "overloaded"],
  ])(
    "with status %i is %s, kept as the failure's cause, and never accepted",
    async (status, code) => {
      await using engine = await startScriptedDeployment();
      await using deployment = await openReadyDeployment(engine.url);
      const body = { error: { message: "words", type: "T", code: "C", param: "p" } };
      engine.answerNext(...statusAnswer(status, body, { "retry-after": "17" }));
      const recording = run(deployment);
      const ending = await recording.ended;
      expect(codeOf(ending)).toBe(code);
      expect(recording.acceptedCalls).toBe(0);
      expect(ending).toMatchObject({
        failure: {
          cause: { fields: { status, type: "T", code: "C", param: "p", words: "words" } },
        },
      });
      if (code === "overloaded")
        expect(ending).toMatchObject({ failure: { facts: { retryAfterSeconds: 17 } } });
      expect(codeOf(await run(deployment).ended)).toBe("finished");
      expect(engine.requests.map((each) => each.requestOfConnection)).toEqual([1, 2]);
    },
  );

  test("that does not end is cut", async () => {
    await using engine = await startScriptedDeployment();
    await using deployment = await openReadyDeployment(engine.url);
    engine.answerNext(
      { type: "headers", status: 400, headers: {} },
      { type: "write", bytes: "x".repeat(100_000) },
      { type: "hang" },
    );
    engine.answerNext(
      { type: "headers", status: 400, headers: {} },
      { type: "write", bytes: "x" },
      { type: "reset" },
    );
    for (let index = 0; index < 2; index += 1)
      expect(codeOf(await run(deployment).ended)).toBe("refused_by_deployment");
  });

  test("of the connection is a deployment that has too much to do", async () => {
    const engine = await startScriptedDeployment();
    await using deployment = await openReadyDeployment(engine.url);
    await engine[Symbol.asyncDispose]();
    expect(await run(deployment).ended).toMatchObject({
      type: "failed",
      failure: { code: "overloaded", facts: { retryAfterSeconds: 5 } },
    });
    await expect(deployment.check(never)).rejects.toMatchObject({ code: "overloaded" });
  });

  test("of a context that is too small has the known context length beside our estimate", async () => {
    await using engine = await startScriptedDeployment({ contextTokens: 4096 });
    await using deployment = await openReadyDeployment(engine.url);
    engine.answerNext(
      ...statusAnswer(400, { error: "the input length exceeds the context length" }),
    );
    expect(await run(deployment, undefined, "x".repeat(40_000)).ended).toMatchObject({
      failure: { code: "input_too_large", facts: { tokens: { maximum: 4096, sent: 10_032 } } },
    });
  });
});
