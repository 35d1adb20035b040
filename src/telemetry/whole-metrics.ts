import { AggregatorRegistry, type MetricObjectWithValues, type MetricValue } from "prom-client";

/** The metrics of one process as values. */
export type MetricsSnapshot = MetricObjectWithValues<MetricValue<string>>[];

/** The metrics of a service of several processes. */
export interface WholeMetrics {
  /** Adds up what the processes say, and what those had counted that have ended. */
  text(living: readonly MetricsSnapshot[]): Promise<string>;
  /** Keeps what a process had counted when it was asked last: a sum that fell would look like a service that began anew. */
  keepEnded(last: MetricsSnapshot): Promise<void>;
}

/** Opens the metrics of a whole, of which no process has ended yet. */
export function openWholeMetrics(): WholeMetrics {
  let ended: MetricsSnapshot = [];
  return {
    text: (living) => aggregate([...living, ended]).metrics(),
    async keepEnded(last) {
      const counted = last.filter(({ type }) => isCumulative(String(type)));
      ended = await aggregate([ended, counted]).getMetricsAsJSON();
    },
  };
}

function isCumulative(type: string): boolean {
  return type === "counter" || type === "histogram";
}

function aggregate(snapshots: readonly MetricsSnapshot[]) {
  return AggregatorRegistry.aggregate(
    snapshots.map((snapshot) => snapshot.map((metric) => ({ ...metric, ...kept(metric) }))),
  );
}

/** What the library would leave out, such as when a process was started, is that of the first process. */
function kept({ aggregator }: { readonly aggregator?: string }): object {
  return aggregator === "omit" ? { aggregator: "first" } : {};
}
