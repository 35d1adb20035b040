import { spawnSync } from "node:child_process";
import { join } from "node:path";
import type { Engine } from "./engine.ts";
import { installLlamaCpp } from "./install/llama-cpp.ts";
import { installWeights, templatesFolder } from "./install/weights.ts";

/** llama.cpp's own server, built once, with the weights of the embedded default. */
export async function openLlamaCpp(): Promise<Engine> {
  const program = await installLlamaCpp();
  const weights = installWeights();
  const told = spawnSync(program, ["--version"], { encoding: "utf8" });
  return {
    name: "llama-cpp",
    version: /version: (\S+)/u.exec(told.stdout + told.stderr)?.[1] ?? "unknown",
    templates: {
      calls: join(templatesFolder, "calls.jinja"),
      several: join(templatesFolder, "several-calls.jinja"),
      thinks: join(templatesFolder, "thinks.jinja"),
    },
    namesStopSequence: false,
    loadMs: 60_000,
    healthPath: "/health",
    idOf: (alias) => alias,
    environment: () => ({}),
    command: ({ port }, { alias, contextTokens, template }) => [
      program,
      ...["-m", weights, "--port", String(port), "--alias", alias],
      // Its threads wait for each other by spinning: on a busy machine two are slower than one by far.
      ...["--threads", "1", "--threads-batch", "2"],
      ...["--jinja", "--metrics", "--slots", "-np", "2", "-c", String(2 * contextTokens)],
      ...(template === null ? [] : ["--chat-template-file", template]),
    ],
    async countRunning(origin) {
      const slots = (await (await fetch(`${origin}/slots`)).json()) as {
        readonly is_processing: boolean;
      }[];
      return slots.filter((slot) => slot.is_processing).length;
    },
  };
}
