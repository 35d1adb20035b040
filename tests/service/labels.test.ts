import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { limits } from "../../src/limits.ts";
import { textAnswer } from "../doubles/scripted-deployment.ts";
import { formats, startService, type TestService } from "./start-service.ts";

let service: TestService;
beforeAll(async () => {
  service = await startService({
    environment: { TRIBUTARY_LABEL_FROM: "metadata.user_id, user" },
  });
  service.deployment.answerAlways(...textAnswer("Hello"));
});
afterAll(() => service[Symbol.asyncDispose]());

async function labelOfRequest(
  path: string,
  body: unknown,
  headers: Record<string, string> = {},
): Promise<unknown> {
  const answer = await service.post(path, body, { headers });
  expect(answer.status).toBe(200);
  await answer.text();
  const id = answer.headers.get("x-request-id") ?? "";
  const receipt = await fetch(`${service.url}/receipts/${id}`, {
    headers: { authorization: `Bearer ${service.key}` },
  });
  const { label } = (await receipt.json()) as { label: unknown };
  expect((await service.ledger.showReceipt(id)).label).toBe(label);
  return label;
}

describe.each(formats)("a label of a request in $name", ({ body, path }) => {
  it("is the header's, else the body's, and null without either", async () => {
    expect(await labelOfRequest(path, body)).toBeNull();
    const metadata = { user_id: "of-the-metadata" };
    const named = { ...body, user: "of-the-user", metadata };
    expect(await labelOfRequest(path, named)).toBe("of-the-user");
    expect(await labelOfRequest(path, named, { "x-tributary-label": "of-the-header" })).toBe(
      "of-the-header",
    );
    expect(await labelOfRequest(path, { ...body, metadata })).toBe("of-the-metadata");
    expect(await labelOfRequest(path, { ...body, safety_identifier: "not asked for" })).toBeNull();
  });

  it("comes out of a body that a thread prepares too", async () => {
    const padding = "x".repeat(limits.bodyInlineBytesMax);
    expect(await labelOfRequest(path, { ...body, padding, user: "of-a-large-body" })).toBe(
      "of-a-large-body",
    );
  });
});

it("is never refused: a long one is kept by its hash", async () => {
  const [{ body, path }] = formats;
  const label = await labelOfRequest(path, { ...body, user: "long".repeat(1_000) });
  expect(label).toMatch(/^sha256:[0-9a-f]{64}$/u);
});

it("is in no log line, no metric and nothing that the deployment gets", async () => {
  const [{ body, path }] = formats;
  const label = "of-the-callers-alone";
  await labelOfRequest(path, { ...body, user: label }, { "x-tributary-label": label });
  const metrics = await (await fetch(`${service.url}/metrics`)).text();
  const { deployment, logLines } = service;
  for (const text of [metrics, ...logLines, JSON.stringify(deployment.requests)])
    expect(text).not.toContain(label);
});
