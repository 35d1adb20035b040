import { MessageChannel, receiveMessageOnPort, Worker } from "node:worker_threads";
import type { StoreSettings } from "../../src/ledger/sqlite/store.ts";
import type { FromWorker } from "../../src/ledger/sqlite/thread-messages.ts";
import { openThreadLine as openOwnThreadLine } from "../../src/ledger/sqlite/thread-line.ts";
import type { OpenStoreLine } from "../../src/ledger/sqlite/worker-client.ts";
import { limits } from "../../src/limits.ts";
import { keptThreadUrl } from "./bundled-threads.ts";
import type { NextLedger } from "./kept-thread.ts";

// Stands for src/ledger/sqlite/thread-line.ts in tests: a service or a command whose ledger has closed leaves its thread to
// the next one. To start a thread takes ten times the processor's time of all else that opens a ledger.

const usualWorker = Worker;
const free: Worker[] = [];

/** A thread that another ledger has left, or a new one that this one leaves to others. */
export function openThreadLine(settings: StoreSettings): OpenStoreLine {
  const url = keptThreadUrl();
  // A thread of lower priority keeps that, and where a test watches threads they are its own.
  if (url === null || settings.yields === true || Worker !== usualWorker)
    return openOwnThreadLine(settings);
  return (listener) => {
    const thread = free.pop() ?? startThread(url);
    const { port1, port2 } = new MessageChannel();
    let cause: unknown = null;
    const onError = (error: unknown): void => void (cause = error);
    const onFree = (): void => {
      end();
      thread.unref();
      free.push(thread);
    };
    function end(): void {
      thread.off("error", onError).off("exit", end).off("message", onFree);
      // What was said before the end may be on its way by the other port.
      for (let last = receiveMessageOnPort(port1); last; last = receiveMessageOnPort(port1))
        listener.message(last.message as FromWorker);
      port1.close();
      listener.ended(cause);
    }
    thread.ref();
    thread.on("error", onError).on("exit", end).on("message", onFree);
    port1.on("message", listener.message);
    thread.postMessage({ settings, port: port2 } satisfies NextLedger, [port2]);
    return { send: (message) => port1.postMessage(message, []) };
  };
}

function startThread(url: URL): Worker {
  const { threadYoungMebibytes: maxYoungGenerationSizeMb } = limits;
  return new Worker(url, { name: "ledger", resourceLimits: { maxYoungGenerationSizeMb } });
}
