import { parentPort, workerData } from "node:worker_threads";
import type { StoreSettings } from "./store.ts";
import { serveStore } from "./store-thread.ts";

if (parentPort !== null) serveStore(parentPort, workerData as StoreSettings);
