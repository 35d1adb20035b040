import { createHash } from "node:crypto";
import { z } from "@hono/zod-openapi";
import type {
  ReplicaFacts,
  ReplicaRecord,
} from "../ledger/administration/replica-administration.ts";
import type { Receipt } from "../ledger/receipt.ts";
import { isoTime, receiptOfApi, receiptSchema, time } from "./schemas.ts";
import { webhookSchema } from "./webhook-schemas.ts";
import type { WatchedDeployment, WatchedRefusal, WatchedSetting } from "./watched-service.ts";

// What the API says of the service itself: what runs, replicas, settings, refusals.

const reasons = z
  .record(z.string(), z.string())
  .openapi({ description: "why it would not serve a request now; {} when it would" });

/** A request that runs. */
export const generationSchema = receiptSchema
  .extend({
    output_tokens_so_far: z
      .int()
      .nullable()
      .openapi({ description: "null: another replica than the one that was asked serves it" }),
    cancelling: z.boolean().openapi({
      description: "an operator cancelled it; it ends within a third of TRIBUTARY_LEASE_SECONDS",
    }),
  })
  .openapi("Generation");

/** The generation as `generationSchema` has it. */
export function generationToJson(
  receipt: Receipt,
  { cancelled, tokens }: { readonly cancelled: boolean; readonly tokens: number | null },
): z.infer<typeof generationSchema> {
  return { ...receiptOfApi(receipt), output_tokens_so_far: tokens, cancelling: cancelled };
}

/** A request that was refused or failed. */
export const refusalSchema = z
  .object({
    at: time,
    request: z.string(),
    status: z.int(),
    code: z.string().openapi({ description: "as docs/errors.md lists them" }),
    route: z.string(),
    key: z.string().nullable(),
  })
  .openapi("Refusal");

/** The refusal as `refusalSchema` has it. */
export function refusalToJson(refusal: WatchedRefusal): z.infer<typeof refusalSchema> {
  const { atMs, code, keyId, requestId, route, status } = refusal;
  return { at: isoTime(atMs), request: requestId, status, code, route, key: keyId };
}

/** A process, or several as one, that serves this ledger. */
export const replicaSchema = z
  .object({
    id: z.string(),
    version: z.string(),
    host: z.string(),
    process: z.int(),
    operators: z.string().nullable().openapi({ description: "where operators reach it" }),
    started_at: time,
    seen_at: time,
    running: z.int().openapi({ description: "requests that it runs" }),
    draining: z.boolean(),
    drain_asked_by: z.string().nullable(),
    ready: z.boolean(),
    reasons,
    settings: z
      .string()
      .openapi({ description: "a fingerprint of the settings that replicas have in common" }),
    differs: z.array(z.string()).openapi({
      description: "settings that are not those of the replica that was asked",
    }),
  })
  .openapi("Replica");

/** The replica as `replicaSchema` has it, beside the one that was asked. */
export function replicaToJson(
  replica: ReplicaRecord,
  asked: ReplicaFacts["settings"],
): z.infer<typeof replicaSchema> {
  const { facts, id } = replica;
  const names = new Set([...Object.keys(asked), ...Object.keys(facts.settings)]);
  return {
    id,
    version: facts.version,
    host: facts.host,
    process: facts.processId,
    operators: facts.operators,
    started_at: isoTime(replica.startedAtMs),
    seen_at: isoTime(replica.seenAtMs),
    running: facts.running,
    draining: facts.draining,
    drain_asked_by: replica.drainAskedBy,
    ready: Object.keys(facts.reasons).length === 0,
    reasons: { ...facts.reasons },
    settings: fingerprintOf(facts.settings),
    differs: [...names].filter((name) => asked[name] !== facts.settings[name]).toSorted(),
  };
}

/** How the service is. */
export const statusSchema = z
  .object({
    replica: z.string().openapi({ description: "the one that was asked" }),
    version: z.string(),
    replicas: z
      .array(replicaSchema)
      .openapi({ description: "those that were seen in the last minute, oldest first" }),
    failing_webhooks: z.array(webhookSchema).openapi({
      description: "those of which an event used up its tries, until one comes through",
    }),
  })
  .openapi("Status");

/** Where tokens come from. */
export const deploymentSchema = z
  .object({
    kind: z.enum(["embedded", "openai-compatible"]),
    url: z.string().nullable(),
    model: z.string(),
    context_tokens: z.int().nullable(),
    takes_tools: z.boolean(),
    ready: z.boolean(),
    reasons,
  })
  .openapi("Deployment");

/** The deployment as `deploymentSchema` has it. */
export function deploymentToJson(
  { contextTokens, kind, model, takesTools, url }: WatchedDeployment,
  reasonsOfReplica: ReplicaFacts["reasons"],
): z.infer<typeof deploymentSchema> {
  return {
    kind,
    url,
    model,
    context_tokens: contextTokens,
    takes_tools: takesTools,
    ready: Object.keys(reasonsOfReplica).length === 0,
    reasons: { ...reasonsOfReplica },
  };
}

/** A setting. */
export const settingSchema = z
  .object({
    name: z.string(),
    value: z
      .string()
      .nullable()
      .openapi({ description: "null: a secret, or not set and without a default" }),
    source: z.enum(["environment", ".env", "default"]),
    secret: z.boolean(),
    meaning: z.string(),
    allowed: z.string(),
  })
  .openapi("Setting");

/** The setting as `settingSchema` has it. */
export function settingToJson(setting: WatchedSetting): z.infer<typeof settingSchema> {
  return { ...setting };
}

function fingerprintOf(settings: ReplicaFacts["settings"]): string {
  const sorted = Object.entries(settings).toSorted(([one], [other]) => (one < other ? -1 : 1));
  return createHash("sha256").update(JSON.stringify(sorted)).digest("hex").slice(0, 16);
}
