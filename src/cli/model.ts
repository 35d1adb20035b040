import type { ModelChoice } from "../deployment/embedded/model-setting.ts";
import {
  fetchModel,
  findModel,
  findUnacceptedTerms,
  listModels,
  type ModelListing,
} from "../deployment/embedded/models.ts";
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
    const models = await listModels(ensureConfig(shell));
    return { json: models.map(toJson), text: formatTable([heads, ...models.map(cells)]) };
  },
};

const pull: Command = {
  help,
  operands: ["[NAME]"],
  options: { "accept-license": { type: "boolean" } },
  run: async (line, shell) => {
    const config = ensureConfig(shell);
    const model = findModel(line.positionals[0] ?? config.model);
    const accepts = line.flags.has("accept-license");
    showLicense(model, shell);
    const terms = accepts ? null : findUnacceptedTerms(model, config.acceptedLicenses, config);
    if (terms !== null)
      throw new CommandError(
        "license_not_accepted",
        1,
        `Read ${terms.address}. When you accept these terms: ${shell.programName} model pull ${model.name} --accept-license`,
      );
    const path = await fetchWithProgress(model, shell);
    const models = await listModels(config);
    return {
      json: models.filter((listed) => listed.path === path).map(toJson),
      text: `The weights are here: ${path}\n`,
    };
  },
};

/** Before the first byte comes. */
function showLicense(model: ModelChoice, shell: Shell): void {
  if (model.type !== "catalog") return;
  const { license, terms, title } = model.entry;
  shell.stderr.write(
    `${title}. License: ${license}${terms === null ? "" : `, ${terms.address}`}\n`,
  );
}

async function fetchWithProgress(model: ModelChoice, shell: Shell): Promise<string> {
  const config = ensureConfig(shell);
  const progress = openProgress(shell.stderr, () => performance.now());
  const stop = stopWithSignal(shell);
  try {
    return await fetchModel(model, {
      folders: config,
      environment: config.environment,
      thorough: true,
      onProgress: (now) => progress.report(now),
      signal: stop.signal,
    });
  } catch (error) {
    if (!stop.signal.aborted) throw error;
    throw new CommandError("interrupted", 1, "Interrupted. The same command goes on from here.");
  } finally {
    progress.pause();
    stop.forget();
  }
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
    terms: model.terms?.address ?? null,
    note: model.goodFor,
  };
}
