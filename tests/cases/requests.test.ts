import { describe, expect, it } from "vitest";
import type { GenerationOptions } from "../../src/conversation/conversation.ts";
import { Failure, failureKinds } from "../../src/failure.ts";
import { testReasoning } from "./context.ts";
import { expected } from "./expected.ts";
import { caseFiles, isRecord, readJson } from "./files.ts";
import { wireFormats } from "../../src/formats/formats.ts";

const files = caseFiles("requests");

const nothingSaid: GenerationOptions = {
  temperature: null,
  topP: null,
  topK: null,
  stopSequences: [],
  seed: null,
  presencePenalty: null,
  frequencyPenalty: null,
  reasoningEffort: null,
  responseFormat: "text",
};

describe("a request in every spelling parses to its one conversation", () => {
  for (const file of files) {
    if (file.kind !== "request" || file.format === null) continue;
    const { format, caseId } = file;
    it(`${caseId}, ${format}`, () => {
      const wanted = files.find(
        (other) => other.caseId === caseId && other.kind === "conversation",
      );
      if (wanted === undefined) throw new Error("no conversation");
      const whole = readJson(wanted);
      const body = readJson(file);
      const before = structuredClone(body);
      const { echo: _echo, ...parsed } = wireFormats[format].parseRequest(body, testReasoning);
      expect(body, "the body is left as it was").toEqual(before);
      expect(parsed).toEqual({
        conversation: expected(whole["conversation"]),
        options: { ...nothingSaid, ...(isRecord(whole["options"]) ? whole["options"] : {}) },
        stream: whole["stream"],
        outputTokensRequested: whole["outputTokensRequested"],
        itemCount: inFormat(whole["itemCount"], format),
        toolCount: inFormat(whole["toolCount"], format),
      });
    });
  }
});

describe("a request that is refused names its field", () => {
  for (const file of files) {
    if (file.kind !== "refused" || file.format === null) continue;
    const { format, caseId } = file;
    it(`${caseId}, ${format}`, () => {
      const wanted = readJson(file);
      const body = wanted["request"];
      if (!isRecord(body)) throw new Error("no request");
      const failure = refusalOf(() => wireFormats[format].parseRequest(body, testReasoning));
      expect(failure.code).toEqual(expected(wanted["code"]));
      expect(failureKinds[failure.code].status).toBe(400);
      expect(failure.facts.param).toEqual(expected(wanted["param"]));
      expect(failure.message).toMatch(new RegExp(String(wanted["message"])));
      if ("messagesDetails" in wanted) {
        expect(failure.facts.messagesDetails).toEqual(wanted["messagesDetails"]);
      }
    });
  }
});

function refusalOf(attempt: () => unknown): Failure {
  try {
    attempt();
  } catch (error) {
    if (error instanceof Failure) return error;
    throw error;
  }
  throw new Error("the request was accepted");
}

function inFormat(value: unknown, format: string): unknown {
  return isRecord(value) ? value[format] : value;
}
