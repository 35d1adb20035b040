import { collectDefaultMetrics, Histogram, type Registry } from "prom-client";
import type { Timers } from "../timers.ts";
import { watchLateness } from "./lateness.ts";
import { addGauge } from "./gauges.ts";

/** Adds what the process measures of itself besides events; disposing it stops its timer. */
export function addLatenessMetrics(registry: Registry, timers: Timers): Disposable {
  const lateness = new Histogram({
    name: "tributary_event_loop_lateness_seconds",
    help: "How late timers ran, looked at every 20 ms.",
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers: [registry],
  });
  addGauge(
    registry,
    { name: "tributary_heap_used_bytes", help: "Memory that JavaScript values use." },
    () => process.memoryUsage().heapUsed,
  );
  return watchLateness((seconds) => lateness.observe(seconds), {
    monotonicMs: () => performance.now(),
    timers,
  });
}

/**
 * Adds `process_*` and `nodejs_*`, which dashboards for Node.js know. Once in a process: the library has no way to stop
 * the observers that it starts.
 */
export function addDefaultMetrics(registry: Registry): void {
  collectDefaultMetrics({ register: registry });
  // Gauges, whose names end as those of counters do: the sums of others that have a label.
  for (const kind of ["handles", "requests", "resources"])
    registry.removeSingleMetric(`nodejs_active_${kind}_total`);
}
