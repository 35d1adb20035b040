import { describe, expect, it } from "vitest";
import { Failure } from "../../src/failure.ts";
import { parseCountTokens } from "../../src/formats/messages/count-tokens.ts";
import { messagesFormat } from "../../src/formats/messages/format.ts";
import { testReasoning } from "../cases/context.ts";
import { caseFiles, isRecord, readJson } from "../cases/files.ts";

const files = caseFiles("requests").filter((file) => file.format === "messages");

describe("count_tokens takes every body that Messages takes", () => {
  for (const file of files.filter((one) => one.kind === "request")) {
    it(`${file.caseId} and counts all its texts`, () => {
      const { max_tokens: _unused, ...body } = readJson(file);
      const { texts, overheadTokens } = parseCountTokens(body, testReasoning);
      const all = texts.join("\n");
      const { conversation } = messagesFormat.parseRequest(body, testReasoning);
      for (const turn of conversation.turns) {
        const said =
          turn.role === "assistant" ? turn.parts : [{ type: "text" as const, text: turn.text }];
        for (const part of said)
          expect(all).toContain(part.type === "tool-call" ? part.arguments : part.text);
      }
      for (const tool of conversation.tools) expect(all).toContain(tool.name);
      expect(overheadTokens).toBeGreaterThan(0);
    });
  }
});

describe("count_tokens refuses what Messages refuses in a conversation", () => {
  const options = ["max-tokens", "stream", "temperature", "top-p", "top-k", "stop", "model"];
  for (const file of files.filter((one) => one.kind === "refused")) {
    if (options.some((option) => file.caseId.startsWith(option))) continue;
    it(file.caseId, () => {
      const body = readJson(file)["request"];
      if (!isRecord(body)) throw new Error("no request");
      expect(() => parseCountTokens(body, testReasoning)).toThrow(Failure);
    });
  }
});
