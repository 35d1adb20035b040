import { Worker } from "node:worker_threads";
import { limits } from "../../limits.ts";
import { entryUrl } from "../../worker-url.ts";
import type { StoreSettings } from "./store.ts";
import type { OpenStoreLine } from "./worker-client.ts";

/** The ledger's own thread in this process. */
export function openThreadLine(settings: StoreSettings): OpenStoreLine {
  return (listener) => {
    const worker = new Worker(entryUrl("worker", import.meta.url), {
      workerData: settings,
      name: "ledger",
      resourceLimits: { maxYoungGenerationSizeMb: limits.threadYoungMebibytes },
    });
    let cause: unknown = null;
    worker.on("message", listener.message);
    worker.on("error", (error) => {
      cause = error;
    });
    worker.on("exit", () => listener.ended(cause));
    return { send: (message) => worker.postMessage(message, []) };
  };
}
