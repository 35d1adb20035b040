import type { GenerationEvent, Usage } from "../../src/conversation/generation-event.ts";
import type { Ending } from "../../src/deployment/deployment.ts";
import type {
  Connection,
  Connections,
  RequestHandler,
} from "../../src/deployment/openai-compatible/connections.ts";
import {
  type BurstTurns,
  openBurstTurns,
} from "../../src/deployment/openai-compatible/burst-turns.ts";
import { failureOfStreamError } from "../../src/deployment/openai-compatible/engine-failure.ts";
import { UpstreamGeneration } from "../../src/deployment/openai-compatible/upstream-generation.ts";
import { Failure } from "../../src/failure.ts";
import { type ManualTimers, openManualTimers } from "../doubles/manual-timers.ts";

/** Time limits of a driven generation, in milliseconds. */
export const drivenTimes = { connectMs: 5_000, firstEventMs: 600_000, silenceMs: 120_000 } as const;

/** A generation whose connections and clock are in the hands of the test, and what its sink was called with. */
export interface DrivenGeneration {
  readonly generation: UpstreamGeneration;
  readonly clock: ManualTimers;
  /** What it did to sink and connections, in order. */
  readonly calls: readonly string[];
  /** What became of its connections, in order. */
  readonly fates: readonly string[];
  readonly batches: readonly (readonly GenerationEvent[])[];
  readonly usages: readonly (Usage | null)[];
  readonly text: string;
  readonly ending: Ending | null;
  /** Requests that were sent. */
  readonly requests: number;
  /** How it has ended, as the code of its failure where it failed; null: it has not. */
  outcome(): Promise<string | null>;
  settle(): Promise<void>;
  /** The connection takes the request. */
  ask(): void;
  answer(status?: number, headers?: Readonly<Record<string, string | string[]>>): void;
  /** In one read. */
  send(...chunks: readonly (string | Uint8Array)[]): Promise<void>;
  endBody(): void;
  break(code?: string): void;
}

type Controller = Parameters<RequestHandler["onRequestStart"]>[0];

interface DrivenOptions {
  readonly inputTokensMax?: number;
  readonly outputTokensMax?: number;
  /** Instead of `drivenTimes`. */
  readonly times?: { readonly firstEventMs: number; readonly silenceMs: number };
  /** What the client of a connection throws instead of sending the request. */
  readonly unsendable?: Error;
  /** Shared with other generations; instead of turns of its own. */
  readonly turns?: BurstTurns;
  /** What the sink does with it inside each of its batches. */
  readonly onEvents?: (generation: UpstreamGeneration) => void;
}

/** Starts one. Its first connection has carried a request before, the others have not. */
export function driveGeneration(options: DrivenOptions): DrivenGeneration {
  const clock = openManualTimers();
  const calls: string[] = [];
  const handlers: RequestHandler[] = [];
  const batches: (readonly GenerationEvent[])[] = [];
  const usages: (Usage | null)[] = [];
  let ending: Ending | null = null;
  const controller = {
    pause: () => void calls.push("pause"),
    resume: () => void calls.push("resume"),
    abort: () => void calls.push("abort"),
  } as unknown as Controller;
  const generation: UpstreamGeneration = new UpstreamGeneration(
    {
      path: "/v1/chat/completions",
      headers: {},
      body: [new Uint8Array(10)],
      ...drivenTimes,
      ...options.times,
    },
    {
      accepted: () => void calls.push("accepted"),
      events(batch, usage) {
        batches.push(batch);
        usages.push(usage);
        options.onEvents?.(generation);
      },
      end(told) {
        if (ending !== null) throw new Error("it ended twice");
        ending = told;
      },
    },
    {
      connections: drivenConnections(calls, (handler) => {
        if (options.unsendable !== undefined) throw options.unsendable;
        handlers.push(handler);
      }),
      clock: { timers: clock, monotonicMs: clock.monotonicMs },
      turns:
        options.turns ??
        openBurstTurns({
          monotonicMs: clock.monotonicMs,
          nextTurn: (callback) => void clock.set(callback, 0),
        }),
      hooks: drivenHooks(calls, options),
    },
  );
  generation.start();
  const handler = (): RequestHandler => handlers.at(-1) ?? never();
  const settle = async (): Promise<void> => {
    for (let turn = 0; turn < 3; turn += 1) await Promise.resolve();
  };
  return {
    generation,
    clock,
    calls,
    batches,
    usages,
    settle,
    get fates() {
      return calls.filter((call) => /^(?:keep|drop) /u.test(call));
    },
    get text() {
      const texts = batches.flat().map((event) => (event.type === "text-delta" ? event.text : ""));
      return texts.join("");
    },
    get ending() {
      return ending;
    },
    get requests() {
      return handlers.length;
    },
    async outcome() {
      await settle();
      if (ending === null) return null;
      return ending.type === "failed" ? ending.failure.code : ending.type;
    },
    ask: () => handler().onRequestStart(controller, {}),
    answer: (status = 200, headers = {}) =>
      handler().onResponseStart(controller, status, { ...headers }, ""),
    async send(...chunks) {
      const given = chunks.map((chunk) => Buffer.from(chunk));
      for (const chunk of given) handler().onResponseData(controller, chunk);
      await settle();
      // A connection may use its buffers again.
      for (const chunk of given) chunk.fill("X");
    },
    endBody: () => handler().onResponseEnd(controller, {}),
    break: (code = "UND_ERR_SOCKET") =>
      handler().onResponseError(controller, Object.assign(new Error("broken"), { code })),
  };
}

function drivenConnections(
  calls: string[],
  dispatch: (handler: RequestHandler) => void,
): Connections {
  const open = (name: string, requestsOfSocket: number): Connection => ({
    requestsOfSocket,
    client: {
      name,
      dispatch: (_options: unknown, handler: RequestHandler) => dispatch(handler),
    } as unknown as Connection["client"],
  });
  const nameOf = ({ client }: Connection): string => (client as unknown as { name: string }).name;
  return {
    take: () => open("first", 1),
    takeFresh: () => open("fresh", 0),
    giveBack: (connection: Connection) => void calls.push(`keep ${nameOf(connection)}`),
    drop: (connection: Connection) => void calls.push(`drop ${nameOf(connection)}`),
  } as unknown as Connections;
}

function drivenHooks(
  calls: string[],
  { inputTokensMax = 1_000, outputTokensMax = 1_000 }: DrivenOptions,
): ConstructorParameters<typeof UpstreamGeneration>[2]["hooks"] {
  const known = { contextTokens: null, retryAfter: null, nowMs: 0 };
  const facts = { inputTokensEstimate: 10, outputTokensMax, ...known };
  let ids = 0;
  return {
    newId: (prefix) => `${prefix}${(ids += 1)}`,
    failureOf: (error) => failureOfStreamError(error, facts),
    failureOfAnswer: (status, words) =>
      new Failure("refused_by_deployment", `${String(status)} ${words}`),
    onEnd: () => void calls.push("over"),
    inputTokensMax,
    outputTokensMax,
  };
}

function never(): never {
  throw new Error("nothing was asked");
}
