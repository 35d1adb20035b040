import { afterAll, beforeAll, expect, it } from "vitest";
import { limits } from "../../src/limits.ts";
import { finish, type Step } from "../doubles/scripted-deployment.ts";
import { formats, startService, type TestService } from "../service/start-service.ts";

let service: TestService;
beforeAll(async () => {
  service = await startService();
});
afterAll(() => service[Symbol.asyncDispose]());

const piece = "x".repeat(64 * 1024);

/** An answer of so many characters, a multiple of a piece. */
function longAnswer(characters: number): readonly Step[] {
  const count = Math.ceil(characters / piece.length);
  return [{ type: "numbers", count, text: () => piece }, finish("stop")];
}

/** The last characters of a stream, how many there were, and the last usage in it: it is too long to keep. */
async function readTail(
  response: Response,
): Promise<{ readonly tail: string; readonly bytes: number; readonly usage: string | null }> {
  const decoder = new TextDecoder();
  let tail = "";
  let bytes = 0;
  let usage: string | null = null;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.byteLength;
    const text = tail + decoder.decode(chunk, { stream: true });
    usage = /"usage":\{"input_tokens":\d+/.exec(text)?.[0] ?? usage;
    tail = text.slice(-2_000);
  }
  return { tail, bytes, usage };
}

it.each(formats)(
  "a whole answer of $name beyond 64 Mi characters is failed, not cut",
  async (format) => {
    const before = await service.settledCredit();
    service.deployment.answerNext(...longAnswer(limits.answerCharactersMax + 1));
    const response = await service.post(format.path, format.body);
    expect(response.status).toBe(502);
    expect(await response.text()).toMatch(/longer than the service holds at once.*stream: true/);
    expect(await service.settledCredit()).toEqual(before);
  },
);

it("a stream of Responses, which repeats itself at the end, is failed beyond them too", async () => {
  const before = await service.settledCredit();
  service.deployment.answerNext(...longAnswer(limits.answerCharactersMax + 1));
  const response = await service.post("/v1/responses", { ...formats[1].body, stream: true });
  expect(response.status).toBe(200);
  const { tail } = await readTail(response);
  expect(tail).toContain("event: error\n");
  expect(tail.trimEnd().split("\n\n").at(-1)).toMatch(
    /^event: response\.failed\n|"type":"response\.failed"/,
  );
  expect(await service.settledCredit()).toEqual(before);
});

it.each([formats[0], formats[2]])("streams of $name have no such end", async (format) => {
  service.deployment.answerNext(...longAnswer(limits.answerCharactersMax + 1));
  const response = await service.post(format.path, { ...format.body, stream: true });
  const { bytes, tail } = await readTail(response);
  expect(bytes).toBeGreaterThan(limits.answerCharactersMax);
  expect(tail).toMatch(/data: \[DONE\]|event: message_stop/);
  expect((await service.settledCredit()).held).toBe(0n);
});

it("a stream of Responses just below arrives whole, with all its repetitions", async () => {
  const characters = limits.answerCharactersMax - 64 * 1024;
  service.deployment.answerNext(...longAnswer(characters));
  const response = await service.post("/v1/responses", { ...formats[1].body, stream: true });
  const { bytes, tail, usage } = await readTail(response);
  expect(bytes).toBeGreaterThan(5 * characters);
  expect(tail).toMatch(/x","annotations":\[\].*"sequence_number":\d+\}\n\n$/);
  expect(usage).not.toBeNull();
  expect((await service.settledCredit()).held).toBe(0n);
});
