import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { entryUrl } from "../../worker-url.ts";
import type { FetchOrder, FetchReport } from "./fetch-messages.ts";

/** What was fetched. */
export type Fetched = FetchReport & { readonly type: "fetched" };

/** What a download needs from outside. */
export interface FetchParts {
  readonly onProgress: (progress: { readonly bytes: number; readonly totalBytes: number }) => void;
  readonly signal: AbortSignal;
  /** Silence after which it is given up. */
  readonly silenceMs: number;
}

const progressEveryMs = 100;

/** Has a child fetch it. Ending early leaves what came for the next try. Throws an Error with the reason. */
export async function fetchInChild(order: FetchOrder, parts: FetchParts): Promise<Fetched> {
  parts.signal.throwIfAborted();
  const child = fork(fileURLToPath(entryUrl("fetch-process", import.meta.url)), [], {
    // Ctrl-C reaches every process of the terminal; the service decides when this one ends.
    detached: true,
    execArgv: [],
    serialization: "advanced",
    stdio: ["ignore", "ignore", "ignore", "ipc"],
    windowsHide: true,
  });
  const result = Promise.withResolvers<Fetched>();
  const giveUp = (): void => {
    const seconds = String(parts.silenceMs / 1_000);
    result.reject(new Error(`nothing came for ${seconds} seconds`));
  };
  let timer = setTimeout(giveUp, parts.silenceMs);
  const abort = (): void => result.reject(parts.signal.reason as Error);
  parts.signal.addEventListener("abort", abort, { once: true });
  const reported = throttle(parts.onProgress);
  let bytesBefore = -1;
  child.on("message", (message) => {
    const report = message as FetchReport;
    if (report.type === "fetched") result.resolve(report);
    else if (report.type === "failed") result.reject(new Error(report.reason));
    else {
      if (report.bytes !== bytesBefore) {
        clearTimeout(timer);
        timer = setTimeout(giveUp, parts.silenceMs);
      }
      bytesBefore = report.bytes;
      reported(report);
    }
  });
  child.on("error", (error) => result.reject(error));
  const left = new Promise<void>((resolve) => {
    child.on("exit", (code, signal) => {
      result.reject(new Error(`its process ended (${signal ?? String(code)})`));
      resolve();
    });
  });
  child.send(order);
  try {
    return await result.promise;
  } finally {
    clearTimeout(timer);
    parts.signal.removeEventListener("abort", abort);
    child.kill("SIGKILL");
    if (child.pid !== undefined) await left;
  }
}

type Progress = Parameters<FetchParts["onProgress"]>[0];

/** The downloader tells every read; nobody looks that often. */
function throttle(tell: (progress: Progress) => void): (progress: Progress) => void {
  let lastAtMs = -Infinity;
  return (progress) => {
    const nowMs = performance.now();
    if (nowMs - lastAtMs < progressEveryMs && progress.bytes !== progress.totalBytes) return;
    lastAtMs = nowMs;
    tell({ bytes: progress.bytes, totalBytes: progress.totalBytes });
  };
}
