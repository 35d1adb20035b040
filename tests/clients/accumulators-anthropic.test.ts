import Anthropic, { APIError } from "@anthropic-ai/sdk";
import type { MessageStreamParams } from "@anthropic-ai/sdk/resources/messages/messages";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { caseFiles, readJson, readText, type JsonRecord } from "../cases/files.ts";
import { bodyOf, plainRequest, readSteps, requestOf, streamOf } from "../cases/generations.ts";
import { arbitraryGeneration, offeredTools, stepsOf } from "../properties/arbitrary-generation.ts";
import { noRetries, serveStream, without, type FakeServer } from "./accumulators.ts";

const goldens = caseFiles("generations");
const addedByHelper = ["parsed_output"];

async function fold(request: JsonRecord, server: FakeServer): Promise<unknown> {
  const client = new Anthropic({ ...noRetries, baseURL: "http://127.0.0.1", fetch: server.fetch });
  // The case files are requests that this SDK could send; its types would have them written out in TypeScript.
  const params = request as unknown as MessageStreamParams;
  return client.messages.stream(params).finalMessage();
}

describe("anthropic's messages.stream folds a golden stream to the golden body", () => {
  for (const file of goldens) {
    if (file.kind !== "stream" || file.format !== "messages") continue;
    const { caseId } = file;
    const golden = goldens.find((other) => other.name === `${caseId}.messages.json`);
    it(caseId, async () => {
      const folded = fold(requestOf(caseId, "messages"), serveStream(readText(file)));
      if (golden === undefined) return expect(folded).rejects.toBeInstanceOf(APIError);
      expect(without(await folded, addedByHelper)).toEqual(readJson(golden));
    });
  }
});

describe("a failure in mid-stream", () => {
  it("tells its type and words", async () => {
    const frames = streamOf(
      "messages",
      requestOf("answer-failed", "messages"),
      readSteps("answer-failed"),
    );
    await expect(
      fold(requestOf("answer-failed", "messages"), serveStream(frames)),
    ).rejects.toMatchObject({
      type: "api_error",
      message: expect.stringContaining("The deployment ended its answer"),
    });
  });
});

describe("any generation", () => {
  it("folds in anthropic's helper to the body", async () => {
    const request = plainRequest("messages", offeredTools["messages"]);
    await fc.assert(
      fc.asyncProperty(
        arbitraryGeneration,
        fc.integer({ min: 1, max: 200 }),
        async (made, bytes) => {
          const steps = stepsOf(made, [1, 3]);
          const folded = await fold(
            request,
            serveStream(streamOf("messages", request, steps), bytes),
          );
          const body = bodyOf("messages", request, steps);
          expect(without(folded, addedByHelper)).toEqual(without(body, addedByHelper));
        },
      ),
      { numRuns: 100 },
    );
  });
});
