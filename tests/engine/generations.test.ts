import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { sliceTokens } from "../../engine/src/engine-generation.ts";
import {
  answer,
  ask,
  counts,
  openTinyEngine,
  plainOptions,
  until,
  type TinyEngine,
} from "./ask.ts";

const contextTokens = 6_144;

describe("the embedded engine", () => {
  let engine: TinyEngine;

  beforeAll(async () => {
    engine = await openTinyEngine({ contextTokens }, { contextTokens });
  }, 30_000);

  afterAll(() => engine[Symbol.asyncDispose]());

  it("answers through the chat template, token by token", async () => {
    const recording = ask(engine.deployment, { outputTokensMax: 12 });
    const ending = await recording.ended;
    expect(recording.text).toBe("012345678901");
    expect(recording.acceptedCalls).toBe(1);
    expect(ending).toMatchObject({
      type: "finished",
      finish: { reason: "length", stopSequence: null },
      usage: { outputTokens: 12, reasoningTokens: 0 },
    });
  });

  it("sends text as it comes: the first does not wait for the last", async () => {
    const recording = ask(engine.deployment, { outputTokensMax: 2_000 });
    await recording.ended;
    expect(recording.batches.length).toBeGreaterThan(3);
    expect(recording.text).toHaveLength(2_000);
  });

  it.each([1, 2, 63, 64, 65])("writes exactly the allowance of %i tokens", async (most) => {
    const { reason, text, usage } = await answer(engine.deployment, { outputTokensMax: most });
    expect(text).toHaveLength(most);
    expect(usage.outputTokens).toBe(most);
    expect(reason).toBe("length");
  });

  it("ends when the model ends its turn, and counts that token", async () => {
    const result = await answer(engine.deployment, { begin: "z" });
    expect(result).toMatchObject({ text: "", reason: "stop", stopSequence: null });
    expect(result.usage.outputTokens).toBe(1);
  });

  it("shows nothing of a stop sequence and names it", async () => {
    const recording = ask(engine.deployment, { options: { stopSequences: ["99", "567"] } });
    const ending = await recording.ended;
    expect(recording.text).toBe("01234");
    expect(ending).toMatchObject({
      type: "finished",
      finish: { reason: "stop", stopSequence: "567" },
      usage: { outputTokens: 8 },
    });
  });

  it("shows what was held back for a stop sequence when the allowance ends first", async () => {
    const result = await answer(engine.deployment, {
      outputTokensMax: 7,
      options: { stopSequences: ["5678"] },
    });
    expect(result).toMatchObject({ text: "0123456", reason: "length", stopSequence: null });
  });

  it("never breaks a character", async () => {
    for (const most of [3, 4, 5, 6, 7]) {
      const recording = ask(engine.deployment, { begin: "u", outputTokensMax: most });
      await recording.ended;
      const whole = "€u".repeat(Math.floor(most / 4)) + (most % 4 === 3 ? "€" : "");
      expect(recording.text).toBe(whole);
      for (const event of recording.batches.flat()) {
        if (event.type === "text-delta") expect(event.text).not.toContain("\ufffd");
      }
    }
  });

  it("writes the same for the same seed and at temperature 0, and other things otherwise", async () => {
    const chance = async (options: { seed?: number; temperature?: number }) => {
      const { text } = await answer(engine.deployment, { begin: "a", options });
      return text;
    };
    const first = await chance({ seed: 7, temperature: 1 });
    expect(await chance({ seed: 7, temperature: 1 })).toBe(first);
    expect(await chance({ seed: 8, temperature: 1 })).not.toBe(first);
    expect(await chance({ seed: -1, temperature: 1 })).toBe(
      await chance({ seed: -1, temperature: 1 }),
    );
    expect(await chance({ temperature: 0 })).toBe(await chance({ temperature: 0 }));
    expect(await chance({ temperature: 1 })).not.toBe(await chance({ temperature: 1 }));
  });

  it("evaluates streams together, whose tokens are there at the same time", async () => {
    const batches: number[] = [];
    // On a busy machine the first may have ended before the second is asked: then they are asked again.
    while (batches.length < 10 && !batches.some((count) => count < 240)) {
      const before = await counts(engine.deployment);
      const questions = [1, 2].map(() => answer(engine.deployment, { outputTokensMax: 200 }));
      await Promise.all(questions);
      const after = await counts(engine.deployment);
      expect(after.steps - before.steps).toBe(400);
      batches.push(after.batches - before.batches);
    }
    // A few batches of one, until both have begun and once one has ended.
    expect(Math.min(...batches)).toBeLessThan(240);
  });

  it("evaluates those alone that must be repeatable", async () => {
    const before = await counts(engine.deployment);
    const options = { temperature: 0 };
    const questions = [1, 2].map(() => answer(engine.deployment, { outputTokensMax: 50, options }));
    await Promise.all(questions);
    const after = await counts(engine.deployment);
    expect(after.batches - before.batches).toBeGreaterThanOrEqual(100);
  });

  it("takes top_k, and penalties that forbid repeating", async () => {
    const greedy = await answer(engine.deployment, { begin: "a", options: { temperature: 0 } });
    const narrow = await answer(engine.deployment, {
      begin: "a",
      options: { temperature: 2, topK: 1, seed: 3 },
    });
    expect(narrow.text).toBe(greedy.text);
    const penalized = await answer(engine.deployment, {
      begin: "a",
      outputTokensMax: 10,
      options: { temperature: 0, presencePenalty: 2, frequencyPenalty: 2 },
    });
    expect(new Set(penalized.text).size).toBe(10);
  });

  it("refuses input that leaves no room for an answer, with exact counts", async () => {
    const { usage } = await answer(engine.deployment, { user: "b", outputTokensMax: 1 });
    const around = usage.inputTokens - 1;
    const fits = await answer(engine.deployment, {
      user: "b".repeat(contextTokens - 1 - around),
      outputTokensMax: 5,
    });
    expect(fits.usage).toMatchObject({ inputTokens: contextTokens - 1, outputTokens: 1 });
    const recording = ask(engine.deployment, { user: "b".repeat(contextTokens - around) });
    const ending = await recording.ended;
    expect(recording.acceptedCalls).toBe(0);
    expect(ending.type === "failed" && ending.failure).toMatchObject({
      code: "input_too_large",
      facts: { tokens: { sent: contextTokens, maximum: contextTokens - 1 } },
    });
  });

  it("counts the tokens of a request as a generation is charged for them", async () => {
    const tools = [{ name: "weather", description: "the sky", parameters: null }];
    const turns = [
      { role: "system", text: "be brief" },
      { role: "user", text: "Is it 20 °C in Rome?" },
    ] as const;
    const { usage } = await answer(engine.deployment, { turns, tools, outputTokensMax: 1 });
    const conversation = {
      turns,
      tools,
      toolChoice: { type: "auto" },
      parallelToolCalls: null,
    } as const;
    const prompt = engine.deployment.prepare(conversation, plainOptions);
    const count = (): Promise<number | null> =>
      engine.deployment.countTokens(prompt, AbortSignal.timeout(5_000));
    // The engine is asked what it is in the background; before that it is not asked to count.
    await until(async () => (await count()) !== null);
    expect(await count()).toBe(usage.inputTokens);
  });

  it("ends with the context and never drops old turns for more", async () => {
    const { reason, usage } = await answer(engine.deployment, {
      user: "c".repeat(contextTokens - 100),
      outputTokensMax: 32_768,
    });
    expect(reason).toBe("length");
    expect(usage.inputTokens + usage.outputTokens).toBe(contextTokens);
  });

  it("counts input of megabytes without holding up a running answer", async () => {
    const running = ask(engine.deployment, { outputTokensMax: 2_000 });
    await running.begun;
    const large = ask(engine.deployment, { user: "d e ".repeat(2 ** 17) });
    const ending = await large.ended;
    expect(ending.type === "failed" && ending.failure.code).toBe("input_too_large");
    expect(await running.ended).toMatchObject({ type: "finished", usage: { outputTokens: 2_000 } });
  });

  it("treats the template's own markers in a message as plain text", async () => {
    const plain = await answer(engine.deployment, { user: "", outputTokensMax: 1 });
    const marked = await answer(engine.deployment, { user: "<|im_end|>", outputTokensMax: 1 });
    expect(marked.usage.inputTokens - plain.usage.inputTokens).toBe("<|im_end|>".length);
  });

  it("goes on with a conversation that used tools", async () => {
    const { text } = await answer(engine.deployment, {
      outputTokensMax: 3,
      turns: [
        { role: "system", text: "be brief" },
        { role: "user", text: "weather?" },
        {
          role: "assistant",
          parts: [
            { type: "reasoning", text: "hm" },
            { type: "tool-call", id: "c1", name: "weather", arguments: '{"city":"Rome"}' },
          ],
        },
        { role: "tool", callId: "c1", text: "sunny" },
      ],
    });
    expect(text).toBe("012");
  });

  it("reuses what it knows of a conversation, and says how much", async () => {
    const user = "j".repeat(500);
    const first = await answer(engine.deployment, { user, outputTokensMax: 4 });
    const before = await counts(engine.deployment);
    const turns = [
      { role: "user", text: user },
      { role: "assistant", parts: [{ type: "text", text: first.text }] },
      { role: "user", text: "more" },
    ] as const;
    const second = await answer(engine.deployment, { turns, outputTokensMax: 4 });
    const after = await counts(engine.deployment);
    expect(second.usage.cachedInputTokens).toBeGreaterThan(500);
    expect(second.usage.cachedInputTokens).toBeLessThan(second.usage.inputTokens);
    expect(after.slices - before.slices).toBeLessThanOrEqual(2);
    const exact = await answer(engine.deployment, {
      turns,
      outputTokensMax: 4,
      options: { seed: 1 },
    });
    expect(exact.usage.cachedInputTokens % sliceTokens).toBe(0);
    expect(exact.text).toBe(second.text);
  });

  it("keeps two conversations apart that begin alike", async () => {
    const system = { role: "system", text: "s".repeat(40) } as const;
    const turns = ["l", "m"].map((letter) => [
      system,
      { role: "user", text: letter.repeat(300) } as const,
    ]);
    for (const conversation of turns) await answer(engine.deployment, { turns: conversation });
    for (const conversation of turns) {
      const { usage } = await answer(engine.deployment, { turns: conversation });
      expect(usage.cachedInputTokens).toBe(usage.inputTokens - 1);
    }
  });

  it("tells nothing while paused, and all of it after", async () => {
    const recording = ask(engine.deployment, { outputTokensMax: 1_500 });
    await recording.begun;
    recording.generation.pause();
    // What was read before the pause is in the recording.
    let shown = -1;
    await until(async () => {
      const before = shown;
      shown = recording.text.length;
      await counts(engine.deployment);
      return shown === before;
    });
    for (let look = 0; look < 20; look += 1) await counts(engine.deployment);
    expect(recording.text).toHaveLength(shown);
    recording.generation.resume();
    expect(await recording.ended).toMatchObject({ type: "finished" });
    expect(recording.text).toHaveLength(1_500);
  });

  it("gives slots in order and serves more than it has", async () => {
    const recordings = Array.from({ length: 7 }, () =>
      ask(engine.deployment, { outputTokensMax: 40 }),
    );
    const order: number[] = [];
    await Promise.all(
      recordings.map(async (recording, index) => {
        expect(await recording.ended).toMatchObject({ type: "finished" });
        order.push(index);
      }),
    );
    expect(recordings.map((recording) => recording.text.length)).toEqual(Array(7).fill(40));
    expect(order.slice(0, 2).every((index) => index < 2)).toBe(true);
    await until(async () => {
      const { queued, running } = await counts(engine.deployment);
      return queued + running === 0;
    });
  });

  describe("after a cancel", () => {
    it("ends a generation that waits for a slot without ever starting it", async () => {
      const busy = [0, 1].map(() => ask(engine.deployment, { outputTokensMax: 3_000 }));
      await Promise.all(busy.map((recording) => recording.begun));
      const waiting = ask(engine.deployment, {});
      await until(async () => (await counts(engine.deployment)).queued === 1);
      waiting.generation.cancel();
      expect(await waiting.ended).toEqual({ type: "cancelled" });
      await until(async () => (await counts(engine.deployment)).queued === 0);
      expect(waiting.acceptedCalls).toBe(0);
      for (const { generation } of busy) generation.cancel();
      await Promise.all(busy.map((recording) => recording.ended));
      await until(async () => (await counts(engine.deployment)).running === 0);
    });

    it("evaluates one slice more at most, during the prompt", async () => {
      const before = await counts(engine.deployment);
      const recording = ask(engine.deployment, { user: "k".repeat(5_500), options: { seed: 5 } });
      await until(async () => (await counts(engine.deployment)).slices > before.slices + 2);
      recording.generation.cancel();
      const atCancel = await counts(engine.deployment);
      expect(await recording.ended).toEqual({ type: "cancelled" });
      await until(async () => (await counts(engine.deployment)).running === 0);
      const after = await counts(engine.deployment);
      expect(after.slices - before.slices).toBeLessThan(5_500 / sliceTokens - 1);
      expect(after.slices - atCancel.slices).toBeLessThanOrEqual(1);
      expect(after.steps).toBe(before.steps);
      expect(recording.batches.flat()).toEqual([]);
    });

    it("tells of tokens whose text was held back", async () => {
      const recording = ask(engine.deployment, {
        outputTokensMax: 3_000,
        options: { stopSequences: ["1234567890".repeat(250)] },
      });
      await recording.begun;
      const before = await counts(engine.deployment);
      await until(async () => (await counts(engine.deployment)).steps > before.steps + 20);
      recording.generation.cancel();
      expect(await recording.ended).toEqual({ type: "cancelled" });
      expect(recording.text).toBe("0");
      expect(recording.usages.at(-1)?.outputTokens).toBeGreaterThan(20);
      await until(async () => (await counts(engine.deployment)).running === 0);
    });

    it("takes one step more at most, in the middle of the text", async () => {
      const recording = ask(engine.deployment, { outputTokensMax: 3_000 });
      await recording.begun;
      recording.generation.cancel();
      const atCancel = await counts(engine.deployment);
      expect(await recording.ended).toEqual({ type: "cancelled" });
      await until(async () => (await counts(engine.deployment)).running === 0);
      const after = await counts(engine.deployment);
      expect(after.steps - atCancel.steps).toBeLessThanOrEqual(1);
      expect(recording.text.length).toBeLessThan(3_000);
    });

    it("ends a paused generation, and one that is ending already only once", async () => {
      const paused = ask(engine.deployment, { outputTokensMax: 3_000 });
      await paused.begun;
      paused.generation.pause();
      paused.generation.cancel();
      paused.generation.cancel();
      expect(await paused.ended).toEqual({ type: "cancelled" });
      await until(async () => (await counts(engine.deployment)).running === 0);
      const done = ask(engine.deployment, { outputTokensMax: 1 });
      await done.ended;
      done.generation.cancel();
      await counts(engine.deployment);
    });
  });

  it("constrains an answer to JSON where that is asked", async () => {
    const { text } = await answer(engine.deployment, {
      outputTokensMax: 12,
      options: { responseFormat: "json-object", temperature: 0 },
    });
    expect(text.trimStart()).toMatch(/^\{/);
  });

  it("describes what it loaded", async () => {
    expect(engine.deployment.describe()).toEqual({
      ready: true,
      model: "tiny.gguf",
      contextTokens,
      takesTools: true,
    });
    await engine.deployment.check(AbortSignal.timeout(5_000));
    expect(engine.lines.map(({ event }) => event)).toContain("model loaded");
  });
});

describe("a model without a chat template", () => {
  it("answers through a template of its family", async () => {
    await using engine = await openTinyEngine({}, { chatTemplate: null });
    const { text } = await answer(engine.deployment, { outputTokensMax: 5 });
    expect(text).not.toBe("");
    expect(engine.lines.some(({ event }) => event === "model warning")).toBe(true);
  }, 30_000);
});

describe("a template that refuses a conversation", () => {
  it("is told as a refusal that says what to send", async () => {
    const strict =
      "{% if messages | length > 12 %}{{ raise_exception('too many') }}{% endif %}{% for message in messages %}" +
      "{{ message['role'] + '\n' + message['content'] + '<|im_end|>' }}{% endfor %}";
    await using engine = await openTinyEngine({}, { chatTemplate: strict });
    const { text } = await answer(engine.deployment, { begin: "0", outputTokensMax: 3 });
    expect(text).toBe("123");
    const turns = Array.from({ length: 14 }, (_, index) =>
      index % 2 === 0
        ? ({ role: "user", text: "a" } as const)
        : ({ role: "assistant", parts: [{ type: "text", text: "b" }] } as const),
    );
    const ending = await ask(engine.deployment, { turns }).ended;
    expect(ending.type === "failed" && ending.failure.code).toBe("refused_by_deployment");
    // Its neighbours are served as before.
    expect((await answer(engine.deployment, { begin: "0", outputTokensMax: 3 })).text).toBe("123");
  }, 30_000);
});
