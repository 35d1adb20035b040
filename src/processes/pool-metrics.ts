import { limits } from "../limits.ts";
import type { ServiceTelemetry } from "../telemetry/telemetry.ts";
import { type MetricsSnapshot, openWholeMetrics } from "../telemetry/whole-metrics.ts";
import type { Timers } from "../timers.ts";
import type { Serving } from "./serving-pool.ts";

/** The metrics of all processes together. */
export interface PoolMetrics {
  text(): Promise<string>;
  /** A process has ended: what it had counted stays. */
  forget(process: number): void;
}

/** Asks every process each time; one that does not answer in time counts as it did the time before. */
export function openPoolMetrics(
  telemetry: Pick<ServiceTelemetry, "metricsSnapshot">,
  serving: () => readonly Serving[],
  timers: Timers,
): PoolMetrics {
  const whole = openWholeMetrics();
  const last = new Map<Serving, MetricsSnapshot>();

  async function ask(one: Serving): Promise<MetricsSnapshot> {
    const answer = await within(one.channel.ask("metrics", null), timers);
    // One that has ended meanwhile is counted among those by now.
    if (!serving().includes(one)) return [];
    const snapshot = answer ?? last.get(one) ?? [];
    last.set(one, snapshot);
    return snapshot;
  }

  return {
    async text() {
      // This process is the first, so that the service began when it did.
      const own = await telemetry.metricsSnapshot();
      return whole.text([own, ...(await Promise.all(serving().map(ask)))]);
    },
    forget(process) {
      for (const [one, snapshot] of last) {
        if (one.process !== process) continue;
        last.delete(one);
        void whole.keepEnded(snapshot);
      }
    },
  };
}

/** null: there is no answer in time, or none at all. */
function within<Value>(answer: Promise<Value>, timers: Timers): Promise<Value | null> {
  const { promise, resolve } = Promise.withResolvers<Value | null>();
  const timer = timers.set(() => resolve(null), limits.processMetricsMs);
  answer.then(resolve, () => resolve(null)).finally(() => timers.clear(timer));
  return promise;
}
