import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { engineTopics } from "./losses/tables/engine-losses.ts";
import { type DialectName, dialects } from "../../src/deployment/openai-compatible/dialect.ts";
import { openaiCompatibleLosses } from "./losses/tables/openai-compatible.ts";
import { isRecord, type JsonRecord } from "../cases/files.ts";
import { formats, startService, type TestService } from "../service/start-service.ts";
import { writeCell } from "./losses/document.ts";
import { effortExamples, engineExamples, type EngineExample } from "./losses/engines.ts";

/** What the engine gets for an example. */
async function sendTo(service: TestService, { format, send }: EngineExample): Promise<JsonRecord> {
  const { body, path } = formats.find(({ name }) => name === format) ?? formats[0];
  const sent = service.deployment.requests.length;
  const response = await service.post(path, { ...body, ...send });
  const text = await response.text();
  expect(response.status, text).toBe(200);
  const got = service.deployment.requests[sent]?.json;
  if (!isRecord(got)) throw new Error("the engine got no object");
  return got;
}

// What the embedded engine makes of a request is shown with the engine itself.
const names = (Object.keys(dialects) as DialectName[]).filter((name) => name !== "embedded");

describe.each(names)("to an engine that speaks %s", (dialect) => {
  const losses = openaiCompatibleLosses(dialect);
  let service: TestService;

  beforeAll(async () => {
    service = await startService({ environment: { TRIBUTARY_DEPLOYMENT_DIALECT: dialect } });
  });
  afterAll(() => service[Symbol.asyncDispose]());

  it.each(engineTopics)("%s goes as docs/losses.md says", async (topic) => {
    const cell = writeCell(losses[topic]);
    const examples = topic === "reasoningEffort" ? effortExamples(cell) : engineExamples[topic];
    expect(examples.length).toBeGreaterThan(0);
    for (const example of examples) {
      const arrives = example.cells[cell];
      if (arrives === undefined) throw new Error(`no example shows "${cell}"`);
      const got = await sendTo(service, example);
      for (const [name, value] of Object.entries(arrives)) {
        expect(got[name] ?? null, `${name} for ${JSON.stringify(example.send)}`).toEqual(value);
      }
    }
  });
});

describe("reasoning of earlier answers", () => {
  it.each([
    ["vllm", "reasoning"],
    ["ollama", "reasoning"],
  ])("goes to %s in the field of the setting, where it has the choice", async (dialect, field) => {
    await using service = await startService({
      environment: {
        TRIBUTARY_DEPLOYMENT_DIALECT: dialect,
        TRIBUTARY_DEPLOYMENT_REASONING_FIELD: dialect === "ollama" ? "reasoning_content" : field,
      },
    });
    const answered = { role: "assistant", content: "So.", reasoning_content: "Because" };
    const hi = { role: "user", content: "Hi" };
    const got = await sendTo(service, {
      format: "chat-completions",
      send: { messages: [hi, answered, hi] },
      cells: {},
    });
    const reasoned = { role: "assistant", content: "So.", [field]: "Because" };
    expect(got["messages"]).toEqual([hi, reasoned, hi]);
  });
});
