import { afterEach, expect, test, vi } from "vitest";
import { DeploymentRefusal } from "../../../src/deployment/deployment-refusal.ts";
import {
  failureOfAnswer,
  failureOfStreamError,
} from "../../../src/deployment/openai-compatible/engine-failure.ts";
import type { Failure } from "../../../src/failure.ts";
import { limits } from "../../../src/limits.ts";

afterEach(() => void vi.restoreAllMocks());

const facts = {
  inputTokensEstimate: 100,
  outputTokensMax: 64_000,
  contextTokens: null,
  retryAfter: null,
  nowMs: 0,
};

function fieldsOf({ cause }: Failure) {
  if (!(cause instanceof DeploymentRefusal)) throw new Error("it has another cause");
  return cause.fields;
}

/** The longest text that any pattern was held against while `work` ran. */
function longestSearched(work: () => unknown): number {
  const exec = vi.spyOn(RegExp.prototype, "exec");
  work();
  expect(exec).toHaveBeenCalled();
  return Math.max(...exec.mock.calls.map(([text]) => text.length));
}

test.each([
  ["in its message", (text: string) => ({ error: { message: text } })],
  ["as its error", (text: string) => ({ error: text })],
  ["in its type", (text: string) => ({ error: { message: "no", type: text } })],
  ["in its code", (text: string) => ({ error: { message: "no", code: text } })],
  ["in its param", (text: string) => ({ error: { message: "context window", param: text } })],
  ["somewhere else", (text: string) => ({ error: { reason: text } })],
])("no more of an error's text than a Ki or four is searched or kept: %s", (_where, errorOf) => {
  const text = `context window ${"maximum context length is 1 tokens ".repeat(20_000)}`;
  const { deploymentWordsCharactersMax } = limits;
  for (const failure of [
    () => failureOfStreamError(errorOf(text), facts),
    () => failureOfAnswer(400, JSON.stringify(errorOf(text)), facts),
    () => failureOfAnswer(400, text, facts),
  ]) {
    expect(longestSearched(failure)).toBeLessThan(2 * deploymentWordsCharactersMax);
    const { code, param, type, words } = fieldsOf(failure());
    for (const field of [code, param, type, words])
      expect((field ?? "").length).toBeLessThanOrEqual(deploymentWordsCharactersMax);
  }
});

test("an error that is nested too deeply to be written again is still an error", () => {
  vi.spyOn(JSON, "stringify").mockImplementation(() => {
    throw new RangeError("Maximum call stack size exceeded");
  });
  expect(failureOfStreamError({ error: { a: [[]] } }, facts).code).toBe("deployment_failed");
  expect(fieldsOf(failureOfAnswer(400, '{"a":[[]]}', facts)).words).toBe("");
});
