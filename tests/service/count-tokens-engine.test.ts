import { describe, expect, it } from "vitest";
import { startService, type TestService } from "./start-service.ts";

const path = "/v1/messages/count_tokens";
const body = {
  model: "service-llm",
  messages: [{ role: "user", content: "How many tokens?" }],
  tools: [{ name: "weather", input_schema: { type: "object" } }],
};

async function count(service: TestService): Promise<number> {
  const response = await service.post(path, body);
  expect(response.status).toBe(200);
  const answer = (await response.json()) as { readonly input_tokens: number };
  return answer.input_tokens;
}

describe("count_tokens", () => {
  it("is what the engine's own tokenizer counts, with tools, and no generation", async () => {
    await using service = await startService({ deployment: { ownedBy: "vllm" } });
    service.deployment.route("POST", "/tokenize", { body: { count: 4_321, tokens: [] } });
    expect(await count(service)).toBe(4_321);
    expect(service.deployment.requests).toHaveLength(0);
  });

  it("is the service's estimate where the engine has no tokenizer or fails", async () => {
    await using without = await startService({ deployment: { ownedBy: "someone" } });
    const estimate = await count(without);
    expect(estimate).toBeGreaterThan(10);
    await using failing = await startService({ deployment: { ownedBy: "vllm" } });
    failing.deployment.route("POST", "/tokenize", { status: 500, body: {} });
    expect(await count(failing)).toBe(estimate);
  });
});
