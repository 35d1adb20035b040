import { describe, expect, it } from "vitest";
import { delta, textAnswer } from "../../doubles/scripted-deployment.ts";
import { useService } from "../use-service.ts";
import type { DrivenKind } from "./driver.ts";

/** What Python's packages offer besides: reading a stream event by event, and a client without asyncio. */
export function describePythonAlone({ client, driver, name }: DrivenKind): void {
  describe(`${name}, alone`, () => {
    const service = useService();
    const order = () => ({
      client,
      url: service().url,
      key: service().key,
      maxRetries: 0,
      prompt: "Hello",
    });

    it("reads a stream event by event", async () => {
      service().deployment.answerNext(...textAnswer("Grüße, 😀.", { pieceCharacters: 2 }));
      expect(await driver.ask({ ...order(), do: "raw" })).toEqual({ text: "Grüße, 😀." });
    });

    it("does the same without asyncio", async () => {
      const said = "Hello from the deployment.";
      expect(await driver.ask({ ...order(), do: "block" })).toEqual([
        said,
        said,
        said,
        "service-llm-legacy",
        "service-llm-compat",
      ]);
    });

    it("stops the deployment when a program without asyncio breaks off its loop", async () => {
      const { deployment } = service();
      const count = deployment.requests.length;
      deployment.answerNext(delta({ content: "one" }), { type: "hang" });
      expect(await driver.ask({ ...order(), do: "leave early" })).toBe("one");
      const { ended } = await deployment.request(count);
      expect((await ended).byPeer).toBe(true);
      expect((await service().settledCredit()).held).toBe(0n);
    });
  });
}
