import { parentPort, workerData } from "node:worker_threads";
import type { Config } from "../config/config.ts";
import { yieldToStreams } from "../yield-to-streams.ts";
import { openLedger } from "./open-ledger.ts";

// The thread in which an operator's verification adds up the ledger, over a ledger of its own.

// The thread that it opens the ledger in has its priority.
yieldToStreams();
// `verifyInThread` gave it.
const config = workerData as Config;
await using ledger = await openLedger(config, { creates: false });
parentPort?.postMessage(await ledger.verify([]));
