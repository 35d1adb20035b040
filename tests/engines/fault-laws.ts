import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import type { DeploymentDescription } from "../../src/deployment/deployment.ts";
import { formats } from "../service/start-service.ts";
import { type Answered, askEngine, askService } from "./answers.ts";
import type { Laws } from "./laws.ts";
import { type Served, serve } from "./served.ts";
import { openEngineProcess } from "./engine.ts";

/** Fills a thousand tokens, also with the smallest of models. */
const long = "Repeat this line forever: apple banana apple banana apple banana apple banana";
const waitMs = 120_000;
// vLLM loads for a minute on two idle cores, and for many beside other work.
const restartMs = 1_800_000;

async function until(
  what: string,
  holds: () => Promise<boolean>,
  withinMs = waitMs,
): Promise<void> {
  const late = performance.now() + withinMs;
  while (!(await holds())) {
    if (performance.now() > late) throw new Error(`not within ${String(withinMs)} ms: ${what}`);
    await sleep(20);
  }
}

/** A long answer under way in one format: `ended` when the client heard its end. */
function startLong(
  { service }: Served,
  format: (typeof formats)[number]["name"],
  { signal, stream }: { readonly stream: boolean; readonly signal?: AbortSignal },
): Promise<Answered> {
  const send =
    format === "responses" ? { input: long } : { messages: [{ role: "user", content: long }] };
  return askService(service, format, {
    send,
    stream,
    max: 1_500,
    ...(signal === undefined ? {} : { signal }),
  });
}

/** What breaks: clients that leave, engines that die, load, and come back as others. The last of an engine's laws. */
export function describeFaults(served: () => Served, law: Laws): void {
  describe.each(formats)("faults in $name", ({ name }) => {
    it.each([true, false])(
      "a client that leaves ends the engine's work; streamed: %s",
      async (stream) => {
        const { engine } = served();
        const leaving = new AbortController();
        const asked = startLong(served(), name, { stream, signal: leaving.signal });
        await until("it runs", async () => (await engine.running()) === 1);
        leaving.abort();
        await expect(asked).rejects.toThrow();
        await until("it runs no more", async () => (await engine.running()) === 0);
      },
    );
  });

  it(
    "an engine that is killed ends every answer with its format's error, and is waited for",
    async () => {
      const { engine, service } = served();
      const running = formats.flatMap(({ name }) =>
        [true, false].map((stream) => ({
          name,
          stream,
          asked: startLong(served(), name, { stream }),
        })),
      );
      await until("they run", async () => (await engine.running()) >= 2);
      await sleep(300);
      await engine.kill();
      for (const { asked, name, stream } of running) {
        const { error, finish, status } = await asked;
        expect(finish, `${name} ${String(stream)}`).toBe("");
        expect(error, `${name} ${String(stream)}`).not.toBeNull();
        if (!stream) expect([502, 503, 529]).toContain(status);
      }
      for (const { name } of formats) {
        const away = await startLong(served(), name, { stream: false });
        expect(away).toMatchObject({ status: name === "messages" ? 529 : 503, retryAfter: "5" });
      }
      expect((await service.settledCredit()).held).toBe(0n);
      await engine.start();
      const again = await askService(service, "chat-completions", {
        send: { messages: [{ role: "user", content: "Hi" }] },
        stream: true,
      });
      expect(again).toMatchObject({ status: 200, error: null });
    },
    restartMs,
  );

  const another = law("model");
  another.test(
    `an engine that comes back with another name and context is followed${another.because}`,
    async () => {
      const { engine, service } = served();
      await engine.kill();
      const away = await startLong(served(), "chat-completions", { stream: false });
      expect(away.status).toBe(503);
      await engine.start({ alias: "other", contextTokens: 1_024 });
      const found = (): DeploymentDescription => service.gateway.describe();
      const model = engine.engine.idOf("other");
      await until("it is found", async () => found().model === model);
      await until("its context is known", async () => {
        if (found().contextTokens === 1_024) return true;
        // Ollama tells it of a loaded model, and one that was found before it loaded is looked at after an answer.
        const messages = [{ role: "user", content: "Hi" }];
        await askService(service, "messages", { send: { messages }, stream: false, max: 1 });
        return false;
      });
      // As long as the old context allowed: the limit that goes to the engine must fit the new one.
      const again = await askService(service, "messages", {
        send: { messages: [{ role: "user", content: long }], stop_sequences: ["a", "e"] },
        stream: false,
        max: 1_900,
      });
      expect(again).toMatchObject({ status: 200, error: null });
    },
    restartMs,
  );

  it(
    "an engine that loads after the service is found, and callers before that are told to come again",
    async () => {
      const { engine } = served();
      await using late = await openEngineProcess(engine.engine, {
        template: engine.engine.templates.calls,
      });
      // One at a time: vLLM counts its memory by what others left.
      await engine.kill();
      await using service = await serve(late.origin);
      const asked = { send: { messages: [{ role: "user", content: "Hi" }] }, stream: true };
      const before = await askService(service, "chat-completions", asked);
      expect(before).toMatchObject({ status: 503, error: "overloaded" });
      late.launch();
      const statuses = new Set<number>();
      const serves = async (): Promise<boolean> => {
        const { status } = await askService(service, "chat-completions", asked);
        statuses.add(status);
        return status === 200;
      };
      await until("it serves", serves, engine.engine.loadMs);
      expect([...statuses].every((status) => status === 200 || status === 503)).toBe(true);
      const direct = await askEngine(late.origin, { messages: asked.send.messages });
      expect((await askService(service, "chat-completions", asked)).text).toBe(direct.text);
    },
    restartMs,
  );
}
