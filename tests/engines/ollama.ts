import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Engine, type EngineStart, openEngineProcess } from "./engine.ts";
import { installOnce, runCommand } from "./install/install-folder.ts";
import { installOllama, ollamaModule } from "./install/ollama.ts";
import { installWeights, templatesFolder } from "./install/weights.ts";
import type { Cannot } from "./laws.ts";

/** What Ollama's `/v1` has no way for. */
export const ollamaCannot: Cannot = {
  exactCounts: "Ollama has no route that counts tokens",
  forcedCalls: "Ollama does not read tool_choice",
  forcedCallsByName: "Ollama does not read tool_choice",
};

const templates = {
  calls: join(templatesFolder, "calls.gotmpl"),
  several: null,
  thinks: join(templatesFolder, "thinks.gotmpl"),
};

type Model = Pick<EngineStart, "alias" | "template">;

const models = [
  { alias: "smol", template: templates.calls },
  { alias: "other", template: templates.calls },
  { alias: "smol", template: templates.thinks },
];

/** Ollama, built once for the processor, with the weights of the embedded default. */
export async function openOllama(): Promise<Engine> {
  const program = await installOllama();
  // Each model in a folder of its own, so that a server lists one.
  const folders = new Map<string, string>();
  for (const model of models) folders.set(keyOf(model), await installModel(program, model));
  return engineOn(program, (start) => {
    const folder = folders.get(keyOf(start));
    if (folder === undefined) throw new Error(`no model for ${keyOf(start)}`);
    return folder;
  });
}

function keyOf({ alias, template }: Model): string {
  return `${alias} ${String(template)}`;
}

function engineOn(program: string, folderOf: (model: Model) => string): Engine {
  return {
    name: "ollama",
    version: ollamaModule.version,
    templates,
    namesStopSequence: false,
    loadMs: 120_000,
    healthPath: "/",
    idOf: (alias) => `${alias}:latest`,
    command: () => [program, "serve"],
    environment: ({ port }, start) => ({
      OLLAMA_HOST: `127.0.0.1:${String(port)}`,
      OLLAMA_MODELS: join(folderOf(start), "models"),
      OLLAMA_CONTEXT_LENGTH: String(start.contextTokens),
      OLLAMA_NUM_PARALLEL: "2",
      OLLAMA_DEBUG: "1",
      // It writes a pair of keys into the user's folder.
      HOME: folderOf(start),
    }),
    // No route tells it; with OLLAMA_DEBUG a line is written when a request reaches the model, and one when it has left.
    async countRunning(_origin, log) {
      const countOf = (text: RegExp): number => log.match(text)?.length ?? 0;
      // Loading is a request that leaves without having reached the model.
      const begun = countOf(/msg="completion request"/gu) + countOf(/POST\s+"\/api\/generate"/gu);
      return begun - countOf(/msg="context for request finished"/gu);
    },
    // It loads at the first request, and tells the context only of what is loaded.
    async load(origin, alias) {
      const body = JSON.stringify({ model: alias });
      await (await fetch(`${origin}/api/generate`, { method: "POST", body })).text();
    },
  };
}

/** Puts the weights into a folder in the form that Ollama keeps, under a name and with a template for good. */
async function installModel(program: string, model: (typeof models)[number]): Promise<string> {
  const template = readFileSync(model.template, "utf8");
  // Its threads wait for each other by spinning: on a busy machine two are slower than one by far.
  const settings = "PARAMETER num_thread 1";
  const modelfile = `FROM ${installWeights()}\n${settings}\nTEMPLATE """${template}"""\n`;
  const how = [ollamaModule.version, modelfile];
  return installOnce(`ollama-model-${model.alias}`, how, async (folder) => {
    writeFileSync(join(folder, "Modelfile"), modelfile);
    await using server = await openEngineProcess(
      engineOn(program, () => folder),
      model,
    );
    await server.start();
    const environment = { OLLAMA_HOST: server.origin, HOME: folder };
    await runCommand([program, "create", model.alias, "-f", "Modelfile"], folder, environment);
  });
}
