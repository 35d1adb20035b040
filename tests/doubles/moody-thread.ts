import { parentPort, threadId } from "node:worker_threads";

// A thread that answers, or ends in one of the ways in which threads do.
parentPort?.on("message", (asked: string) => {
  if (asked === "leave") process.exit(3);
  if (asked === "throw") throw new TypeError("a bug of the thread");
  if (asked !== "hang") parentPort?.postMessage(`${asked} by ${String(threadId)}`);
});
