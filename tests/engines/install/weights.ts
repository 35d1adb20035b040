import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { installOnce, runCommand } from "./install-folder.ts";

const root = join(import.meta.dirname, "../../..");

/** The folder of chat templates that let a small model call tools and think. */
export const templatesFolder = join(import.meta.dirname, "../templates");

/** Downloads the weights of the embedded engine's default where they are not there yet; gives the path of the file. */
export function installWeights(): string {
  const pull = ["src/cli/tributary.cjs", "model", "pull", "smollm2-135m-instruct", "--json"];
  const told = execFileSync(process.execPath, pull, { cwd: root, encoding: "utf8" });
  const [model] = JSON.parse(told) as readonly { readonly path: string }[];
  if (model === undefined) throw new Error(`no weights: ${told}`);
  return model.path;
}

/** The same weights as a folder that vLLM reads, with a template that shows tools. `python`: one that has transformers. */
export async function convertWeights(gguf: string, python: string): Promise<string> {
  const script = join(import.meta.dirname, "convert-weights.py");
  const template = join(templatesFolder, "hermes.jinja");
  const how = [script, template].map((file) => readFileSync(file, "utf8"));
  return installOnce("smollm2-135m-for-vllm", how, (into) =>
    runCommand([python, script, gguf, into, template], into),
  );
}
