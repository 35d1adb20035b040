import { describe, expect, it } from "vitest";
import type { TestService } from "../service/start-service.ts";
import { type ClientKind, connectTo } from "./client.ts";
import { noteLack } from "./note-lack.ts";

/** What a client can ask besides answers; where it has no call for it, its reason is the test that is skipped. */
export function describeLists(kind: ClientKind, service: () => TestService): void {
  describe("models", () => {
    if (noteLack(kind, "models")) return;
    it("lists the two aliases", async () => {
      const ids = await connectTo(kind, service()).listModels?.();
      expect(ids).toEqual(["service-llm-legacy", "service-llm-compat"]);
    });
  });
  describe("token count", () => {
    if (noteLack(kind, "token count")) return;
    it("counts more for more, and sends the deployment nothing", async () => {
      const client = connectTo(kind, service());
      const sent = service().deployment.requests.length;
      const few = (await client.countTokens?.("How are you today?")) ?? 0;
      const more = (await client.countTokens?.("How are you today? ".repeat(10))) ?? 0;
      expect(few).toBeGreaterThanOrEqual(5);
      expect(few).toBeLessThan(40);
      expect(more).toBeGreaterThan(few + 40);
      expect(service().deployment.requests).toHaveLength(sent);
    });
  });
}
