import { type Config, licenseNames } from "../config/config.ts";
import type { EngineEvent } from "../deployment/embedded/engine-process.ts";
import { runEngine } from "../deployment/embedded/run-engine.ts";
import { type Command, CommandError, type CommandGroup, type Shell } from "./command.ts";
import { openProgress } from "./progress.ts";
import { ensureConfig } from "./settings.ts";
import { formatTable } from "./text-table.ts";

const help = `Models of the embedded engine and their weights on this machine.

  tributary model list          the catalog, what was fetched from addresses, and what is here
  tributary model pull [NAME]   download weights; goes on where it was interrupted. What is here is read again from its
                                first byte to its last, and replaced when it is damaged

  NAME               a name of the list, hf:OWNER/REPOSITORY/FILE.gguf or an https:// address, either with #sha256=HASH at
                     its end where you know the hash; without it what TRIBUTARY_MODEL names
  --accept-license   you read the terms of this model's license and accept them
  --json             print a list of {"name","title","default","downloaded","path","bytes","context","license","terms",
                     "note"}
`;

const list: Command = {
  help,
  operands: [],
  options: {},
  run: async (_line, shell) => {
    const models = await listModels(ensureConfig(shell), shell);
    return { json: models.map(toJson), text: formatTable([heads, ...models.map(cells)]) };
  },
};

const pull: Command = {
  help,
  operands: ["[NAME]"],
  options: { "accept-license": { type: "boolean" } },
  run: async (line, shell) => {
    const config = ensureConfig(shell);
    const path = await fetchModel(line.positionals[0] ?? config.model, shell, {
      config,
      accepts: line.flags.has("accept-license"),
    });
    const models = await listModels(config, shell);
    return {
      json: models.filter((listed) => listed.path === path).map(toJson),
      text: `The weights are here: ${path}\n`,
    };
  },
};

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

async function listModels(config: Config, shell: Shell): Promise<readonly ModelListing[]> {
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
  const told: EngineEvent[] = [];
  try {
    const { output } = await runEngine({
      command: "pull",
      settings: {
        ...config,
        model,
        acceptedLicenses: accepts ? licenseNames : config.acceptedLicenses,
      },
      onEvent: (event) => {
        if (event.event === "license") showLicense(event, shell);
        else if (event.event === "weights progress")
          progress.report({
            bytes: Number(event["bytes"]),
            totalBytes: Number(event["totalBytes"]),
          });
        else told.push(event);
      },
      signal: stop.signal,
    });
    if (stop.signal.aborted)
      throw new CommandError("interrupted", 1, "Interrupted. The same command goes on from here.");
    return pathOf(told.at(-1), { output, shell });
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

/** `model ...` */
export const modelCommands: CommandGroup = { help, actions: { list, pull } };

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
