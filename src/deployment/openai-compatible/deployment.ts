import { setTimeout as delay } from "node:timers/promises";
import { Agent, request } from "undici";
import type { Conversation, GenerationOptions } from "../../conversation/conversation.ts";
import { Failure, failureFromUnknown } from "../../failure.ts";
import { limits } from "../../limits.ts";
import type {
  Deployment,
  DeploymentDescription,
  GenerationSink,
  Prompt,
  PromptRecipe,
  RunningGeneration,
} from "../deployment.ts";
import { DeploymentRefusal } from "../deployment-refusal.ts";
import { type BaseAddress, parseBaseAddress } from "./base-address.ts";
import { Connections } from "./connections.ts";
import type { DialectName, ExtraField, ReasoningField } from "./dialect.ts";
import { type Ask, discover, type Discovery, refuseStatus } from "./discovery.ts";
import { type FaultFacts, failureOfAnswer, failureOfStreamError } from "./fault.ts";
import { completeBody, openaiPromptRecipe, prepareOpenaiPrompt } from "./request.ts";
import { UpstreamGeneration } from "./upstream-generation.ts";

/** How the deployment is reached. Times in milliseconds. */
export interface OpenaiCompatibleSettings {
  /** With or without `/v1`. */
  readonly url: string;
  readonly apiKey: string | null;
  /** null: the first model that the deployment lists. */
  readonly model: string | null;
  /** null: asked from the deployment where it tells. */
  readonly contextTokens: number | null;
  readonly dialect: DialectName | "auto";
  /** What it takes beside what its dialect takes. */
  readonly extraFields: readonly ExtraField[];
  readonly reasoningField: ReasoningField;
  readonly connectMs: number;
  readonly firstEventMs: number;
  readonly silenceMs: number;
}

/** What the deployment is given from outside. */
export interface OpenaiCompatibleParts {
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly newId: (prefix: string) => string;
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
  readonly #agent: Agent;
  readonly #running = new Set<UpstreamGeneration>();
  readonly #closing = new AbortController();
  #found: Discovery | null = null;
  /** Resolves when the deployment was found, or could not be and its model is known from the settings. */
  #ready = Promise.withResolvers<void>();
  #isReady = false;
  #looking: Promise<void> | null = null;
  #lastTrouble = "";

  constructor(settings: OpenaiCompatibleSettings, parts: OpenaiCompatibleParts) {
    this.#settings = settings;
    this.#parts = parts;
    this.#base = parseBaseAddress(settings.url);
    this.#connections = new Connections(this.#base.origin, settings.connectMs);
    this.#agent = new Agent({
      headersTimeout: askMs,
      bodyTimeout: askMs,
      connect: { timeout: settings.connectMs },
    });
    this.#look();
  }

  recipe(): PromptRecipe {
    const { extraFields, reasoningField } = this.#settings;
    const takesEffort = this.#found?.takesEffort ?? true;
    return openaiPromptRecipe(this.#dialect(), reasoningField, { takesEffort, extraFields });
  }

  prepare(conversation: Conversation, options: GenerationOptions): Prompt {
    return prepareOpenaiPrompt(this.recipe(), conversation, options);
  }

  async whenReady(signal: AbortSignal): Promise<void> {
    if (this.#isReady) return;
    const late = delay(limits.modelLoadWaitMs, "late", { signal, ref: false }).catch(() => "late");
    if ((await Promise.race([this.#ready.promise, late])) === "late") throw notReady();
  }

  start(prompt: Prompt, outputTokensMax: number, sink: GenerationSink): RunningGeneration {
    const model = this.#model();
    if (model === null) {
      queueMicrotask(() => sink.end({ type: "failed", failure: notReady() }));
      return { pause: () => undefined, resume: () => undefined, cancel: () => undefined };
    }
    const { connectMs, firstEventMs, silenceMs } = this.#settings;
    const inputTokensEstimate = Math.ceil(prompt.bytes.length / limits.bytesPerTokenEstimate);
    const generation = new UpstreamGeneration(
      {
        path: `${this.#path()}/chat/completions${this.#base.query}`,
        headers: { ...this.#headers(), accept: "text/event-stream" },
        body: completeBody(prompt, model, outputTokensMax),
        connectMs,
        firstEventMs,
        silenceMs,
      },
      sink,
      {
        connections: this.#connections,
        hooks: this.#hooks({ inputTokensEstimate, outputTokensMax }),
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
    else refuseStatus((await this.#ask(signal)(`${this.#path()}/models`)).status);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort();
    for (const generation of this.#running) generation.cancel();
    await this.#connections.close();
    await this.#agent.destroy();
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

  /** Nothing of a caller's headers goes to the deployment. */
  #headers(): Record<string, string> {
    const { apiKey } = this.#settings;
    return {
      "content-type": "application/json",
      "user-agent": "tributary",
      ...(apiKey === null || apiKey === "" ? {} : { authorization: `Bearer ${apiKey}` }),
    };
  }

  #hooks(
    sent: Pick<FaultFacts, "inputTokensEstimate" | "outputTokensMax">,
  ): ConstructorParameters<typeof UpstreamGeneration>[2]["hooks"] {
    const facts = (retryAfter: string | null): FaultFacts => ({
      ...sent,
      contextTokens: this.describe().contextTokens,
      retryAfter,
      nowMs: this.#parts.now(),
    });
    const seen = (failure: Failure): Failure => {
      const { cause } = failure;
      const missing = cause instanceof DeploymentRefusal && cause.fields.status === 404;
      // Another model may have taken the place of the one that was found.
      if (missing && this.#settings.model === null) this.#look();
      return failure;
    };
    return {
      newId: this.#parts.newId,
      failureOf: (error) => seen(failureOfStreamError(error, facts(null))),
      failureOfAnswer: (status, body, retryAfter) =>
        seen(failureOfAnswer(status, body, facts(retryAfter))),
      onEnd: (generation) => void this.#running.delete(generation),
    };
  }

  /** Looks for the deployment until it is found; one search at a time. */
  #look(): void {
    this.#looking ??= this.#lookUntilFound().finally(() => (this.#looking = null));
  }

  async #lookUntilFound(): Promise<void> {
    const { signal } = this.#closing;
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
        this.#tellTrouble(error);
        if (this.#settings.model !== null) this.#becomeReady();
      }
      await delay(waitMs, undefined, { signal, ref: false }).catch(() => undefined);
    }
  }

  async #lookOnce(signal: AbortSignal): Promise<void> {
    const found = await discover(this.#ask(signal), this.#base, this.#settings);
    const { dialect, model, contextTokens, takesTools } = found;
    this.#found = found;
    this.#lastTrouble = "";
    this.#parts.onLifecycle?.("deployment found", { dialect, model, contextTokens, takesTools });
    this.#becomeReady();
  }

  #becomeReady(): void {
    this.#isReady = true;
    this.#ready.resolve();
  }

  #tellTrouble(error: unknown): void {
    const { message, cause } = failureFromUnknown(error);
    const reason = cause instanceof Error ? `${message} ${cause.message}` : message;
    if (reason === this.#lastTrouble) return;
    this.#lastTrouble = reason;
    this.#parts.onLifecycle?.("deployment not found", { reason });
  }

  #ask(signal: AbortSignal): Ask {
    return async (path, body) => {
      const over = AbortSignal.any([signal, AbortSignal.timeout(askMs)]);
      try {
        const asked = request(`${this.#base.origin}${path}${this.#base.query}`, {
          dispatcher: this.#agent,
          method: body === undefined ? "GET" : "POST",
          headers: this.#headers(),
          body: body === undefined ? null : JSON.stringify(body),
          signal: over,
        });
        // Undici does not hear of the signal before it is connected.
        const answer = await orAborted(asked, over);
        return { status: answer.statusCode, json: parsedOrNull(await answer.body.text()) };
      } catch (error) {
        throw new Failure("overloaded", "The deployment cannot be reached.", {
          retryAfterSeconds: 5,
          cause: error,
        });
      }
    };
  }
}

async function orAborted<Value>(promise: Promise<Value>, signal: AbortSignal): Promise<Value> {
  const aborted = Promise.withResolvers<never>();
  const onAbort = (): void => aborted.reject(signal.reason);
  signal.addEventListener("abort", onAbort, { once: true });
  if (signal.aborted) onAbort();
  try {
    return await Promise.race([promise, aborted.promise]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

const askMs = 10_000;
const lookAgainMsMin = 250;
const lookAgainMsMax = 5_000;

function notReady(): Failure {
  return new Failure("overloaded", "The model is not ready yet. Try again in a moment.", {
    retryAfterSeconds: 5,
  });
}

function parsedOrNull(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
