import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { costNanos } from "../../src/admission/price.ts";
import {
  delta,
  frame,
  openGate,
  type RecordedRequest,
  statusAnswer,
  type Step,
  textAnswer,
} from "../doubles/scripted-deployment.ts";
import { formats, startService, type TestService } from "./start-service.ts";

const words = "MARKER the prompt said OPEN SESAME";
const refusal = { error: { message: words, type: "BadRequestError", code: 400, param: "tools" } };

describe("a refusal by the deployment", () => {
  let service: TestService;
  beforeAll(async () => {
    service = await startService();
  });
  afterAll(() => service[Symbol.asyncDispose]());

  /** The log lines of one request that belong to one event. */
  const linesOf = (requestId: string | null, event: string): readonly object[] =>
    service.logLines
      .map((line) => JSON.parse(line) as Record<string, unknown>)
      .filter((line) => line["requestId"] === requestId && line["event"] === event);

  const late: readonly Step[] = [
    delta({ content: "x" }),
    { type: "write", bytes: `${frame({})}data: ${JSON.stringify(refusal)}\n\n` },
  ];

  it.each(
    formats.flatMap(({ name, path, body }) => [
      { name, path, body, streamed: false, when: "at once", steps: statusAnswer(400, refusal) },
      { name, path, body, streamed: true, when: "at once", steps: statusAnswer(400, refusal) },
      { name, path, body, streamed: true, when: "in the middle", steps: late },
    ]),
  )(
    "of $name, streamed $streamed, $when, is logged with the request's id, its words at debug alone",
    async ({ path, body, streamed, steps }) => {
      service.deployment.answerNext(...steps);
      const response = await service.post(path, { ...body, stream: streamed });
      const text = await response.text();
      expect(text).not.toContain("MARKER");
      // Agents repeat what the server is to blame for.
      expect(text).not.toContain("server_error");
      const requestId = response.headers.get("x-request-id");
      const told = linesOf(requestId, "deployment refused");
      expect(told).toEqual([
        expect.objectContaining({
          level: "warn",
          status: 400,
          type: "BadRequestError",
          code: "400",
          param: "tools",
        }),
      ]);
      expect(JSON.stringify(told)).not.toContain("MARKER");
      expect(linesOf(requestId, "deployment words")).toEqual([
        expect.objectContaining({ level: "debug", words }),
      ]);
    },
  );

  it("that is a failure of the deployment is in both lines, and counted once", async () => {
    const count = async (): Promise<number> => {
      const metrics = await (await fetch(`${service.url}/metrics`)).text();
      const line = /^tributary_deployment_refusals_total\{status="500"\} (\d+)$/mu.exec(metrics);
      return Number(line?.[1] ?? 0);
    };
    const before = await count();
    service.deployment.answerNext(...statusAnswer(500, refusal));
    const response = await service.post("/v1/messages", formats[2].body);
    const requestId = response.headers.get("x-request-id");
    expect(linesOf(requestId, "deployment refused")).toMatchObject([{ status: 500 }]);
    expect(linesOf(requestId, "failure")).toMatchObject([{ cause: { name: "DeploymentRefusal" } }]);
    // One text of the metrics is held for a while.
    await expect.poll(async () => (await count()) - before).toBe(1);
  });
});

describe("a deployment that has no room for the allowance", () => {
  const contextTokens = 8_192;
  let service: TestService;
  beforeAll(async () => {
    service = await startService({ deployment: { contextTokens, ownedBy: "vllm" } });
  });
  afterAll(() => service[Symbol.asyncDispose]());

  const limitOf = ({ json }: RecordedRequest): number =>
    Number((json as Record<string, unknown>)["max_tokens"]);

  /** Counts the input, as vLLM does, up to the first token that no longer fits; `exact`: to its end. */
  function engine(inputTokens: number, exact: boolean) {
    return (request: RecordedRequest): readonly Step[] => {
      const asked = limitOf(request);
      if (inputTokens + asked <= contextTokens)
        return textAnswer("fits", {
          usage: { promptTokens: inputTokens, completionTokens: 1 },
        });
      const counted = exact ? inputTokens : contextTokens - asked + 1;
      const least = exact ? "" : "at least ";
      return statusAnswer(400, {
        error: {
          message:
            `This model's maximum context length is ${String(contextTokens)} tokens. However, you requested ` +
            `${String(asked)} output tokens and your prompt contains ${least}${String(counted)} input tokens, for a ` +
            `total of ${least}${String(counted + asked)} tokens. Please reduce the length of the input prompt or ` +
            `the number of requested output tokens.`,
          type: "BadRequestError",
          param: "input_tokens",
          code: 400,
        },
      });
    };
  }

  /** Chinese: a character is three bytes, and a token or more. */
  const text = "今天天气很好".repeat(1_000);
  const cases = formats.flatMap(({ name, path, outputField, body }) =>
    [true, false].flatMap((streamed) =>
      [true, false].map((exact) => ({ name, path, outputField, body, streamed, exact })),
    ),
  );
  const bodyOf = (one: (typeof cases)[number], content: string): object => ({
    ...("input" in one.body ? { input: content } : { messages: [{ role: "user", content }] }),
    stream: one.streamed,
  });

  it.each(cases)(
    "still answers $name, streamed $streamed, input counted to its end $exact",
    async (one) => {
      const inputTokens = 6_000;
      service.deployment.answerBy(engine(inputTokens, one.exact));
      const before = service.deployment.requests.length;
      const { balance } = await service.settledCredit();
      const response = await service.post(one.path, {
        ...bodyOf(one, text),
        [one.outputField]: 8_000,
      });
      expect(response.status).toBe(200);
      const answer = await response.text();
      expect(answer).toContain("fits");
      const limitsSent = service.deployment.requests.slice(before).map(limitOf);
      const [first = 0, second] = limitsSent;
      expect(limitsSent).toHaveLength(2);
      expect(second).toBe(one.exact ? contextTokens - inputTokens : Math.floor(first / 2));
      expect(response.headers.get("x-tributary-output-allowance")).toBe(String(second));
      if (one.name === "responses") expect(answer).toContain(`"max_output_tokens":8000`);
      const cost = costNanos(inputTokens, 1, service.config.prices);
      expect(balance - (await service.settledCredit()).balance).toBe(cost);
    },
  );

  it("refuses what does not fit with an eighth either, with the engine's figures", async () => {
    service.deployment.answerBy(engine(8_150, false));
    const before = service.deployment.requests.length;
    const response = await service.post("/v1/messages", {
      messages: [{ role: "user", content: text }],
    });
    expect(response.status).toBe(400);
    expect(await response.text()).toContain("prompt is too long: 8193 tokens > 8192 maximum");
    expect(service.deployment.requests.length - before).toBe(4);
    expect((await service.settledCredit()).held).toBe(0n);
  });

  it("is asked once when its own count leaves no room", async () => {
    service.deployment.answerBy(engine(9_000, true));
    const before = service.deployment.requests.length;
    const body = { messages: [{ role: "user", content: text }] };
    expect((await service.post("/v1/chat/completions", body)).status).toBe(400);
    expect(service.deployment.requests.length - before).toBe(1);
  });

  it("is not asked again once the client has been told the allowance", async () => {
    const gate = openGate();
    const refuse = engine(6_000, true);
    service.deployment.answerBy((request) => [gate.step, ...refuse(request)]);
    const before = service.deployment.requests.length;
    const response = await service.post("/v1/messages", {
      messages: [{ role: "user", content: text }],
      stream: true,
    });
    expect(response.status).toBe(200);
    gate.open();
    expect(await response.text()).toContain("prompt is too long");
    expect(service.deployment.requests.length - before).toBe(1);
  });
});
