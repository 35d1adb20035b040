import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { Agent, fetch as fetchThrough } from "undici";
import { longWord } from "./load.ts";

/** What official SDKs saw, as they are out of the box. */
export interface SdkReport {
  readonly calls: number;
  /** Requests that the SDKs sent again by themselves. */
  readonly repeated: number;
  /** What their callers got instead of an answer. */
  readonly failures: readonly string[];
}

/** Programs that ask for long answers in one piece all the time, by the official SDKs through the proxy. */
export function startSdkLoad(order: {
  readonly socketPath: string;
  readonly keys: readonly string[];
}): { stop(): Promise<SdkReport> } {
  const agent = new Agent({ connect: { socketPath: order.socketPath } });
  let sent = 0;
  let calls = 0;
  const failures: string[] = [];
  const through = ((url: string, init: object) => {
    sent += 1;
    return fetchThrough(url, { ...init, dispatcher: agent });
  }) as unknown as typeof fetch;
  const messages = [{ role: "user", content: longWord } as const];
  const model = "service-llm";
  const asks = order.keys.flatMap((apiKey) => {
    const chat = new OpenAI({ apiKey, baseURL: "http://llm.example.org/v1", fetch: through });
    const other = new Anthropic({ apiKey, baseURL: "http://llm.example.org", fetch: through });
    return [
      async () =>
        (await chat.chat.completions.create({ model, messages })).choices[0]?.finish_reason,
      async () => (await chat.responses.create({ model, input: longWord })).status,
      async () => (await other.messages.create({ model, messages, max_tokens: 100 })).stop_reason,
    ];
  });
  const ends = new Set<unknown>(["stop", "completed", "end_turn"]);
  const stopped = new AbortController();
  const running = asks.map(async (ask) => {
    while (!stopped.signal.aborted) {
      calls += 1;
      const end = await ask().catch(String);
      if (!ends.has(end)) failures.push(String(end));
    }
  });
  return {
    async stop() {
      stopped.abort();
      await Promise.all(running);
      await agent.close();
      return { calls, repeated: sent - calls, failures };
    },
  };
}
