import { listModels, type ModelListing, pullModel } from "../deployment/embedded/weights.ts";
import { type Command, CommandError, type CommandGroup, type Shell } from "./command.ts";
import { openProgress } from "./progress.ts";
import { ensureConfig } from "./settings.ts";
import { formatTable } from "./text-table.ts";

const help = `Models of the embedded engine and their weights on this machine.

  tributary model list          the catalog, and what is here
  tributary model pull [NAME]   download weights, by default those of the default model; goes on where it was interrupted
                                and checks the hash

  --json   print a list of {"name","title","default","downloaded","path","bytes","context","license","note"}
`;

const list: Command = {
  help,
  operands: [],
  options: {},
  run: async (_line, shell) => {
    const models = await listModels(ensureConfig(shell).dataDir);
    return { json: models.map(toJson), text: formatTable([heads, ...models.map(cells)]) };
  },
};

const pull: Command = {
  help,
  operands: ["[NAME]"],
  options: {},
  run: async (line, shell) => {
    const { dataDir, environment } = ensureConfig(shell);
    const progress = openProgress(shell.stderr, () => performance.now());
    const stop = stopWithSignal(shell);
    try {
      const path = await pullModel(line.positionals[0] ?? null, {
        dataDir,
        environment,
        onProgress: (now) => progress.report(now),
        signal: stop.signal,
      });
      progress.pause();
      const models = await listModels(dataDir);
      return {
        json: models.filter((model) => model.path === path).map(toJson),
        text: `The weights are here: ${path}\n`,
      };
    } catch (error) {
      progress.pause();
      if (!stop.signal.aborted) throw error;
      throw new CommandError("interrupted", 1, "Interrupted. The same command goes on from here.");
    } finally {
      stop.forget();
    }
  },
};

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
    String(model.contextTokens),
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
    note: model.goodFor,
  };
}
