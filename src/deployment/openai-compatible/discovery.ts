import { Failure } from "../../failure.ts";
import type { BaseAddress } from "./base-address.ts";
import type { DialectName, TakenEffort } from "./dialect.ts";

/** What a deployment says of itself. */
export interface Discovery {
  readonly dialect: DialectName;
  /** The deployment's own name of its model. */
  readonly model: string;
  readonly contextTokens: number | null;
  /** False where the engine reports the context of loaded models only, and this one is not loaded: it may be less. */
  readonly contextIsSure: boolean;
  readonly takesTools: boolean;
  /** Whether a reasoning effort may be sent; engines that would refuse it say that their model does not think. */
  readonly takesEffort: TakenEffort;
  /** The folder of `/models` and `/chat/completions`, such as `/v1`. */
  readonly path: string;
}

/** What the operator has set; null: to be asked. */
export interface DiscoverySettings {
  readonly model: string | null;
  readonly contextTokens: number | null;
  readonly dialect: DialectName | "auto";
}

/** Asks one path of the deployment; `json` is null when the answer is none. Rejects when there is no answer. */
export type Ask = (
  path: string,
  body?: unknown,
) => Promise<{ readonly status: number; readonly json: unknown }>;

/** Asks a deployment which engine it is, which model it has and how much context. Rejects with a Failure. */
export async function discover(
  ask: Ask,
  base: BaseAddress,
  settings: DiscoverySettings,
): Promise<Discovery> {
  const listed = await listModels(ask, base);
  const entries = listed === null ? [] : members(listed.json)["data"];
  const models = Array.isArray(entries) ? entries.map((entry) => members(entry)) : [];
  const entry = models.find((model) => model["id"] === settings.model) ?? models[0] ?? {};
  const model = settings.model ?? text(entry["id"]);
  if (model === null)
    throw new Failure(
      "overloaded",
      "The deployment lists no model. Load one there, or name one in the settings.",
      { retryAfterSeconds: 5 },
    );
  const dialect =
    settings.dialect === "auto" ? await detectDialect(ask, base, entry) : settings.dialect;
  const facts = await engineFacts(ask, base, { dialect, model, entry });
  return {
    dialect,
    model,
    contextTokens: settings.contextTokens ?? facts.contextTokens,
    contextIsSure: settings.contextTokens !== null || facts.contextIsSure,
    takesTools: facts.takesTools,
    takesEffort: facts.takesEffort,
    path: listed?.path ?? base.candidates[0] ?? "/v1",
  };
}

/** null: the deployment lists no models anywhere, as some proxies do not. */
async function listModels(
  ask: Ask,
  base: BaseAddress,
): Promise<{ readonly path: string; readonly json: unknown } | null> {
  for (const path of base.candidates) {
    const { status, json } = await ask(`${path}/models`);
    if (status === 200 && Array.isArray(members(json)["data"])) return { path, json };
    refuseStatus(status);
  }
  return null;
}

/** Throws for an answer that shows that generations would fail too. */
export function refuseStatus(status: number): void {
  if (status === 401 || status === 403)
    throw new Failure(
      "deployment_failed",
      `The deployment refuses the key that it is given (status ${String(status)}). Check its key in the settings.`,
    );
  if (status === 429 || status >= 500)
    throw new Failure("overloaded", `The deployment is not ready (status ${String(status)}).`, {
      retryAfterSeconds: 5,
    });
}

const owners: Readonly<Record<string, DialectName>> = {
  vllm: "vllm",
  sglang: "sglang",
  llamacpp: "llama-cpp",
  "tributary-engine": "embedded",
};

/** By `owned_by` in the list of models, or, as some operators can set that name, by a route that one engine alone has. */
async function detectDialect(
  ask: Ask,
  base: BaseAddress,
  entry: Readonly<Record<string, unknown>>,
): Promise<DialectName> {
  const owner = text(entry["owned_by"]) ?? "";
  if (Object.hasOwn(owners, owner)) return owners[owner] ?? "generic";
  const props = await engineRoute(ask, `${base.enginePath}/props`);
  if ("default_generation_settings" in props) return "llama-cpp";
  const server = await engineRoute(ask, `${base.enginePath}/get_model_info`);
  if ("model_path" in server) return "sglang";
  if (typeof (await engineRoute(ask, `${base.enginePath}/api/version`))["version"] === "string")
    return "ollama";
  const version = await engineRoute(ask, `${base.enginePath}/version`);
  return typeof version["version"] === "string" && "max_model_len" in entry ? "vllm" : "generic";
}

interface EngineFacts {
  readonly contextTokens: number | null;
  readonly contextIsSure: boolean;
  readonly takesTools: boolean;
  readonly takesEffort: TakenEffort;
}

async function engineFacts(
  ask: Ask,
  base: BaseAddress,
  found: {
    readonly dialect: DialectName;
    readonly model: string;
    readonly entry: Readonly<Record<string, unknown>>;
  },
): Promise<EngineFacts> {
  const { entry } = found;
  const listed = tokens(entry["max_model_len"], entry["context_length"], entry["context_window"]);
  if (found.dialect === "llama-cpp" || found.dialect === "embedded") {
    const props = await engineRoute(ask, `${base.enginePath}/props`);
    const meta = members(entry["meta"]);
    return {
      contextTokens: tokens(
        members(props["default_generation_settings"])["n_ctx"],
        meta["n_ctx"],
        meta["n_ctx_train"],
      ),
      contextIsSure: true,
      // A template without a place for tools drops them, and `required` is answered in prose.
      takesTools: members(props["chat_template_caps"])["supports_tools"] !== false,
      takesEffort: true,
    };
  }
  if (found.dialect !== "ollama")
    return { contextTokens: listed, contextIsSure: true, takesTools: true, takesEffort: true };
  return ollamaFacts(ask, base, found.model);
}

/** The context of a model that is loaded comes before the one it was trained with: Ollama cuts it to its memory. */
async function ollamaFacts(ask: Ask, base: BaseAddress, model: string): Promise<EngineFacts> {
  const running = (await engineRoute(ask, `${base.enginePath}/api/ps`))["models"];
  const loaded = (Array.isArray(running) ? running : [])
    .map((each) => members(each))
    .find((each) => each["name"] === model || each["model"] === model);
  const shown = await engineRoute(ask, `${base.enginePath}/api/show`, { model });
  const configured = /^num_ctx\s+(\d+)/mu.exec(text(shown["parameters"]) ?? "")?.[1];
  const [, trained] =
    Object.entries(members(shown["model_info"])).find(([key]) => key.endsWith(".context_length")) ??
    [];
  const { capabilities } = shown;
  const can = (what: string): boolean =>
    !Array.isArray(capabilities) || capabilities.includes(what);
  return {
    contextTokens: tokens(
      loaded?.["context_length"],
      configured === undefined ? null : Number(configured),
      trained,
    ),
    contextIsSure: loaded !== undefined,
    takesTools: can("tools"),
    takesEffort: can("thinking") && (takesEffortWords(shown) || "none"),
  };
}

/** Other models than these think or do not: Ollama 0.17 answers 400 `think value "low" is not supported for this model`. */
function takesEffortWords(shown: Readonly<Record<string, unknown>>): boolean {
  if (!Array.isArray(shown["capabilities"])) return true;
  const family = text(members(shown["details"])["family"]);
  return family === "gptoss" || family === "gpt-oss";
}

/** The answer of one of an engine's own routes; {} where it has none: what these routes say is useful, not needed. */
async function engineRoute(
  ask: Ask,
  path: string,
  body?: unknown,
): Promise<Readonly<Record<string, unknown>>> {
  try {
    const { status, json } = await ask(path, body);
    return status === 200 ? members(json) : {};
  } catch {
    return {};
  }
}

function tokens(...candidates: readonly unknown[]): number | null {
  for (const candidate of candidates)
    if (typeof candidate === "number" && Number.isInteger(candidate) && candidate > 0)
      return candidate;
  return null;
}

function members(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : {};
}

function text(value: unknown): string | null {
  return typeof value === "string" && value !== "" ? value : null;
}
