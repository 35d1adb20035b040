import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { delta, frame, statusAnswer, type Step } from "../doubles/scripted-deployment.ts";
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
      expect(await response.text()).not.toContain("MARKER");
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
    expect((await count()) - before).toBe(1);
  });
});
