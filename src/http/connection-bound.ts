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

/**
 * How many files and connections the system lets this process have open, all its life; infinite where it reports no number.
 * A report of Node stops every thread for a moment; with the network in it, also for as long as the resolver takes to name the
 * other end of each open connection. `excludeNetwork` is set back, for reports that an operator asks Node for.
 */
function openFilesMax(): number {
  const report: ReportSettings = process.report;
  const { excludeNetwork } = report;
  report.excludeNetwork = true;
  const { userLimits } = report.getReport();
  report.excludeNetwork = excludeNetwork;
  const soft = Number(userLimits?.open_files?.soft ?? Number.NaN);
  return Number.isNaN(soft) ? Infinity : soft;
}

/** What is used of `process.report`. */
interface ReportSettings {
  excludeNetwork?: boolean | undefined;
  getReport(): { readonly userLimits?: { readonly open_files?: { readonly soft?: unknown } } };
}
