import { describe, expect, it } from "vitest";
import { costNanos } from "../../src/admission/price.ts";
import { finish, textAnswer, type TextAnswerParts } from "../doubles/scripted-deployment.ts";
import type { TestService } from "../service/start-service.ts";
import type { Particular } from "./capabilities.ts";
import { type ClientKind, connectTo, modes, type SeenAnswer } from "./client.ts";
import { noteLack } from "./note-lack.ts";
import { osloCall, romeCall, thought, usage } from "./scripted-words.ts";

type Answers = Readonly<Record<string, readonly [text: string, parts: TextAnswerParts]>>;

/** Answers that a client must see alike as a stream and as a body. */
const answers = {
  text: {
    text: ["Grüße aus Rom, 😀.", {}],
    "a text that was cut": ["It is", { finish: "length" }],
    nothing: ["", {}],
  },
  reasoning: {
    "a thought and a text": ["It is sunny.", { reasoning: thought }],
    "a thought, a text and two calls": [
      "Both.",
      { reasoning: thought, toolCalls: [romeCall, osloCall] },
    ],
  },
  "tool calls": {
    "a call": ["", { toolCalls: [romeCall] }],
    "a text and a call": ["Let me look.", { toolCalls: [romeCall] }],
    "a call without arguments": ["", { toolCalls: [{ ...romeCall, arguments: "{}" }] }],
    "two calls": ["", { toolCalls: [romeCall, osloCall] }],
  },
} as const satisfies Readonly<Record<string, Answers>>;

/** What a client shows of an answer, streamed or not. */
export function describeAnswers(kind: ClientKind, service: () => TestService): void {
  for (const [suite, ofSuite] of Object.entries(answers)) {
    describe(suite, () => {
      if (suite === "reasoning" && !noteLack(kind, "reasoning")) noteLack(kind, "reasoning back");
      if (suite === "text") noteLack(kind, "input tokens of a stream");
      for (const [name, answer] of Object.entries<Answers[string]>(ofSuite)) {
        if (isLack(name) && noteLack(kind, name)) continue;
        it(`sees ${name} in a stream as in the body`, () => ensureSame(kind, service(), answer));
      }
      if (suite === "text") itPays(kind, service);
    });
  }
}

const lacksOfAnswers: readonly string[] = [
  "a text that was cut",
  "nothing",
] satisfies readonly Particular[];

function isLack(name: string): name is Particular {
  return lacksOfAnswers.includes(name);
}

async function ensureSame(
  kind: ClientKind,
  service: TestService,
  [text, parts]: Answers[string],
): Promise<void> {
  const client = connectTo(kind, service);
  const question = { prompt: "How is the weather?", tools: true };
  const steps = textAnswer(text, { usage, pieceCharacters: 3, ...parts });
  service.deployment.answerNext(...steps);
  const whole = await client.whole(question);
  service.deployment.answerNext(...steps);
  const heard: string[] = [];
  const onText = (piece: string): void => void heard.push(piece);
  const streamed = await client.streamed({ ...question, onText });
  const estimated = kind.lacks["input tokens of a stream"] !== undefined;
  if (estimated) expect(streamed.inputTokens).toBeGreaterThan(0);
  expect({ ...streamed, ...(estimated ? { inputTokens: whole.inputTokens } : {}) }).toEqual(whole);
  expect(heard.join("")).toBe(text);
  if (text.length > 3) expect(heard.length).toBeGreaterThan(1);
  const calls = (parts.toolCalls ?? []).map(({ id, name, arguments: json }) => ({
    id,
    name,
    input: JSON.parse(json) as unknown,
  }));
  const end = parts.finish === "length" ? "length" : calls.length > 0 ? "calls" : "stop";
  expect(whole).toMatchObject({
    text,
    reasoning: kind.lacks.reasoning === undefined ? (parts.reasoning ?? "") : "",
    calls,
    finish: kind.finishes?.[end] ?? null,
    inputTokens: usage.promptTokens,
    outputTokens: usage.completionTokens,
  } satisfies Omit<SeenAnswer, "vendor">);
}

function itPays(kind: ClientKind, service: () => TestService): void {
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
}

/** A long answer in pieces of one word, none lost, each heard before the next. */
export function describeManyChunks(kind: ClientKind, service: () => TestService): void {
  describe("1,000 chunks", () => {
    it("arrive whole and in order", async () => {
      const words = Array.from({ length: 1_000 }, (_, index) => `${String(index)} `);
      service().deployment.answerNext(
        { type: "numbers", count: words.length, text: (index) => words[index] ?? "" },
        finish("stop", usage),
      );
      const heard: string[] = [];
      const onText = (piece: string): void => void heard.push(piece);
      const seen = await connectTo(kind, service()).streamed({ prompt: "Count", onText });
      expect(seen.text).toBe(words.join(""));
      expect(heard).toEqual(words);
      expect(seen).toMatchObject({ outputTokens: usage.completionTokens });
    });
  });
}
