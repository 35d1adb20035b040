import type { Config } from "../config/config.ts";
import { variables } from "../config/environment.ts";
import type { EngineEvent } from "../deployment/embedded/engine-process.ts";
import { runEngine } from "../deployment/embedded/run-engine.ts";
import { CommandError, type Outcome, type Shell } from "./command.ts";
import { openProgress } from "./progress.ts";
import { ensureConfig } from "./settings.ts";
import { formatTable } from "./text-table.ts";

/** `model list` */
export async function listModels(shell: Shell): Promise<Outcome> {
  const models = await readModels(ensureConfig(shell), shell);
  return { json: models.map(toJson), text: formatTable([heads, ...models.map(cells)]) };
}

/** `model pull` */
export async function pullModel(
  shell: Shell,
  name: string | null,
  options: { readonly acceptLicense: boolean },
): Promise<Outcome> {
  const config = ensureConfig(shell);
  const path = await fetchModel(name ?? config.model, shell, {
    config,
    accepts: options.acceptLicense,
  });
  const models = await readModels(config, shell);
  return {
    json: models.filter((listed) => listed.path === path).map(toJson),
    text: `The weights are here: ${path}\n`,
  };
}

/** One line of the list, as the engine tells it. */
interface ModelListing {
  readonly name: string;
  readonly title: string;
  readonly bytes: number;
  readonly license: string;
  /** Address of what must be accepted before the download; null: nothing. */
  readonly terms: string | null;
  readonly contextTokens: number | null;
  readonly goodFor: string;
  readonly isDefault: boolean;
  readonly path: string | null;
}

async function readModels(config: Config, shell: Shell): Promise<readonly ModelListing[]> {
  const models: ModelListing[] = [];
  const stop = stopWithSignal(shell);
  try {
    const { code, output } = await runEngine({
      command: "list",
      settings: { ...config, model: null },
      // The engine's own words, from the same version of this package.
      onEvent: ({ event, ...fields }) => {
        if (event === "model") models.push(fields as unknown as ModelListing);
      },
      signal: stop.signal,
    });
    if (code !== 0) throw new CommandError("engine_failed", 1, `The engine failed: ${output}`);
    return models;
  } finally {
    stop.forget();
  }
}

interface Fetching {
  readonly config: Config;
  readonly accepts: boolean;
}

async function fetchModel(
  model: string | null,
  shell: Shell,
  { accepts, config }: Fetching,
): Promise<string> {
  const progress = openProgress(shell.stderr, () => performance.now());
  const stop = stopWithSignal(shell);
  const events: EngineEvent[] = [];
  try {
    const { output } = await runEngine({
      command: "pull",
      settings: {
        ...config,
        model,
        acceptedLicenses: accepts
          ? variables.TRIBUTARY_ACCEPT_LICENSE.kind.values
          : config.acceptedLicenses,
      },
      onEvent: (event) => {
        if (event.event === "license") showLicense(event, shell);
        else if (event.event === "weights progress")
          progress.report({
            bytes: Number(event["bytes"]),
            totalBytes: Number(event["totalBytes"]),
          });
        else events.push(event);
      },
      signal: stop.signal,
    });
    if (stop.signal.aborted)
      throw new CommandError("interrupted", 1, "Interrupted. The same command goes on from here.");
    return pathOf(events.at(-1), { output, shell });
  } finally {
    progress.pause();
    stop.forget();
  }
}

/** Where the weights are, from the engine's last word; throws a CommandError for any other. */
function pathOf(
  last: EngineEvent | undefined,
  { output, shell }: { readonly output: string; readonly shell: Shell },
): string {
  if (last?.event === "weights here") return String(last["path"]);
  if (last?.event === "license not accepted") {
    const command = `${shell.programName} model pull ${String(last["model"])} --accept-license`;
    throw new CommandError(
      "license_not_accepted",
      1,
      `Read ${String(last["terms"])}. When you accept these terms: ${command}`,
    );
  }
  const reason = typeof last?.["reason"] === "string" ? last["reason"] : output;
  throw new CommandError("weights_missing", 1, reason);
}

/** Before the first byte comes. */
function showLicense(event: EngineEvent, shell: Shell): void {
  const { license, terms, title } = event;
  const where = typeof terms === "string" ? `, ${terms}` : "";
  shell.stderr.write(`${String(title)}. License: ${String(license)}${where}\n`);
}

function stopWithSignal(shell: Shell): {
  readonly signal: AbortSignal;
  readonly forget: () => void;
} {
  const control = new AbortController();
  return { signal: control.signal, forget: shell.onSignal(() => control.abort()) };
}

const heads = ["NAME", "MODEL", "HERE", "SIZE", "CONTEXT", "LICENSE", "GOOD FOR"];

function cells(model: ModelListing): readonly string[] {
  return [
    `${model.name}${model.isDefault ? " (default)" : ""}`,
    model.title,
    model.path === null ? "no" : "yes",
    `${(model.bytes / 1e6).toFixed(0)} MB`,
    model.contextTokens === null ? "" : String(model.contextTokens),
    model.license,
    model.goodFor,
  ];
}

function toJson(model: ModelListing): object {
  return {
    name: model.name,
    title: model.title,
    default: model.isDefault,
    downloaded: model.path !== null,
    path: model.path,
    bytes: model.bytes,
    context: model.contextTokens,
    license: model.license,
    terms: model.terms,
    note: model.goodFor,
  };
}
