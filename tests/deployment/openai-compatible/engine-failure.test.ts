import { describe, expect, test } from "vitest";
import {
  DeploymentRefusal,
  type RefusalFields,
} from "../../../src/deployment/deployment-refusal.ts";
import {
  type FaultFacts,
  failureOfAnswer,
  failureOfStreamError,
} from "../../../src/deployment/openai-compatible/engine-failure.ts";
import type { Failure } from "../../../src/failure.ts";

const facts: FaultFacts = {
  inputTokensEstimate: 100,
  outputTokensMax: 64_000,
  contextTokens: null,
  retryAfter: null,
  nowMs: Date.UTC(2026, 0, 1),
};

function openaiError(message: string, rest: object = {}): string {
  return JSON.stringify({
    error: { message, type: "BadRequestError", param: null, code: 400, ...rest },
  });
}

const tokensOf = (inputTokensEstimate: number) =>
  failureOfAnswer(400, '{"error":"the input length exceeds the context length"}', {
    ...facts,
    contextTokens: 4096,
    inputTokensEstimate,
  }).facts.tokens;

describe("an overflow of the context", () => {
  test.each([
    [
      "vLLM, both together",
      400,
      openaiError(
        "You passed 33537 input tokens and requested 32000 output tokens. However, the model's context length is only 65536 tokens, resulting in a maximum input length of 33536 tokens. Please reduce the length of the input prompt.",
      ),
      { sent: 65_537, maximum: 65_536 },
    ],
    [
      "vLLM, the limit",
      400,
      openaiError(
        "'max_tokens' or 'max_completion_tokens' is too large: 5000. This model's maximum context length is 4096 tokens and your request has 10 input tokens (5000 > 4096 - 10).",
      ),
      { sent: 5_010, maximum: 4_096 },
    ],
    [
      "vLLM, a total",
      400,
      openaiError(
        "This model's maximum context length is 4096 tokens. However, you requested 100 output tokens and your prompt contains at least 3997 input tokens, for a total of at least 4097 tokens. Please reduce the length of the input prompt or the number of requested output tokens.",
      ),
      { sent: 4_097, maximum: 4_096 },
    ],
    [
      "vLLM, the input",
      400,
      openaiError(
        "This model's maximum context length is 4096 tokens. However, your request has 5000 input tokens. Please reduce the length of the input messages.",
      ),
      { sent: 5_000, maximum: 4_096 },
    ],
    [
      "vLLM 0.32, the limit alone",
      400,
      openaiError(
        "max_tokens=64000 cannot be greater than max_model_len=2048. Please request fewer output tokens. (parameter=max_tokens, value=64000)",
        { param: "max_tokens" },
      ),
      { sent: 64_100, maximum: 2_048 },
    ],
    [
      "vLLM of old, flat",
      400,
      JSON.stringify({
        object: "error",
        message:
          "This model's maximum context length is 4096 tokens. However, you requested 4106 tokens (10 in the messages, 4096 in the completion). Please reduce the length of the messages or completion.",
        type: "BadRequestError",
        code: 400,
      }),
      { sent: 4_106, maximum: 4_096 },
    ],
    [
      "vLLM's engine",
      400,
      openaiError(
        "The decoder prompt (length 9000) is longer than the maximum model length of 8192.",
      ),
      { sent: 9_000, maximum: 8_192 },
    ],
    [
      "SGLang, the input",
      400,
      JSON.stringify({
        object: "error",
        message: "The input (9412 tokens) is longer than the model's context length (8192 tokens).",
        type: "BadRequest",
        code: 400,
      }),
      { sent: 9_412, maximum: 8_192 },
    ],
    [
      "SGLang, a total",
      400,
      openaiError(
        "Requested token count exceeds the model's maximum context length of 64000 tokens. You requested a total of 71897 tokens: 7897 tokens from the input messages and 64000 tokens for the completion.",
      ),
      { sent: 71_897, maximum: 64_000 },
    ],
    [
      "llama.cpp",
      400,
      JSON.stringify({
        error: {
          code: 400,
          message:
            "request (13392 tokens) exceeds the available context size (8192 tokens), try increasing it",
          type: "exceed_context_size_error",
          n_prompt_tokens: 13_392,
          n_ctx: 8192,
        },
      }),
      { sent: 13_392, maximum: 8_192 },
    ],
    [
      "llama.cpp, the numbers beside",
      400,
      JSON.stringify({
        error: {
          code: 400,
          message: "the request exceeds the available context size, try increasing it",
          type: "exceed_context_size_error",
          n_prompt_tokens: 13_392,
          n_ctx: 8192,
        },
      }),
      { sent: 13_392, maximum: 8_192 },
    ],
    [
      "Ollama's own runner",
      400,
      openaiError(
        "input length (5000 tokens) exceeds the model's maximum context length (4096 tokens)",
      ),
      { sent: 5_000, maximum: 4_096 },
    ],
    [
      "OpenAI",
      400,
      openaiError(
        "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens. Please reduce the length of the messages.",
        { code: "context_length_exceeded", param: "messages" },
      ),
      { sent: 130_000, maximum: 128_000 },
    ],
    [
      "a host that copies Anthropic",
      400,
      openaiError("prompt is too long: 210000 tokens > 200000 maximum"),
      { sent: 210_000, maximum: 200_000 },
    ],
    [
      "an engine that fails on it",
      500,
      openaiError("Input length (265330) exceeds model's maximum context length (262144)."),
      { sent: 265_330, maximum: 262_144 },
    ],
    [
      "one that gives no numbers",
      400,
      '{"error":"the input length exceeds the context length"}',
      undefined,
    ],
    ["a proxy's limit", 413, "<html>413 Request Entity Too Large</html>", undefined],
    ["a code alone", 400, openaiError("no", { code: "context_length_exceeded" }), undefined],
  ])("is recognised: %s", (_name, status, body, tokens) => {
    const failure = failureOfAnswer(status, body, facts);
    expect(failure.code).toBe("input_too_large");
    expect(failure.facts.tokens).toEqual(tokens);
  });

  test.each([
    [
      "the input was counted",
      5_000,
      "'max_tokens' or 'max_completion_tokens' is too large: 5000. This model's maximum context length is 4096 tokens and your request has 10 input tokens (5000 > 4096 - 10).",
      4_086,
    ],
    [
      "input and output were added up",
      4_096,
      "This model's maximum context length is 4096 tokens. However, you requested 4106 tokens (10 in the messages, 4096 in the completion). Please reduce the length of the messages or completion.",
      4_086,
    ],
    [
      "so does SGLang",
      64_000,
      "Requested token count exceeds the model's maximum context length of 64000 tokens. You requested a total of 71897 tokens: 7897 tokens from the input messages and 64000 tokens for the completion.",
      56_103,
    ],
    [
      "an exact total",
      65_536,
      "This model's maximum context length is 131072 tokens. However, you requested 65536 output tokens and your prompt contains 100000 input tokens, for a total of 165536 tokens. Please reduce the length of the input prompt or the number of requested output tokens.",
      31_072,
    ],
    [
      "counting stopped at what fits",
      65_536,
      "This model's maximum context length is 131072 tokens. However, you requested 65536 output tokens and your prompt contains at least 65537 input tokens, for a total of at least 131073 tokens. Please reduce the length of the input prompt or the number of requested output tokens.",
      32_768,
    ],
    [
      "it stopped there without saying so",
      32_000,
      "You passed 33537 input tokens and requested 32000 output tokens. However, the model's context length is only 65536 tokens, resulting in a maximum input length of 33536 tokens. Please reduce the length of the input prompt.",
      16_000,
    ],
    [
      "one token was asked for",
      1,
      "This model's maximum context length is 4096 tokens. However, you requested 1 output tokens and your prompt contains at least 4096 input tokens, for a total of at least 4097 tokens. Please reduce the length of the input prompt or the number of requested output tokens.",
      null,
    ],
    [
      "the input alone is too long",
      100,
      "This model's maximum context length is 4096 tokens. However, your request has 5000 input tokens. Please reduce the length of the input messages.",
      null,
    ],
    [
      "the input alone fills it",
      100,
      "This model's maximum context length is 4096 tokens. However, you requested 4196 tokens (4096 in the messages, 100 in the completion).",
      null,
    ],
    [
      "the figures are of another request",
      1_000,
      "maximum context length is 800 tokens. You requested 900 tokens",
      null,
    ],
    ["the figures contradict it", 10, "prompt is too long: 20 tokens > 4096 maximum", null],
    ["there are no figures", 100, "the input length exceeds the context length", null],
  ])("says how much output would fit: %s", (_name, outputTokensMax, words, fitting) => {
    const { cause } = failureOfAnswer(400, openaiError(words), { ...facts, outputTokensMax });
    expect(cause).toBeInstanceOf(DeploymentRefusal);
    expect(cause).toMatchObject({ outputTokensFitting: fitting });
  });

  test("has our own estimate and the known context where the deployment gives no numbers", () => {
    expect(tokensOf(9_000)).toEqual({ sent: 9_000, maximum: 4_096 });
    expect(tokensOf(3_000)).toEqual({ sent: 4_097, maximum: 4_096 });
  });
});

const secondsOf = (retryAfter: string | null) =>
  failureOfAnswer(503, "", { ...facts, retryAfter }).facts.retryAfterSeconds;

describe("an output limit that is longer than vLLM's context", () => {
  const words = (limit: number) =>
    openaiError(
      `max_tokens=${String(limit)} cannot be greater than max_model_len=2048. Please request fewer output tokens. (parameter=max_tokens, value=${String(limit)})`,
    );
  const fittingBeside = (inputTokensEstimate: number, outputTokensMax = 6_144): unknown =>
    failureOfAnswer(400, words(outputTokensMax), { ...facts, inputTokensEstimate, outputTokensMax })
      .facts.cause;

  test("is cut to what the estimate leaves, or to half where it leaves nothing", () => {
    expect(fittingBeside(100)).toMatchObject({ outputTokensFitting: 1_948, contextTokens: 2_048 });
    expect(fittingBeside(9_000)).toMatchObject({ outputTokensFitting: 1_024 });
  });
});

describe("a field that the engine refuses", () => {
  // vLLM 0.32, for `top_p: 0`
  const body = openaiError("top_p must be in (0, 1], got 0.0. (parameter=top_p, value=0.0)", {
    param: "top_p",
  });

  test("is named where the caller sent it", () => {
    const { code, facts: told } = failureOfAnswer(400, body, { ...facts, wasSent: () => true });
    expect([code, told.param]).toEqual(["refused_by_deployment", "top_p"]);
  });

  test("is not where it was not sent, and no other field of the engine's ever is", () => {
    const unsent = failureOfAnswer(400, body, { ...facts, wasSent: () => false });
    expect(unsent.facts.param).toBeUndefined();
    const own = openaiError("no", { param: "stream_options" });
    const named = failureOfAnswer(400, own, { ...facts, wasSent: () => true });
    expect(named.facts.param).toBeUndefined();
  });
});

describe("a status", () => {
  test.each([
    [400, "refused_by_deployment"],
    [422, "refused_by_deployment"],
    [401, "deployment_failed"],
    [402, "deployment_failed"],
    [403, "deployment_failed"],
    [404, "deployment_failed"],
    [405, "deployment_failed"],
    [307, "deployment_failed"],
    [429, "overloaded"],
    [503, "overloaded"],
    [529, "overloaded"],
    [500, "deployment_failed"],
    [502, "deployment_failed"],
    [504, "deployment_failed"],
  ])("of %i is %s", (status, code) => {
    for (const body of [
      "",
      "<html></html>",
      openaiError("no"),
      "null",
      "[]",
      '{"detail":[{"msg":"x"}]}',
    ])
      expect(failureOfAnswer(status, body, facts).code).toBe(code);
  });

  test("that says busy tells how long to wait, 1 to 60 seconds", () => {
    expect(secondsOf("7")).toBe(7);
    expect(secondsOf("0")).toBe(1);
    expect(secondsOf("0.2")).toBe(1);
    expect(secondsOf("86400")).toBe(60);
    expect(secondsOf("Thu, 01 Jan 2026 00:00:09 GMT")).toBe(9);
    expect(secondsOf("Wed, 31 Dec 2025 00:00:00 GMT")).toBe(1);
    expect(secondsOf("soon")).toBe(5);
    expect(secondsOf(null)).toBe(5);
  });
});

const codeOf = (error: unknown) => failureOfStreamError(error, facts).code;

test("an error inside a stream is judged by the status that it names, else by its kind", () => {
  expect(codeOf({ error: { message: "x", code: 429 } })).toBe("overloaded");
  expect(codeOf({ error: { message: "x", code: "503" } })).toBe("overloaded");
  expect(codeOf({ error: { message: "x", type: "rate_limit_error" } })).toBe("overloaded");
  expect(codeOf({ error: { message: "x", type: "BadRequestError", code: 400 } })).toBe(
    "refused_by_deployment",
  );
  expect(codeOf({ error: { message: "x", type: "invalid_request_error" } })).toBe(
    "refused_by_deployment",
  );
  expect(codeOf({ error: { message: "x", type: "InternalServerError", code: 500 } })).toBe(
    "deployment_failed",
  );
  expect(codeOf({ error: "x" })).toBe("deployment_failed");
  expect(codeOf({ error: { code: 7 } })).toBe("deployment_failed");
  expect(codeOf({ error: { message: "prompt is too long: 5 tokens > 4 maximum" } })).toBe(
    "input_too_large",
  );
});

function fieldsOf({ cause }: Failure): RefusalFields {
  if (cause instanceof DeploymentRefusal) return cause.fields;
  throw new Error("the failure's cause is no refusal");
}

test("the deployment's words go into the refusal, never into the failure's message", () => {
  const secret = "the prompt said OPEN SESAME";
  for (const status of [400, 401, 422, 429, 500, 503]) {
    const failure = failureOfAnswer(
      status,
      openaiError(secret, { type: "T", code: "C", param: "messages" }),
      facts,
    );
    expect(fieldsOf(failure)).toEqual({
      status,
      type: "T",
      code: "C",
      param: "messages",
      words: secret,
    });
    expect(failure.message).not.toContain("SESAME");
    expect(String(failure.cause)).not.toContain("SESAME");
  }
  const wordsOf = (status: number, body: string) =>
    fieldsOf(failureOfAnswer(status, body, facts)).words;
  expect(wordsOf(500, secret)).toBe(secret);
  expect(wordsOf(422, `{"detail":[{"msg":"${secret}"}]}`)).toContain(secret);
});
