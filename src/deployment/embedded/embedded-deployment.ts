import { randomBytes } from "node:crypto";
import { Failure } from "../../failure.ts";
import { limits } from "../../limits.ts";
import type { Deployment, Prompt } from "../deployment.ts";
import type { EngineEvent } from "./engine-process.ts";
import {
  engineEnvironment,
  engineArguments,
  hangMsOf,
  type EmbeddedSettings,
} from "./engine-settings.ts";
import { openEngineSupervisor, type EngineSupervisor } from "./engine-supervisor.ts";
import { watchHealth, type EngineCounts } from "./engine-health.ts";
import { ModelSettingError } from "./model-setting-error.ts";
import { openModelReadiness, type ModelReadiness } from "./model-readiness.ts";

/** What the embedded engine needs from outside. */
export interface EmbeddedParts {
  readonly now: () => number;
  readonly onProgress: (progress: { readonly bytes: number; readonly totalBytes: number }) => void;
  readonly onLifecycle: (
    event: string,
    fields: Readonly<Record<string, string | number | boolean | null>>,
  ) => void;
  /** How the engine is started and watched; absent: by this process, with a key of its own. */
  readonly shared?: SharedEngine;
  /** Opens the deployment that speaks to the engine, as to any that has an address. */
  readonly connect: (address: EngineAddress) => Deployment;
}

/** An engine that several processes ask. */
export interface SharedEngine {
  readonly apiKey: string;
  readonly supervise: typeof openEngineSupervisor;
  /** Another process starts it, and says in the log what happens to it. */
  readonly followed?: true;
}

/** Where an engine listens, and with which key. */
export interface EngineAddress {
  readonly url: string;
  readonly apiKey: string;
  readonly contextTokens: number | null;
}

/** The embedded engine, with what only tests and doctor ask. */
export interface EmbeddedDeployment extends Deployment {
  readonly processId: number | null;
  countTokens(prompt: Prompt, signal: AbortSignal): Promise<number | null>;
  /** What the engine did so far; rejects with a Failure when there is none that answers. */
  counts(signal: AbortSignal): Promise<EngineCounts>;
}

/**
 * Starts the engine's program and resolves as soon as it listens; the engine fetches and loads its weights after that.
 * Rejects with a ModelSettingError for an impossible model.
 */
export async function openEmbeddedDeployment(
  settings: EmbeddedSettings,
  parts: EmbeddedParts,
): Promise<EmbeddedDeployment> {
  const engine = new EmbeddedEngine(settings, parts);
  try {
    await engine.listening;
  } catch (error) {
    await engine[Symbol.asyncDispose]();
    throw error;
  }
  return engine;
}

/** A key that only this service knows. */
export function newEngineKey(): string {
  return randomBytes(24).toString("base64url");
}

class EmbeddedEngine implements EmbeddedDeployment {
  readonly #parts: EmbeddedParts;
  readonly #readiness: ModelReadiness;
  readonly #supervisor: EngineSupervisor;
  readonly #health: ReturnType<typeof watchHealth>;
  readonly #listening = Promise.withResolvers<void>();
  readonly #apiKey: string;
  /** The deployment of the process that listens, or listened last: a new process has a new port. */
  #connected: { readonly deployment: Deployment; readonly url: string } | null = null;
  #facts: EngineFacts;
  /** Deployments of earlier processes, which end with the last of their generations. */
  readonly #closing: Promise<void>[] = [];

  constructor(settings: EmbeddedSettings, parts: EmbeddedParts) {
    this.#parts = parts;
    this.#apiKey = parts.shared?.apiKey ?? newEngineKey();
    this.#facts = { model: settings.model ?? "", contextTokens: settings.contextTokens ?? null };
    this.#readiness = openModelReadiness(parts.now);
    const start = {
      args: engineArguments(settings),
      environment: engineEnvironment(settings, this.#apiKey),
    };
    const supervise = parts.shared?.supervise ?? openEngineSupervisor;
    this.#supervisor = supervise(start, {
      now: parts.now,
      event: (event) => this.#onEngineEvent(event),
      exited: (exit, loadFailure, restartMs) => {
        const message = `the engine's process ended before it listened (${exit.output})`;
        this.#listening.reject(new Error(message));
        this.#becomeUnready();
        if (loadFailure === null)
          return parts.onLifecycle("model process ended", { ...exit, restartMs });
        this.#readiness.set({ type: "failed" });
        const { model } = this.#facts;
        const retrySeconds = restartMs / 1_000;
        parts.onLifecycle("model not loaded", { model, reason: loadFailure, retrySeconds });
      },
    });
    this.#health = watchHealth(() => (this.#readiness.ready ? this.#connected?.url : undefined), {
      now: parts.now,
      hangMs: hangMsOf(settings),
      hung: () => this.#supervisor.kill(),
    });
  }

  get listening(): Promise<void> {
    return this.#listening.promise;
  }

  get processId(): number | null {
    return this.#supervisor.processId;
  }

  promptSettings(): ReturnType<Deployment["promptSettings"]> {
    return this.#inner().promptSettings();
  }

  prepare(...given: Parameters<Deployment["prepare"]>): ReturnType<Deployment["prepare"]> {
    return this.#inner().prepare(...given);
  }

  whenReady(signal: AbortSignal): Promise<void> {
    return this.#readiness.wait(limits.modelLoadWaitMs, signal);
  }

  start(...given: Parameters<Deployment["start"]>): ReturnType<Deployment["start"]> {
    return this.#inner().start(...given);
  }

  async countTokens(prompt: Prompt, signal: AbortSignal): Promise<number | null> {
    return (await this.#inner().countTokens?.(prompt, signal)) ?? null;
  }

  describe(): ReturnType<Deployment["describe"]> {
    const { contextTokens, model, takesTools = true } = this.#facts;
    return { ready: this.#readiness.ready, model, contextTokens, takesTools };
  }

  async check(signal: AbortSignal): Promise<void> {
    await this.counts(signal);
  }

  async counts(signal: AbortSignal): Promise<EngineCounts> {
    if (!this.#readiness.ready) throw this.#readiness.failure();
    try {
      return await this.#health.ask(signal);
    } catch (cause) {
      throw new Failure("deployment_timeout", "The model does not answer.", { cause });
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#listening.promise.catch(() => undefined);
    this.#readiness.set({ type: "stopped" });
    this.#health.close();
    // Generations that still run lose their connection with that, and fail.
    await this.#supervisor.close();
    await this.#connected?.deployment[Symbol.asyncDispose]();
    await Promise.all(this.#closing);
  }

  #inner(): Deployment {
    if (this.#connected === null) throw new Error("the engine has not listened yet");
    return this.#connected.deployment;
  }

  #becomeUnready(): void {
    if (this.#readiness.ready) this.#readiness.set({ type: "loading" });
  }

  #onEngineEvent({ event, ...fields }: EngineEvent): void {
    const { onLifecycle, onProgress } = this.#parts;
    switch (event) {
      case "settings refused":
        this.#listening.reject(new ModelSettingError(String(fields["reason"])));
        return;
      case "listening":
        this.#connect(fields);
        return;
      case "weights progress": {
        const progress = {
          bytes: Number(fields["bytes"]),
          totalBytes: Number(fields["totalBytes"]),
        };
        this.#readiness.set({ type: "fetching", ...progress });
        onProgress(progress);
        return;
      }
      case "weights downloading":
        onLifecycle("weights downloading", plain(fields));
        return;
      case "weights source failed":
        onLifecycle("weights source failed", plain(fields));
        return;
      case "weights missing":
        this.#readiness.set({ type: "failed" });
        onLifecycle("weights missing", plain(fields));
        return;
      case "weights fetched":
        this.#readiness.set({ type: "loading" });
        onLifecycle("weights fetched", plain(fields));
        return;
      case "model warning":
        onLifecycle("model warning", plain(fields));
        return;
      case "model loaded":
        // The name stays what the operator calls the model: files name themselves in odd ways.
        this.#facts = {
          ...this.#facts,
          contextTokens: Number(fields["contextTokens"]),
          takesTools: fields["takesTools"] === true,
        };
        this.#health.markWell();
        this.#readiness.set({ type: "ready" });
        onLifecycle("model loaded", plain(fields));
        return;
      default:
    }
  }

  #connect(fields: Readonly<Record<string, unknown>>): void {
    const url = `http://${String(fields["host"])}:${String(fields["port"])}`;
    const contextTokens =
      typeof fields["contextTokens"] === "number" ? fields["contextTokens"] : null;
    this.#facts = { ...this.#facts, model: String(fields["model"]), contextTokens };
    const before = this.#connected;
    this.#connected = {
      url,
      deployment: this.#parts.connect({ url, apiKey: this.#apiKey, contextTokens }),
    };
    if (before !== null)
      this.#closing.push(Promise.resolve(before.deployment[Symbol.asyncDispose]()));
    this.#listening.resolve();
  }
}

interface EngineFacts {
  readonly model: string;
  readonly contextTokens: number | null;
  readonly takesTools?: boolean;
}

/** The engine's fields as the log takes them. */
function plain(
  fields: Readonly<Record<string, unknown>>,
): Readonly<Record<string, string | number | boolean | null>> {
  return Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value === null || typeof value !== "object"),
  ) as Readonly<Record<string, string | number | boolean | null>>;
}
