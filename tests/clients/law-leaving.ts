import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { costNanos } from "../../src/admission/price.ts";
import { delta, type Step } from "../doubles/scripted-deployment.ts";
import type { TestService } from "../service/start-service.ts";
import { type ClientKind, connectTo, errorOf, modes } from "./client.ts";

/** When a client leaves, what the deployment does then, and whether output had begun. */
const phases: readonly (readonly [name: string, steps: readonly Step[], pays: boolean])[] = [
  ["before the deployment answers", [{ type: "hang" }], false],
  [
    "while the prompt is processed",
    [{ type: "write", bytes: ": processing\n\n" }, { type: "hang" }],
    false,
  ],
  ["in mid-text", [delta({ content: "one" }), delta({ content: " two" }), { type: "hang" }], true],
];

/** A client that leaves stops the deployment, holds nothing and pays for what was made. */
export function describeLeaving(kind: ClientKind, service: () => TestService): void {
  describe("abort", () => {
    describe.each(modes)("%s", (mode) => {
      it.each(phases)("stops the deployment when it leaves %s", async (_name, steps, pays) => {
        const { key, accountId } = await service().newKey("10");
        const { deployment } = service();
        const count = deployment.requests.length;
        deployment.answerNext(...steps);
        const leaving = new AbortController();
        const heard = Promise.withResolvers<void>();
        let text = "";
        const onText = (piece: string): void => {
          text += piece;
          if (text === "one two") heard.resolve();
        };
        const client = connectTo(kind, service(), { key });
        const asked = errorOf(client[mode]({ prompt: "Hello", signal: leaving.signal, onText }));
        const request = await deployment.request(count);
        expect((await service().credit(accountId)).held).toBeGreaterThan(0n);
        if (pays && mode === "streamed") await heard.promise;
        // What has reached the service shows nowhere until then.
        else await sleep(100);
        const leftMs = performance.now();
        leaving.abort();
        await asked;
        const end = await Promise.race([request.ended, sleep(3_000, null)]);
        expect(end?.byPeer).toBe(true);
        expect((end?.atMs ?? Infinity) - leftMs).toBeLessThan(1_000);
        const { balance } = await service().settledCredit(accountId);
        const paid = 10_000_000_000n - balance;
        const { prices } = service().config;
        if (pays) {
          // Two tokens of output, and an estimate of what the deployment was sent.
          const inputTokensMax = Math.ceil(Buffer.byteLength(request.body) / 4);
          expect(paid).toBeGreaterThan(costNanos(5, 2, prices));
          expect(paid).toBeLessThanOrEqual(costNanos(inputTokensMax, 2, prices));
        } else expect(paid).toBe(0n);
        expect(deployment.requests).toHaveLength(count + 1);
      });
    });
  });
}
