import { z } from "@hono/zod-openapi";
import type { StoreLedger } from "../ledger/store-ledger.ts";
import { limits } from "../limits.ts";
import { deploymentSchema, deploymentToJson } from "./service-schemas.ts";
import type { WatchedService } from "./watched-service.ts";

const milliseconds = z.number().min(0).nullable();

/** What happens now, as the event `now` has it. */
export const liveNowSchema = z.object({
  running: z.int().openapi({ description: "requests under way on all replicas" }),
  replica: z.string().openapi({ description: "the one that was asked, which counts what follows" }),
  since: z.iso.datetime().openapi({ description: "when it began to count failures" }),
  output_tokens_per_second: z.number().min(0).nullable().openapi({
    description: "over the last 5 seconds; null: it has not been watched for long enough",
  }),
  first_output: z
    .object({ requests: z.int(), p50_ms: milliseconds, p95_ms: milliseconds })
    .openapi({
      description: "of up to 1,000 requests that ended in the last 5 minutes; null: of none",
    }),
  failures: z.array(z.object({ code: z.string(), count: z.int() })).openapi({
    description: "requests that it refused or failed, by code, the most frequent first",
  }),
  deployment: deploymentSchema,
  replicas: z.array(
    z.object({
      id: z.string(),
      running: z.int(),
      draining: z.boolean(),
      ready: z.boolean(),
      reasons: z.record(z.string(), z.string()),
    }),
  ),
});

/** What happens now. */
export type LiveNowJson = z.infer<typeof liveNowSchema>;

interface Count {
  readonly atMs: number;
  readonly outputTokens: number;
}

/** Looks at what happens now, again and again, and knows how fast it goes. */
export class LiveNow {
  readonly #service: WatchedService;
  readonly #now: () => number;
  #counts: readonly Count[] = [];
  #status: (Pick<LiveNowJson, "deployment" | "replicas"> & { readonly atMs: number }) | null = null;

  constructor(service: WatchedService, now: () => number) {
    this.#service = service;
    this.#now = now;
  }

  async look(ledger: StoreLedger, running: number): Promise<LiveNowJson> {
    const [figures, { deployment, replicas }] = await Promise.all([
      this.#service.figures(),
      this.#lookAtStatus(ledger),
    ]);
    const { failures, firstOutputsMs, outputTokens } = figures;
    const sorted = firstOutputsMs.toSorted((one, other) => one - other);
    return {
      running,
      replica: this.#service.id,
      since: new Date(this.#service.startedAtMs).toISOString(),
      output_tokens_per_second: this.#rate({ atMs: this.#now(), outputTokens }),
      first_output: {
        requests: sorted.length,
        p50_ms: percentile(sorted, 0.5),
        p95_ms: percentile(sorted, 0.95),
      },
      failures: Object.entries(failures)
        .map(([code, count]) => ({ code, count }))
        .toSorted((one, other) => other.count - one.count),
      deployment,
      replicas,
    };
  }

  /** Of the time since the oldest count that is not older than `limits.liveRateMs`. */
  #rate(count: Count): number | null {
    const kept = this.#counts.filter(({ atMs }) => count.atMs - atMs <= limits.liveRateMs);
    this.#counts = [...kept, count];
    const [oldest] = kept;
    if (oldest === undefined || oldest.atMs >= count.atMs) return null;
    // Of several processes one may have ended, and what it had counted with it.
    const tokens = Math.max(count.outputTokens - oldest.outputTokens, 0);
    return Math.round((tokens * 10_000) / (count.atMs - oldest.atMs)) / 10;
  }

  /** Seldom: the deployment is asked for its health, and the ledger for the other replicas. */
  async #lookAtStatus(ledger: StoreLedger): Promise<Pick<LiveNowJson, "deployment" | "replicas">> {
    const nowMs = this.#now();
    if (this.#status !== null && nowMs - this.#status.atMs < limits.liveStatusMs)
      return this.#status;
    const [own, others] = await Promise.all([this.#service.facts(), ledger.listReplicas()]);
    const { id } = this.#service;
    const replicas = [{ id, facts: own }, ...others.filter((other) => other.id !== id)].map(
      (replica) => ({
        id: replica.id,
        running: replica.facts.running,
        draining: replica.facts.draining,
        ready: Object.keys(replica.facts.reasons).length === 0,
        reasons: { ...replica.facts.reasons },
      }),
    );
    const deployment = deploymentToJson(this.#service.deployment(), own.reasons);
    this.#status = { atMs: nowMs, deployment, replicas };
    return this.#status;
  }
}

/** The least value that so much of all are not above. */
function percentile(sorted: readonly number[], share: number): number | null {
  return sorted[Math.max(Math.ceil(sorted.length * share) - 1, 0)] ?? null;
}
