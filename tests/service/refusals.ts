import { expect } from "vitest";
import { errorContract } from "../wire/error-contract.ts";
import type { TestService } from "./start-service.ts";

/** One row of the table. */
export type RefusalCode = keyof typeof errorContract;

const retryable: ReadonlySet<RefusalCode> = new Set([
  "rate_limited",
  "too_many_concurrent",
  "overloaded",
]);

/** An answer as a client has it, whichever way it was read. */
export interface PlainAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

/** What a refusal must be, besides its row. */
export interface ExpectedRefusal {
  readonly code: RefusalCode;
  readonly shape: "openai" | "messages";
  /** What `param` must be, or match. Left out: null. Messages has no such field. */
  readonly param?: string | RegExp;
  /** What the message must say, so that its reader knows what to change. */
  readonly says: RegExp;
}

/** The shape of errors on a path. */
export function shapeOf(path: string): "openai" | "messages" {
  return path.startsWith("/v1/messages") ? "messages" : "openai";
}

/** Status, headers and body of a refusal, to the letter of the table. Returns the `error` object. */
export async function expectRefusal(
  response: Response,
  expected: ExpectedRefusal,
): Promise<Record<string, unknown>> {
  const { status, headers } = response;
  return expectPlainRefusal({ status, headers, text: await response.text() }, expected);
}

/** The same for an answer that was read from a socket. */
export function expectPlainRefusal(
  { status, headers, text }: PlainAnswer,
  expected: ExpectedRefusal,
): Record<string, unknown> {
  const { messages: messagesType, openai, status: openaiStatus } = errorContract[expected.code];
  const [type, code] = openai;
  const messages = expected.shape === "messages";
  const expectedStatus = messages && expected.code === "overloaded" ? 529 : openaiStatus;
  expect(status, text).toBe(expectedStatus);
  expect(headers.get("content-type")).toBe("application/json; charset=utf-8");
  const id = headers.get("x-request-id");
  expect(id).toMatch(/^req_\w{24}$/);
  expect(headers.get("request-id")).toBe(messages ? id : null);
  expectAdvice(headers, expected.code, openaiStatus);

  const body = JSON.parse(text) as Record<string, unknown>;
  const error = body["error"] as Record<string, unknown>;
  if (messages) {
    expect(body).toMatchObject({ type: "error", request_id: id });
    expect(error["type"]).toBe(messagesType);
    expect(error).not.toHaveProperty("param");
  } else {
    expect(Object.keys(body)).toEqual(["error"]);
    expect(error).toMatchObject({ type, code, request_id: id });
    if (expected.param instanceof RegExp) expect(error["param"]).toMatch(expected.param);
    else expect(error["param"]).toBe(expected.param ?? null);
  }
  const message = String(error["message"]);
  expect(message).toMatch(expected.says);
  expect(message).toMatch(/[.!?]$/);
  expect(message).not.toMatch(/node:|\.ts\b|\/src\/|127\.0\.0\.1|trib_[0-9A-Za-z]+_/);
  return error;
}

function expectAdvice(headers: Headers, code: RefusalCode, status: number): void {
  if (retryable.has(code)) {
    const seconds = Number(headers.get("retry-after"));
    expect(Number.isInteger(seconds), "retry-after in whole seconds").toBe(true);
    expect(seconds).toBeGreaterThanOrEqual(1);
    expect(seconds).toBeLessThanOrEqual(60);
    expect(headers.get("x-should-retry")).toBeNull();
  } else {
    expect(headers.get("retry-after")).toBeNull();
    expect(headers.get("x-should-retry")).toBe(status < 500 ? "false" : null);
  }
}

/** Runs a step after which nothing may be held, spent or sent, and the service must still answer. */
export async function withoutTrace<Result>(
  service: TestService,
  step: () => Promise<Result>,
): Promise<Result> {
  const before = await service.credit();
  const sent = service.deployment.requests.length;
  const result = await step();
  expect(await service.credit()).toEqual({ balance: before.balance, held: 0n });
  expect(service.deployment.requests.length).toBe(sent);
  expect((await fetch(`${service.url}/healthz`)).status).toBe(200);
  return result;
}
