import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { inputBound } from "../../src/admission/input-bound.ts";
import { costNanos, formatCredit } from "../../src/admission/price.ts";
import { limits } from "../../src/limits.ts";
import { openGate, delta, finish } from "../doubles/scripted-deployment.ts";
import { formats, startService, type TestService } from "./start-service.ts";

let service: TestService;
beforeAll(async () => {
  service = await startService({ deployment: { contextTokens: null } });
});
afterAll(() => service[Symbol.asyncDispose]());

/** The output limit in the newest request that reached the deployment. */
function sentLimit(): unknown {
  const json = service.deployment.requests.at(-1)?.json as Record<string, unknown>;
  return json["max_tokens"] ?? json["max_completion_tokens"];
}

/** Credits that pay for a body of one item and `tokens` of output, exactly. */
function creditFor(body: unknown, tokens: number): bigint {
  const bound = inputBound(Buffer.byteLength(JSON.stringify(body)), 1, 0);
  return costNanos(bound, tokens, service.config.prices);
}

describe.each(formats)("the output allowance of $name", ({ path, body, outputField }) => {
  it.each([
    ["omitted with ample credit", undefined, limits.outputAllowanceDefault],
    ["65,537", 65_537, limits.outputAllowanceMax],
    ["65,536", 65_536, 65_536],
    ["a number no integer type holds", 1e300, limits.outputAllowanceMax],
    ["1", 1, 1],
  ])("is, for %s, what is sent, reserved and told", async (_name, asked, granted) => {
    const { key, accountId } = await service.newKey("100");
    const request = asked === undefined ? body : { ...body, [outputField]: asked };
    const gate = openGate();
    service.deployment.answerNext(delta({ content: "x" }), gate.step, finish("stop"));
    const answering = service.post(path, request, { key });
    await service.deployment.request(service.deployment.requests.length);
    expect(sentLimit()).toBe(granted);
    expect((await service.credit(accountId)).held).toBe(creditFor(request, granted));
    gate.open();
    const response = await answering;
    expect(response.status).toBe(200);
    expect(response.headers.get("x-tributary-output-allowance")).toBe(String(granted));
    await response.text();
  });

  it.each([1, 2, 4_095])("is %d when omitted and the credit pays for that", async (tokens) => {
    const { key, accountId } = await service.newKey(formatCredit(creditFor(body, tokens)));
    const response = await service.post(path, body, { key });
    expect(response.status).toBe(200);
    expect(sentLimit()).toBe(tokens);
    expect(response.headers.get("x-tributary-output-allowance")).toBe(String(tokens));
    await response.text();
    expect((await service.settledCredit(accountId)).held).toBe(0n);
  });

  it("is refused with figures when one token is too dear, and nothing is sent", async () => {
    const request = { ...body, [outputField]: 100 };
    const needed = creditFor(request, 100);
    const { key, accountId } = await service.newKey(formatCredit(needed - 1n));
    const sent = service.deployment.requests.length;
    const response = await service.post(path, request, { key });
    expect(response.status).toBe(402);
    expect(response.headers.get("x-should-retry")).toBe("false");
    const { error } = (await response.json()) as { error: Record<string, unknown> };
    expect(error).toMatchObject({
      balance: formatCredit(needed - 1n),
      held: "0",
      needed: formatCredit(needed),
      affordable_output_tokens: 99,
      waiting_helps: false,
    });
    expect(service.deployment.requests.length).toBe(sent);
    expect(await service.credit(accountId)).toEqual({ balance: needed - 1n, held: 0n });
    const exact = { ...body, [outputField]: 99 };
    expect((await service.post(path, exact, { key })).status).toBe(200);
  });

  it.each([0, -1, 1.5, "12", null])("of %j is not sent as it is", async (asked) => {
    const response = await service.post(path, { ...body, [outputField]: asked });
    if (asked === null) {
      // A field that is null was not given.
      expect(response.status).toBe(200);
      return;
    }
    expect(response.status).toBe(400);
    const { error } = (await response.json()) as { error: Record<string, unknown> };
    expect(error["message"]).toContain(outputField);
  });
});

describe("the output allowance", () => {
  it("is cut to what fits beside the input in a known context, never below one", async () => {
    await using small = await startService({ deployment: { contextTokens: 1_000 } });
    const body = { messages: [{ role: "user", content: "x".repeat(400) }] };
    const response = await small.post("/v1/chat/completions", body);
    expect(response.status).toBe(200);
    const bytes = Buffer.byteLength(JSON.stringify(body));
    const sent = small.deployment.requests.at(-1)?.json;
    expect(sent).toMatchObject({ max_tokens: 1_000 - Math.ceil(bytes / 4) });
    const long = { messages: [{ role: "user", content: "x".repeat(8_000) }] };
    expect((await small.post("/v1/chat/completions", long)).status).toBe(200);
    expect(small.deployment.requests.at(-1)?.json).toMatchObject({ max_tokens: 1 });
  });

  it("does not shrink by what the deployment never gets", async () => {
    await using small = await startService({ deployment: { contextTokens: 10_000 } });
    const allowanceOf = async (body: object): Promise<number> => {
      const response = await small.post("/v1/messages", body);
      expect(response.status).toBe(200);
      return Number(response.headers.get("x-tributary-output-allowance"));
    };
    const data = "A".repeat(200_000);
    const image = { type: "image", source: { type: "base64", media_type: "image/png", data } };
    const said = [
      { role: "user", content: "Look." },
      { role: "assistant", content: [{ type: "tool_use", id: "c", name: "look", input: {} }] },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "c", content: [image] }] },
    ];
    expect(await allowanceOf({ messages: said })).toBeGreaterThan(9_000);
    const chinese = "\u5929".repeat(4_000);
    const escaped = JSON.stringify({ messages: [{ role: "user", content: chinese }] }).replaceAll(
      "\u5929",
      String.raw`\u5929`,
    );
    expect(escaped.length).toBeGreaterThan(24_000);
    const plain = await allowanceOf({ messages: [{ role: "user", content: chinese }] });
    const response = await small.post("/v1/messages", escaped);
    const granted = Number(response.headers.get("x-tributary-output-allowance"));
    expect(plain - granted).toBeLessThan(50);
  });

  it("takes max_completion_tokens before max_tokens", async () => {
    const body = { ...formats[0].body, max_tokens: 10, max_completion_tokens: 20 };
    const response = await service.post("/v1/chat/completions", body);
    expect(response.headers.get("x-tributary-output-allowance")).toBe("20");
  });
});
