import { type MessagePort, parentPort } from "node:worker_threads";
import { serveStore } from "../../src/ledger/sqlite/store-thread.ts";
import type { StoreSettings } from "../../src/ledger/sqlite/store.ts";

// A thread that owns one ledger's file after another; src/ledger/sqlite/worker.ts is the one that owns one.

/** The next ledger, and the port of those who call it. */
export interface NextLedger {
  readonly settings: StoreSettings;
  readonly port: MessagePort;
}

parentPort?.on("message", ({ port, settings }: NextLedger) => {
  port.once("close", () => parentPort?.postMessage("free"));
  serveStore(port, settings);
  // A file that cannot be used is not waited for.
  if (port.listenerCount("message") === 0) port.close();
});
