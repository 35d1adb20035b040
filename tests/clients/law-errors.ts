import { describe, expect, it } from "vitest";
import {
  delta,
  finish,
  openGate,
  statusAnswer,
  type Step,
} from "../doubles/scripted-deployment.ts";
import { startService, type TestService } from "../service/start-service.ts";
import { type ClientKind, type Connection, connectTo, errorOf, modes } from "./client.ts";
import { startRecorder } from "./recorder.ts";

const errorStep: Step = {
  type: "write",
  bytes: 'data: {"error":{"message":"boom","code":500}}\n\n',
};

/** Each way to fail has its class, comes once, and is not tried again where that is of no use. */
export function describeErrors(kind: ClientKind, service: () => TestService): void {
  describe("errors", () => {
    async function expectError(
      error: unknown,
      status: keyof ClientKind["errorNames"],
      wireStatus: number = status,
    ): Promise<ReturnType<ClientKind["describeError"]>> {
      const seen = kind.describeError(error);
      expect(seen).toMatchObject({ status: wireStatus, name: kind.errorNames[status] });
      expect(seen.requestId).toMatch(/^req_/);
      return seen;
    }

    describe.each(modes)("%s", (mode) => {
      interface Asked {
        readonly error: unknown;
        readonly statuses: readonly number[];
      }
      const ask = async (different: Partial<Connection>, prompt = "Hello"): Promise<Asked> => {
        await using recorder = await startRecorder(service().url);
        const url = `${recorder.url}${different.url ?? ""}`;
        const client = connectTo(kind, service(), { maxRetries: 2, ...different, url });
        const error = await errorOf(client[mode]({ prompt }));
        return { error, statuses: recorder.statuses };
      };

      it("a wrong key is 401 and asked once", async () => {
        const { error, statuses } = await ask({ key: `${service().key.slice(0, -3)}aaa` });
        await expectError(error, 401);
        expect(statuses).toEqual([401]);
      });

      it("no credit is 402 and asked once", async () => {
        const { key } = await service().newKey("0.000001");
        const { error, statuses } = await ask({ key });
        const { message } = await expectError(error, 402);
        expect(message).toMatch(/credit/i);
        expect(statuses).toEqual([402]);
      });

      it("a disabled account is 403 and asked once", async () => {
        const { key, accountId } = await service().newKey("1");
        await service().ledger.setAccountStatus(accountId, "disabled");
        const { error, statuses } = await ask({ key });
        await expectError(error, 403);
        expect(statuses).toEqual([403]);
      });

      it("a doubled base address is 404, tells the right one and is asked once", async () => {
        const { error, statuses } = await ask({ url: "/v1" });
        const { message } = await expectError(error, 404);
        expect(message).toContain("/v1");
        expect(statuses).toEqual([404]);
      });

      it("a body above 4 MiB is 413 and asked once", async () => {
        const { error, statuses } = await ask({}, "x".repeat(4 * 1_048_576));
        await expectError(error, 413);
        expect(statuses).toEqual([413]);
      });

      it("a failing deployment is 502 and names no address of it", async () => {
        service().deployment.answerNext(...statusAnswer(500, { error: { message: "cuda" } }));
        const { error } = await ask({ maxRetries: 0 });
        const { message } = await expectError(error, 502);
        expect(message).not.toMatch(/cuda|127\.0\.0\.1/);
      });
    });

    it("an overloaded deployment is 503 or 529 with the time to wait", async () => {
      service().deployment.answerNext(...statusAnswer(429, {}));
      const error = await errorOf(connectTo(kind, service()).streamed({ prompt: "Hello" }));
      const status = kind.format === "messages" ? 529 : 503;
      expect((await expectError(error, 503, status)).retryAfter).toBe("5");
    });

    it("something that is not offered is 400, names the field and is asked once", async () => {
      await using recorder = await startRecorder(service().url);
      const client = connectTo(kind, service(), { maxRetries: 2, url: recorder.url });
      const sent = service().deployment.requests.length;
      const { message } = await expectError(await errorOf(client.askForTheImpossible()), 400);
      expect(`${message} ${recorder.answers}`).toContain(kind.impossibleField);
      expect(recorder.statuses).toEqual([400]);
      expect(service().deployment.requests).toHaveLength(sent);
    });

    it("too many requests of a key are 429 with the time to wait", async () => {
      await using strict = await startService({
        environment: { TRIBUTARY_REQUESTS_PER_MINUTE: "1" },
      });
      const client = connectTo(kind, strict);
      await client.streamed({ prompt: "Hello" });
      const error = await errorOf(client.streamed({ prompt: "Hello" }));
      const { retryAfter } = await expectError(error, 429);
      expect(Number(retryAfter)).toBeGreaterThan(50);
      expect(Number(retryAfter)).toBeLessThanOrEqual(60);
    });

    itThrowsInMidStream(kind, service);
  });
}

/** Stands for a wait until the client has what was written before. */
const untilHeard: Step = { type: "hang" };

function itThrowsInMidStream(kind: ClientKind, service: () => TestService): void {
  it.each([
    ["ends without a finish", [delta({ content: "half" })]],
    // A reset takes with it what is on the way.
    ["is reset", [delta({ content: "half" }), untilHeard, { type: "reset" }]],
    ["says an error", [delta({ content: "half" }), errorStep, finish("stop")]],
  ] as readonly (readonly [string, readonly Step[]])[])(
    "a stream throws, costs nothing and is not asked again when the deployment %s",
    async (_name, steps) => {
      const { key, accountId } = await service().newKey("10");
      await using recorder = await startRecorder(service().url);
      const client = connectTo(kind, service(), { key, maxRetries: 2, url: recorder.url });
      const before = (await service().credit(accountId)).balance;
      const gate = openGate();
      service().deployment.answerNext(
        ...steps.map((step) => (step === untilHeard ? gate.step : step)),
      );
      const heard: string[] = [];
      const onText = (piece: string): void => {
        heard.push(piece);
        gate.open();
      };
      const error = await errorOf(client.streamed({ prompt: "Hello", onText }));
      expect(heard.join("")).toBe("half");
      expect(kind.describeError(error).message).toMatch(/deployment/i);
      expect(recorder.statuses).toEqual([200]);
      expect((await service().settledCredit(accountId)).balance).toBe(before);
    },
  );
}
