import { type Aggregator, Gauge, type Registry } from "prom-client";

interface GaugeNaming {
  readonly name: string;
  readonly help: string;
  /** What several processes as one service say of it; absent: the sum. */
  readonly together?: "min" | "max";
}

/** What is read when the metrics are. */
const gauges = {
  runningGenerations: {
    name: "tributary_running_generations",
    help: "Generations under way.",
  },
  generationPlaces: {
    name: "tributary_generation_places",
    help: "Generations that may be under way at once.",
  },
  generationPlacesTaken: {
    name: "tributary_generation_places_taken",
    help: "Generations under way, and those whose answers are still being read.",
  },
  bodyTasksWaiting: {
    name: "tributary_body_tasks_waiting",
    help: "Large bodies and counts of tokens that wait for a thread.",
  },
  bodyThreadsBusy: {
    name: "tributary_body_threads_busy",
    help: "Threads that parse a large body or count tokens.",
  },
  ledgerCallsWaiting: {
    name: "tributary_ledger_calls_waiting",
    help: "Calls of the ledger that wait for their answer.",
  },
  deploymentUp: {
    name: "tributary_deployment_up",
    help: "Whether the deployment answered when it was last asked: 1 or 0.",
    together: "min",
  },
  webhookDeliveriesPending: {
    name: "tributary_webhook_deliveries_pending",
    help: "Deliveries of active webhooks that wait for their first or their next try.",
    together: "max",
  },
  webhooksFailing: {
    name: "tributary_webhooks_failing",
    help: "Webhooks of which an event used up its tries.",
    together: "max",
  },
} as const satisfies Record<string, GaugeNaming>;

/** Where each is read; null: not known yet. */
export type GaugeReadings = Readonly<Partial<Record<keyof typeof gauges, () => number | null>>>;

/** The keys of all gauges. */
export const gaugeKeys = Object.keys(gauges) as readonly (keyof typeof gauges)[];

/** Adds gauges that are read from now on. */
export function watchGauges(registry: Registry, readings: GaugeReadings): void {
  for (const [key, read] of Object.entries(readings))
    addGauge(registry, gauges[key as keyof typeof gauges], read);
}

/** A gauge that is read when the metrics are. */
export function addGauge(
  registry: Registry,
  {
    help,
    name,
    together = "sum",
  }: Omit<GaugeNaming, "together"> & { readonly together?: Aggregator },
  read: () => number | null,
): void {
  void new Gauge({
    name,
    help,
    aggregator: together,
    registers: [registry],
    collect() {
      const value = read();
      if (value === null) this.remove();
      else this.set(value);
    },
  });
}
