import { describe, expect, it } from "vitest";
import { costNanos } from "../../src/admission/price.ts";
import { delta, type Step } from "../doubles/scripted-deployment.ts";
import { untilStill } from "../doubles/until-still.ts";
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
        // What has reached the service shows nowhere until then; service and deployment share this process.
        else await untilStill(() => request.bytesWritten);
        leaving.abort();
        await asked;
        expect((await request.ended).byPeer).toBe(true);
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
