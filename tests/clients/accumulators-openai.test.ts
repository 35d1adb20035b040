import * as fc from "fast-check";
import OpenAI, { APIError } from "openai";
import type { ChatCompletionStreamParams } from "openai/lib/ChatCompletionStream";
import type { ResponseStreamParams } from "openai/lib/responses/ResponseStream";
import { describe, expect, it } from "vitest";
import { caseFiles, isRecord, readJson, readText, type JsonRecord } from "../cases/files.ts";
import { bodyOf, plainRequest, readSteps, requestOf, streamOf } from "../cases/generations.ts";
import { arbitraryGeneration, offeredTools, stepsOf } from "../properties/arbitrary-generation.ts";
import { noRetries, serveStream, without, type FakeServer } from "./accumulators.ts";

const goldens = caseFiles("generations");

function connect(server: FakeServer): OpenAI {
  return new OpenAI({ ...noRetries, baseURL: "http://127.0.0.1/v1", fetch: server.fetch });
}

/** The case files are requests that this SDK could send; its types would have them written out in TypeScript. */
async function foldChat(request: JsonRecord, server: FakeServer): Promise<unknown> {
  const params = request as unknown as ChatCompletionStreamParams;
  return connect(server).chat.completions.stream(params).finalChatCompletion();
}

async function foldResponse(request: JsonRecord, server: FakeServer): Promise<unknown> {
  const params = request as unknown as ResponseStreamParams;
  return connect(server).responses.stream(params).finalResponse();
}

/** The helper keeps the last piece of a field that it does not know, so reasoning is compared by another client. */
const addedByChatHelper = ["parsed", "parsed_arguments", "reasoning_content"];
const addedByResponsesHelper = ["parsed", "parsed_arguments", "output_parsed", "output_text"];

function comparableChat(body: unknown): unknown {
  const bare = without(body, addedByChatHelper);
  if (!isRecord(bare) || !Array.isArray(bare["choices"])) throw new Error("no choices");
  const choices = bare["choices"].map((choice: unknown) => {
    if (!isRecord(choice) || !isRecord(choice["message"])) throw new Error("no message");
    return {
      ...choice,
      message: { ...choice["message"], content: choice["message"]["content"] ?? "" },
    };
  });
  return { ...bare, object: "chat.completion", choices };
}

describe("openai's chat.completions.stream folds a golden stream to the golden body", () => {
  for (const file of goldens) {
    if (file.kind !== "stream" || file.format !== "chat-completions") continue;
    const { caseId } = file;
    const golden = goldens.find((other) => other.name === `${caseId}.chat-completions.json`);
    it(caseId, async () => {
      const request = requestOf(caseId, "chat-completions");
      const folded = foldChat(request, serveStream(readText(file)));
      if (golden === undefined) return expect(folded).rejects.toBeInstanceOf(APIError);
      const body = readJson(golden);
      const { usage: _usage, ...unasked } = body;
      expect(comparableChat(await folded)).toEqual(
        comparableChat(caseId === "answer-no-usage" ? unasked : body),
      );
    });
  }
});

describe("openai's responses.stream folds a golden stream to the golden body", () => {
  for (const file of goldens) {
    if (file.kind !== "stream" || file.format !== "responses") continue;
    const { caseId } = file;
    const golden = goldens.find((other) => other.name === `${caseId}.responses.json`);
    it(caseId, async () => {
      const folded = foldResponse(requestOf(caseId, "responses"), serveStream(readText(file)));
      if (golden === undefined) return expect(folded).rejects.toBeInstanceOf(APIError);
      const wanted = without(readJson(golden), addedByResponsesHelper);
      expect(without(await folded, addedByResponsesHelper)).toEqual(wanted);
    });
  }
});

describe("a failure in mid-stream", () => {
  it.each(["chat-completions", "responses"] as const)(
    "tells its code and words, %s",
    async (format) => {
      const frames = streamOf(
        format,
        requestOf("answer-failed", format),
        readSteps("answer-failed"),
      );
      const fold = format === "responses" ? foldResponse : foldChat;
      const folded = fold(requestOf("answer-failed", format), serveStream(frames));
      await expect(folded).rejects.toMatchObject({
        code: "deployment_failed",
        message: expect.stringContaining("The deployment ended its answer"),
      });
    },
  );
});

describe("any generation", () => {
  it("folds in openai's chat helper to the body", async () => {
    const request = plainRequest("chat-completions", offeredTools["chat-completions"]);
    await fc.assert(
      fc.asyncProperty(
        arbitraryGeneration,
        fc.integer({ min: 1, max: 200 }),
        async (made, bytes) => {
          const steps = stepsOf(made, [1, 3]);
          const frames = streamOf("chat-completions", request, steps);
          const folded = await foldChat(request, serveStream(frames, bytes));
          const body = bodyOf("chat-completions", request, steps);
          expect(comparableChat(folded)).toEqual(comparableChat(body));
        },
      ),
      { numRuns: 100 },
    );
  });

  it("folds in openai's responses helper to the body", async () => {
    const request = plainRequest("responses", offeredTools["responses"]);
    await fc.assert(
      fc.asyncProperty(
        arbitraryGeneration,
        fc.integer({ min: 20, max: 400 }),
        async (made, bytes) => {
          const steps = stepsOf(made, [1, 3]);
          const frames = streamOf("responses", request, steps);
          const folded = await foldResponse(request, serveStream(frames, bytes));
          const body = bodyOf("responses", request, steps);
          expect(without(folded, addedByResponsesHelper)).toEqual(
            without(body, addedByResponsesHelper),
          );
        },
      ),
      { numRuns: 100 },
    );
  });
});
