import { describe, expect, it } from "vitest";
import { textAnswer } from "../doubles/scripted-deployment.ts";
import type { TestService } from "../service/start-service.ts";
import { type ClientKind, connectTo } from "./client.ts";
import { startRecorder } from "./recorder.ts";
import { osloCall, romeCall, thought } from "./scripted-words.ts";
import { conversationOf } from "./use-service.ts";

const question = { role: "user", content: "How is the weather?" };

/** The loop of an agent, and conversations of several turns. */
export function describeLoops(kind: ClientKind, service: () => TestService): void {
  const loops = Object.entries(kind.loopsReturnReasoning);
  describe("tool loop", () => {
    for (const [name, returnsReasoning] of loops) {
      it(`${name}: one call`, () => ensureLoop(kind, service(), { name, toolCalls: [romeCall] }));
      // Chat Completions has no seal: it takes the reasoning that it gets.
      if (!returnsReasoning || kind.format === "chat-completions") continue;
      it(`${name}: a thought that was changed on the way does not come back`, () =>
        ensureSealed(kind, service(), name));
    }
  });
  describe("parallel tools", () => {
    for (const [name] of loops) {
      it(`${name}: two calls in one turn`, () =>
        ensureLoop(kind, service(), { name, toolCalls: [romeCall, osloCall] }));
    }
  });
  describe("multi-turn", () => {
    it("sends the turns so far with each question", () => ensureConversation(kind, service()));
  });
}

interface Loop {
  readonly name: string;
  readonly toolCalls: readonly (typeof romeCall)[];
}

async function ensureLoop(
  kind: ClientKind,
  service: TestService,
  { name, toolCalls }: Loop,
): Promise<void> {
  await using recorder = await startRecorder(service.url);
  const { deployment } = service;
  const first = deployment.requests.length;
  deployment.answerNext(
    ...textAnswer("Let me look.", { reasoning: thought, toolCalls, pieceCharacters: 4 }),
  );
  deployment.answerNext(...textAnswer("It is sunny.", { pieceCharacters: 4 }));
  const { loops } = connectTo(kind, service, { url: recorder.url });
  expect(await loops[name]?.(question.content)).toBe("It is sunny.");
  expect(recorder.statuses.filter((status) => status === 200)).toHaveLength(2);
  const sent = deployment.requests.slice(first).map(conversationOf);
  expect(sent).toEqual([
    [question],
    [
      question,
      {
        role: "assistant",
        content: "Let me look.",
        ...(kind.loopsReturnReasoning[name] === true ? { reasoning_content: thought } : {}),
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
}

async function ensureSealed(kind: ClientKind, service: TestService, name: string): Promise<void> {
  await using recorder = await startRecorder(service.url, tamper);
  const { deployment } = service;
  const first = deployment.requests.length;
  deployment.answerNext(
    ...textAnswer("", { reasoning: thought, toolCalls: [romeCall], pieceCharacters: 4 }),
  );
  deployment.answerNext(...textAnswer("It is sunny."));
  const { loops } = connectTo(kind, service, { url: recorder.url });
  expect(await loops[name]?.(question.content)).toBe("It is sunny.");
  const [, second] = deployment.requests.slice(first);
  expect(second?.body).toContain("call_rome");
  expect(second?.body).not.toContain(thought);
  expect(second?.body).not.toContain("reasoning_content");
}

/** Calls keep their text byte for byte, except in Messages and in clients that carry them parsed. */
function expectedCall(call: typeof romeCall, kind: ClientKind): unknown {
  const { id, name, arguments: json } = call;
  const text = kind.parsesCalls ? JSON.stringify(JSON.parse(json)) : json;
  return { id, type: "function", function: { name, arguments: text } };
}

/** Changes one character in the middle of every seal. */
function tamper(body: string): string {
  return body.replaceAll(
    /("(?:encrypted_content|signature)": ?")([^"]{40})(.)/g,
    (_all, name: string, start: string, character: string) =>
      `${name}${start}${character === "A" ? "B" : "A"}`,
  );
}

async function ensureConversation(kind: ClientKind, service: TestService): Promise<void> {
  const { deployment } = service;
  const first = deployment.requests.length;
  const prompts = ["My name is Ada.", "Who am I?", "And you?"];
  const replies = ["Hello Ada.", "You are Ada.", "A service."];
  for (const reply of replies) {
    deployment.answerNext(...textAnswer(reply, { reasoning: thought, pieceCharacters: 4 }));
  }
  expect(await connectTo(kind, service).converse(prompts)).toEqual(replies);
  const { lacks } = kind;
  const comesBack = lacks.reasoning === undefined && lacks["reasoning back"] === undefined;
  const turns = prompts.map((prompt, index) => [
    { role: "user", content: prompt },
    {
      role: "assistant",
      content: replies[index],
      ...(comesBack ? { reasoning_content: thought } : {}),
    },
  ]);
  expect(deployment.requests.slice(first).map(conversationOf)).toEqual(
    prompts.map((_, index) =>
      turns
        .slice(0, index + 1)
        .flat()
        .slice(0, -1),
    ),
  );
}
