/**
 * The child's entry. It runs in a process of its own, so that a crash, a hang or a full memory of the model never takes
 * the service with it, and leaves as soon as its channel closes: a killed parent leaves no child.
 */
import { readdirSync } from "node:fs";
import { constants, setPriority } from "node:os";
import type { EngineNews, EngineOrder, EngineReport, LoadOrder } from "./engine-messages.ts";
import type { Engine } from "./engine-scheduler.ts";

let engine: Engine | null = null;
let pending: EngineNews[] = [];

function report(message: EngineReport): void {
  if (process.connected) process.send?.(message);
}

/** Everything of one turn of the event loop travels in one message. */
function collectNews(news: EngineNews): void {
  if (pending.length === 0) setImmediate(flushNews);
  pending.push(news);
}

function flushNews(): void {
  const news = pending;
  pending = [];
  report({ type: "news", news });
}

async function load(order: LoadOrder): Promise<void> {
  try {
    const { openEngine } = await importEngine();
    engine = await openEngine(order, {
      news: collectNews,
      warn: (message) => report({ type: "warning", message }),
    });
    report({ type: "loaded", facts: engine.facts });
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    report({ type: "load-failed", message });
  }
}

/** Imported late, so that a missing library is told in words and not as a child that died. */
async function importEngine() {
  try {
    return await import("./engine.ts");
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new Error(
      `the library of the embedded engine cannot be loaded (${reason}). Install it with "npm install node-llama-cpp", ` +
        "or set TRIBUTARY_DEPLOYMENT_URL to an OpenAI-compatible deployment.",
      { cause },
    );
  }
}

function obey(order: EngineOrder): void {
  switch (order.type) {
    case "load":
      void load(order);
      return;
    case "generate":
      engine?.generate(order.id, order.prompt, order.outputTokensMax);
      return;
    case "pause":
    case "resume":
    case "cancel":
      engine?.[order.type](order.id);
      return;
    case "count":
      if (engine !== null) report({ type: "counts", counts: engine.count() });
      return;
    default:
      order satisfies never;
  }
}

try {
  // Linux keeps a priority for each thread, and some were made before the service could lower that of the first.
  const threads = process.platform === "linux" ? readdirSync("/proc/self/task").map(Number) : [0];
  for (const thread of threads) setPriority(thread, constants.priority.PRIORITY_BELOW_NORMAL);
} catch {
  // A system that forbids it still serves, only less politely.
}
process.on("message", (message) => obey(message as EngineOrder));
// An evaluation may still run in a thread: waiting for it would keep the child alive, so that it leaves the hard way.
process.on("disconnect", () => process.kill(process.pid, "SIGKILL"));
// Ctrl-C in a terminal reaches the whole group: the service decides when this process ends, by closing the channel.
process.on("SIGINT", () => undefined);
