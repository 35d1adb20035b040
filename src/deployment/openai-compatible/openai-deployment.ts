import { setTimeout as delay } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import type { Conversation, GenerationOptions } from "../../conversation/conversation.ts";
import { Failure, failureFromUnknown } from "../../failure.ts";
import { limits } from "../../limits.ts";
import { systemTimers } from "../../timers.ts";
import type {
  Deployment,
  DeploymentDescription,
  GenerationSink,
  Prompt,
  PromptSettings,
  RunningGeneration,
} from "../deployment.ts";
import { type BaseAddress, parseBaseAddress } from "./base-address.ts";
import { type BurstTurns, openBurstTurns } from "./burst-turns.ts";
import { Connections } from "./connections.ts";
import type { DeadlineClock } from "./deadline.ts";
import { dialects, type DialectName, type ExtraField, type ReasoningField } from "./dialect.ts";
import { discover, type Discovery, refuseStatus } from "./discovery.ts";
import { EngineRoutes } from "./engine-routes.ts";
import {
  type FaultFacts,
  failureOfAnswer,
  failureOfStreamError,
  tooLongForContext,
} from "./engine-failure.ts";
import { isOtherEngine, judgeEnding } from "./judge-ending.ts";
import { completeBody, openaiPromptSettings, prepareOpenaiPrompt } from "./openai-prompt.ts";
import { openTlsFiles, type TlsFiles } from "./tls-files.ts";
import { askForTokenCount } from "./tokenizer.ts";
import { type GenerationHooks, UpstreamGeneration } from "./upstream-generation.ts";

/** How the deployment is reached. Times in milliseconds. */
export interface OpenaiCompatibleSettings {
  /** With or without `/v1`. */
  readonly url: string;
  readonly apiKey: string | null;
  /** null: the first model that the deployment lists. */
  readonly model: string | null;
  /** null: what the deployment itself reports, where it does. */
  readonly contextTokens: number | null;
  readonly dialect: DialectName | "auto";
  /** Fields that it takes beside those of its dialect. */
  readonly extraFields: readonly ExtraField[];
  readonly reasoningField: ReasoningField;
  readonly connectMs: number;
  readonly firstEventMs: number;
  readonly silenceMs: number;
  readonly tls: TlsFiles;
}

/** What the deployment is given from outside. */
export interface OpenaiCompatibleParts {
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly newId: (prefix: string) => string;
  /** Times the answers; absent: this process's own. */
  readonly clock?: DeadlineClock;
  /** Called when the deployment was found, and when it was not. */
  readonly onLifecycle?: (
    event: string,
    fields: Readonly<Record<string, string | number | boolean | null>>,
  ) => void;
}

/** Opens a deployment that speaks the Chat Completions format. It is asked what it is in the background. */
export function openOpenaiCompatibleDeployment(
  settings: OpenaiCompatibleSettings,
  parts: OpenaiCompatibleParts,
): Deployment {
  return new OpenaiCompatibleDeployment(settings, parts);
}

class OpenaiCompatibleDeployment implements Deployment {
  readonly #settings: OpenaiCompatibleSettings;
  readonly #parts: OpenaiCompatibleParts;
  readonly #base: BaseAddress;
  readonly #connections: Connections;
  readonly #clock: DeadlineClock;
  readonly #turns: BurstTurns;
  readonly #routes: EngineRoutes;
  readonly #running = new Set<UpstreamGeneration>();
  readonly #closing = new AbortController();
  #found: Found | null = null;
  #contextIsSure = true;
  /** Resolves when the deployment was found, or could not be and its model is known from the settings. */
  #ready = Promise.withResolvers<void>();
  #isReady = false;
  #looking: Promise<void> | null = null;
  #lastTrouble = "";
  /** When the engine was last asked what it is. */
  #lookedAtMs = Number.NEGATIVE_INFINITY;
  #countsUnderWay = 0;

  constructor(settings: OpenaiCompatibleSettings, parts: OpenaiCompatibleParts) {
    this.#settings = settings;
    this.#parts = parts;
    this.#base = parseBaseAddress(settings.url);
    const tls = openTlsFiles(settings.tls);
    this.#connections = new Connections(this.#base.origin, settings.connectMs, tls);
    this.#clock = parts.clock ?? {
      timers: systemTimers,
      monotonicMs: () => performance.now(),
    };
    this.#turns = openBurstTurns({ ...this.#clock, nextTurn: setImmediate });
    this.#routes = new EngineRoutes({
      origin: this.#base.origin,
      query: this.#base.query,
      headers: this.#headers(),
      connectMs: settings.connectMs,
      tls,
    });
    this.#look();
  }

  promptSettings(): PromptSettings {
    const { extraFields, reasoningField } = this.#settings;
    const takesEffort = this.#found?.takesEffort ?? true;
    return openaiPromptSettings(this.#dialect(), reasoningField, { takesEffort, extraFields });
  }

  prepare(conversation: Conversation, options: GenerationOptions): Prompt {
    return prepareOpenaiPrompt(this.promptSettings(), conversation, options);
  }

  async whenReady(signal: AbortSignal): Promise<void> {
    if (this.#isReady) return;
    const late = delay(limits.modelLoadWaitMs, "late", { signal, ref: false }).catch(() => "late");
    if ((await Promise.race([this.#ready.promise, late])) === "late") throw notReady();
  }

  start(prompt: Prompt, outputTokensMax: number, sink: GenerationSink): RunningGeneration {
    const model = this.#model();
    if (model === null) return failed(sink, notReady());
    const { connectMs, firstEventMs, silenceMs } = this.#settings;
    const inputTokensEstimate = Math.ceil(prompt.bytes.length / limits.bytesPerTokenEstimate);
    const { contextTokens } = this.describe();
    const { truncates } = dialects[this.#dialect()];
    if (truncates && contextTokens !== null && inputTokensEstimate >= contextTokens)
      return failed(
        sink,
        tooLongForContext({ sent: inputTokensEstimate + 1, maximum: contextTokens }),
      );
    if (this.#parts.now() - this.#lookedAtMs >= limits.deploymentKnownMs) this.#lookUnseen();
    const generation = new UpstreamGeneration(
      {
        path: `${this.#path()}/chat/completions${this.#base.query}`,
        headers: this.#headersOf(prompt),
        body: completeBody(prompt, model, outputTokensMax),
        connectMs,
        firstEventMs,
        silenceMs,
      },
      this.#judged(sink),
      {
        connections: this.#connections,
        clock: this.#clock,
        turns: this.#turns,
        hooks: {
          ...this.#hooks(prompt, { inputTokensEstimate, outputTokensMax }),
          inputTokensMax: prompt.inputTokensMax ?? limits.inputBoundMax,
          outputTokensMax,
        },
      },
    );
    this.#running.add(generation);
    generation.start();
    return generation;
  }

  describe(): DeploymentDescription {
    return {
      ready: this.#isReady,
      model: this.#model() ?? "",
      contextTokens: this.#found?.contextTokens ?? this.#settings.contextTokens,
      takesTools: this.#found?.takesTools ?? true,
    };
  }

  async check(signal: AbortSignal): Promise<void> {
    if (this.#found === null) await this.#lookOnce(signal);
    else refuseStatus((await this.#routes.asking(signal)(`${this.#path()}/models`)).status);
  }

  async countTokens(prompt: Prompt, signal: AbortSignal): Promise<number | null> {
    const { tokenizer } = dialects[this.#dialect()];
    if (this.#found === null || tokenizer === null) return null;
    if (this.#countsUnderWay >= limits.countTokensAsksMax) return null;
    const over = AbortSignal.any([signal, AbortSignal.timeout(limits.countTokensAskMs)]);
    const { enginePath } = this.#base;
    this.#countsUnderWay += 1;
    try {
      const question = { tokenizer, prompt, model: this.#found.model, enginePath };
      return await askForTokenCount(question, this.#routes.posting(over));
    } catch {
      // Engines may lack the routes or be away; the estimate is there already.
      return null;
    } finally {
      this.#countsUnderWay -= 1;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort();
    for (const generation of this.#running) generation.cancel();
    await this.#connections.close();
    await this.#routes[Symbol.asyncDispose]();
    await this.#looking;
  }

  #dialect(): DialectName {
    const { dialect } = this.#settings;
    return this.#found?.dialect ?? (dialect === "auto" ? "generic" : dialect);
  }

  #model(): string | null {
    return this.#found?.model ?? this.#settings.model;
  }

  #path(): string {
    return this.#found?.path ?? this.#base.candidates[0] ?? "/v1";
  }

  /** Of a caller there is at most the id of its trace, where traces are on. */
  #headersOf({ traceparent }: Prompt): Record<string, string> {
    const headers = { ...this.#headers(), accept: "text/event-stream" };
    return traceparent === undefined ? headers : { ...headers, traceparent };
  }

  /** Nothing of a caller's headers goes to the deployment. */
  #headers(): Record<string, string> {
    const { apiKey } = this.#settings;
    return {
      "content-type": "application/json",
      "user-agent": "tributary",
      ...(apiKey === null || apiKey === "" ? {} : { authorization: `Bearer ${apiKey}` }),
    };
  }

  /** The sink, with its ending judged; discovery runs again where the ending suggests that another engine answers now. */
  #judged(sink: GenerationSink): GenerationSink {
    return {
      accepted: () => sink.accepted(),
      events: (batch, usage) => sink.events(batch, usage),
      end: (ending) => {
        const { contextTokens } = this.describe();
        const engine = { contextTokens, truncates: dialects[this.#dialect()].truncates };
        if (isOtherEngine(ending, engine)) this.#look();
        else if (!this.#contextIsSure && this.#isLookDue()) this.#lookUnseen();
        sink.end(judgeEnding(ending, engine));
      },
    };
  }

  #hooks(
    { bytes }: Prompt,
    sent: Pick<FaultFacts, "inputTokensEstimate" | "outputTokensMax">,
  ): Omit<GenerationHooks, "inputTokensMax" | "outputTokensMax"> {
    const facts = (retryAfter: string | null): FaultFacts => ({
      ...sent,
      contextTokens: this.describe().contextTokens,
      wasSent: (field) =>
        Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).includes(`,"${field}":`),
      retryAfter,
      nowMs: this.#parts.now(),
    });
    return {
      newId: this.#parts.newId,
      failureOf: (error) => failureOfStreamError(error, facts(null)),
      failureOfAnswer: (status, body, retryAfter) =>
        failureOfAnswer(status, body, facts(retryAfter)),
      onEnd: (generation) => void this.#running.delete(generation),
    };
  }

  /** Looks for the deployment until it is found; one search at a time. */
  #look(): void {
    this.#looking ??= this.#lookUntilFound().finally(() => (this.#looking = null));
  }

  #isLookDue(): boolean {
    return this.#parts.now() - this.#lookedAtMs >= limits.deploymentLookMsMin;
  }

  /** Looks once, and reports nothing where no answer comes: generations go on, and their own failures say more. */
  #lookUnseen(): void {
    this.#looking ??= this.#lookOnce(this.#closing.signal)
      .catch(() => undefined)
      .finally(() => (this.#looking = null));
  }

  async #lookUntilFound(): Promise<void> {
    const { signal } = this.#closing;
    const sinceLookMs = this.#parts.now() - this.#lookedAtMs;
    if (sinceLookMs >= 0 && sinceLookMs < limits.deploymentLookMsMin)
      await pause(limits.deploymentLookMsMin - sinceLookMs, signal);
    for (
      let waitMs = lookAgainMsMin;
      !signal.aborted;
      waitMs = Math.min(waitMs * 2, lookAgainMsMax)
    ) {
      try {
        await this.#lookOnce(signal);
        return;
      } catch (error) {
        if (signal.aborted) return;
        this.#reportTrouble(error);
        if (this.#settings.model !== null) this.#becomeReady();
      }
      await pause(waitMs, signal);
    }
  }

  async #lookOnce(signal: AbortSignal): Promise<void> {
    this.#lookedAtMs = this.#parts.now();
    const reported = await discover(this.#routes.asking(signal), this.#base, this.#settings);
    const found = this.#withKnownContext(reported);
    this.#contextIsSure = reported.contextIsSure;
    const { dialect, model, contextTokens, takesTools } = found;
    const isNews = this.#lastTrouble !== "" || !isDeepStrictEqual(found, this.#found);
    this.#found = found;
    this.#lastTrouble = "";
    if (isNews)
      this.#parts.onLifecycle?.("deployment found", { dialect, model, contextTokens, takesTools });
    this.#becomeReady();
  }

  /** Of a model that is unloaded for a while, the context that it had stands. */
  #withKnownContext({ contextIsSure, ...reported }: Discovery): Found {
    const before = this.#found;
    return contextIsSure || before?.model !== reported.model
      ? reported
      : { ...reported, contextTokens: before.contextTokens };
  }

  #becomeReady(): void {
    this.#isReady = true;
    this.#ready.resolve();
  }

  #reportTrouble(error: unknown): void {
    const { message, cause } = failureFromUnknown(error);
    const reason = cause instanceof Error ? `${message} ${cause.message}` : message;
    if (reason === this.#lastTrouble) return;
    this.#lastTrouble = reason;
    this.#parts.onLifecycle?.("deployment not found", { reason });
  }
}

type Found = Omit<Discovery, "contextIsSure">;

const lookAgainMsMin = 250;
const lookAgainMsMax = 5_000;

/** Waits; resolves early when the signal is aborted. */
async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await delay(ms, undefined, { signal, ref: false }).catch(() => undefined);
}

function failed(sink: GenerationSink, failure: Failure): RunningGeneration {
  queueMicrotask(() => sink.end({ type: "failed", failure }));
  return { pause: () => undefined, resume: () => undefined, cancel: () => undefined };
}

function notReady(): Failure {
  return new Failure("overloaded", "The model is not ready yet. Try again in a moment.", {
    retryAfterSeconds: 5,
  });
}
