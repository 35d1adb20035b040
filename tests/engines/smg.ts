import type { Engine } from "./engine.ts";
import { installSmg, smgPackage } from "./install/smg.ts";
import type { Cannot } from "./laws.ts";
import { openLlamaCpp } from "./llama-cpp.ts";

/** What is lost behind the router: it passes on neither the worker's routes nor its name. */
export const smgCannot: Cannot = {
  brokenArguments:
    "llama.cpp fails on arguments that are no JSON, and the router hides that it is llama.cpp",
  model: "the router calls every model unknown",
  context: "the router does not say the context",
  exactCounts: "the router has no route that counts tokens",
  forcedCallsByName:
    "llama.cpp reads a named choice as auto, and the router hides that it is llama.cpp",
};

/** SGLang's router before llama.cpp's server. */
export async function openSmg(): Promise<Engine> {
  const [program, llamaCpp] = await Promise.all([installSmg(), openLlamaCpp()]);
  return {
    ...llamaCpp,
    name: "smg",
    version: smgPackage.version,
    behind: llamaCpp,
    // Ready when its worker is; /health says that the router itself lives.
    healthPath: "/readiness",
    idOf: () => "unknown",
    command: ({ originBehind, port, sparePort }) => [
      program,
      ...["launch", "--host", "127.0.0.1", "--port", String(port), "--worker-urls", originBehind],
      ...["--prometheus-host", "127.0.0.1", "--prometheus-port", String(sparePort)],
      // Its own second tries would hide what a dead worker looks like; a minute is long for a test.
      ...["--disable-retries", "--health-check-interval-secs", "1"],
      ...["--cb-timeout-duration-secs", "1", "--worker-startup-check-interval", "1"],
    ],
  };
}
