import type { Server } from "node:net";
import { limits } from "../limits.ts";

/**
 * Connections of callers that leave descriptors for everything else: one a generation for its deployment, and a reserve
 * for the ledger, its files, logs and the operator. Without this bound the last callers would take those, and every request
 * would fail for want of a deployment.
 */
export function connectionsMax(descriptors: number, generationsMax: number): number {
  const usable = Math.max(descriptors - limits.descriptorsReserved, 2);
  // Where there are few, half of them are for deployments.
  return Math.floor(Math.max(usable - generationsMax, usable / 2));
}

/** Bounds the connections of a server; one beyond is closed at once, and `onFull` is called at most once a minute. */
export function boundConnections(
  server: Server,
  generationsMax: number,
  parts: { readonly monotonicMs: () => number; readonly onFull: (most: number) => void },
): void {
  const most = connectionsMax(openFilesMax(), generationsMax);
  server.maxConnections = most;
  let quietUntilMs = -Infinity;
  server.on("drop", () => {
    if (parts.monotonicMs() < quietUntilMs) return;
    quietUntilMs = parts.monotonicMs() + limits.connectionsFullQuietMs;
    parts.onFull(most);
  });
}

let known: number | null = null;

/** How many files and connections the system lets this process have open, all its life; infinite where it reports no number. */
function openFilesMax(): number {
  known ??= readOpenFilesMax();
  return known;
}

/** A report of Node stops every thread for a moment. */
function readOpenFilesMax(): number {
  const report = process.report.getReport() as {
    readonly userLimits?: { readonly open_files?: { readonly soft?: unknown } };
  };
  const soft = Number(report.userLimits?.open_files?.soft ?? Number.NaN);
  return Number.isNaN(soft) ? Infinity : soft;
}
