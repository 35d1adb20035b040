import { describe, it } from "vitest";
import {
  delta,
  finish,
  statusAnswer,
  type Step,
  textAnswer,
} from "../doubles/scripted-deployment.ts";
import { eventually } from "../doubles/eventually.ts";
import { startService } from "../service/start-service.ts";
import { type ClientKind, connectTo, errorOf, modes } from "./client.ts";
import { startRecorder } from "./recorder.ts";
import { thought, usage } from "./scripted-words.ts";

/** Waiting to be let in. At the same time, each with a service of its own. */
export function describeRetries(kind: ClientKind): void {
  describe.concurrent("retries", () => {
    it("waits as told when the deployment is overloaded, then succeeds", async ({ expect }) => {
      await using service = await startService();
      const refusal = statusAnswer(503, {}, { "retry-after": "1" });
      for (let count = 0; count < modes.length; count += 1)
        service.deployment.answerNext(...refusal);
      const overloaded = kind.format === "messages" ? 529 : 503;
      await Promise.all(
        modes.map(async (mode) => {
          await using recorder = await startRecorder(service.url);
          const client = connectTo(kind, service, { maxRetries: 1, url: recorder.url });
          const startMs = performance.now();
          const { text } = await client[mode]({ prompt: "Hello" });
          expect(text).toBe("Hello from the deployment.");
          expect(performance.now() - startMs).toBeGreaterThan(990);
          expect(recorder.statuses).toEqual([overloaded, 200]);
        }),
      );
    });

    it("waits as told for one of four places, then succeeds", async ({ expect }) => {
      await using service = await startService();
      await using recorder = await startRecorder(service.url);
      const client = connectTo(kind, service, { maxRetries: 1, url: recorder.url });
      service.deployment.answerAlways({ type: "hang" });
      const leaving = new AbortController();
      const four = Array.from({ length: 4 }, () =>
        errorOf(connectTo(kind, service).whole({ prompt: "Hello", signal: leaving.signal })),
      );
      await service.deployment.request(3);
      service.deployment.answerAlways(...textAnswer("a place"));
      const startMs = performance.now();
      const fifth = client.streamed({ prompt: "Hello" });
      await expect.poll(() => recorder.statuses.length).toBeGreaterThan(0);
      leaving.abort();
      expect((await fifth).text).toBe("a place");
      expect(performance.now() - startMs).toBeGreaterThan(1_990);
      expect(recorder.statuses).toEqual([429, 200]);
      await Promise.all(four);
    });
  });
}

const keepaliveMs = 120;

/** Waiting for an answer that halts. */
export function describeKeepalive(kind: ClientKind): void {
  describe.concurrent("keepalive", () => {
    it("lasts through silence before, between and inside of what it reads", async ({ expect }) => {
      const environment = { TRIBUTARY_KEEPALIVE_MS: String(keepaliveMs) };
      await using service = await startService({ environment });
      await using recorder = await startRecorder(service.url);
      const pings = (): number => recorder.answers.split(": ping\n\n").length - 1;
      const pause: Step = {
        type: "wait",
        // Begins when the deployment gets there, and lasts for two keepalives, however late they are.
        get until() {
          const due = pings() + 2;
          return eventually(() => (pings() >= due ? true : null), "two keepalives");
        },
      };
      service.deployment.answerNext(...haltingAnswer(pause));
      const client = connectTo(kind, service, { url: recorder.url });
      const seen = await client.streamed({ prompt: "Hello", tools: true });
      expect(seen).toMatchObject({
        text: "Let me look.",
        reasoning: kind.lacks.reasoning === undefined ? thought : "",
        calls: [{ id: "call_rome", name: "weather", input: { city: "Rome" } }],
        finish: kind.finishes?.calls ?? null,
      });
      expect(pings()).toBeGreaterThanOrEqual(4 * 2);
    });
  });
}

/** A thought, a text and a call with a pause before each and inside of two. */
function haltingAnswer(pause: Step): readonly Step[] {
  const call = { index: 0, id: "call_rome", type: "function" };
  const pieceOf = (json: string): Step =>
    delta({ tool_calls: [{ index: 0, function: { arguments: json } }] });
  return [
    // The deployment has the request, so the answer begins, with nothing in it.
    { type: "write", bytes: ": processing\n\n" },
    pause,
    delta({ reasoning_content: thought }),
    pause,
    delta({ content: "Let me" }),
    pause,
    delta({ content: " look." }),
    delta({ tool_calls: [{ ...call, function: { name: "weather", arguments: "" } }] }),
    pieceOf('{"city":'),
    pause,
    pieceOf('"Rome"}'),
    finish("tool_calls", usage),
  ];
}
