import { syncBuiltinESMExports } from "node:module";
import workerThreads, { type WorkerOptions } from "node:worker_threads";

// Loaded into a service before its own modules: SIGUSR2 ends the thread that writes the ledger, as a crash of it would.

const { Worker } = workerThreads;
let writer: InstanceType<typeof Worker> | null = null;

workerThreads.Worker = class extends Worker {
  constructor(file: string | URL, options?: WorkerOptions) {
    super(file, options);
    if (options?.name === "ledger") keep(this);
  }
};

function keep(worker: typeof writer): void {
  writer = worker;
}

syncBuiltinESMExports();
process.on("SIGUSR2", () => void writer?.terminate());
