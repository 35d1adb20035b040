import { z } from "@hono/zod-openapi";
import type { Patch } from "../ledger/administration/changed-by.ts";
import type { KeyPatch } from "../ledger/administration/key-administration.ts";
import { type Budget, budgetToJson } from "../ledger/budget.ts";
import { periodLengths } from "../ledger/periods.ts";
import { keyPrefix, type KeyRecord, keyScopes } from "../ledger/records.ts";
import { limits } from "../limits.ts";
import { keyLimits, keyLimitsOf, keyLimitsToJson } from "./limit-schemas.ts";
import { instant, timeOf } from "./route.ts";
import {
  amount,
  credits,
  isoTime,
  isoTimeOrNull,
  name,
  shownOnce,
  time,
  timezone,
} from "./schemas.ts";

/** What a key may be charged in each period; a request counts where it was admitted. */
const budgetSchema = z
  .object({ amount: credits, period: z.enum(periodLengths), timezone: z.string() })
  .openapi("Budget");

/** A budget to set; what is absent stays, and the time zone of a new one is UTC. */
const budgetPatchSchema = z
  .strictObject({
    amount: amount.refine((nanos) => nanos >= 0n, { error: "is less than 0" }).optional(),
    period: z.enum(periodLengths).optional(),
    timezone: timezone.optional(),
  })
  .openapi("BudgetPatch");

/** A key without its secret. */
export const keySchema = z
  .object({
    id: z.string(),
    account: z.string(),
    name: z.string(),
    prefix: z.string().openapi({ description: "what each secret of the key begins with" }),
    scopes: z.array(z.enum(keyScopes)),
    status: z.enum(["active", "paused"]),
    expires_at: time.nullable(),
    limits: z.object(keyLimits),
    budget: budgetSchema.nullable(),
    budget_spent: credits.nullable().openapi({ description: "of requests admitted in the period" }),
    budget_held: credits.nullable().openapi({ description: "by those of them that run" }),
    budget_left: credits.nullable(),
    budget_begins_at: time.nullable(),
    budget_ends_at: time.nullable().openapi({ description: "null: never" }),
    created_at: time,
    revoked_at: time.nullable(),
    last_used_at: time.nullable().openapi({ description: "to the minute" }),
    previous_secret_until: time
      .nullable()
      .openapi({ description: "until when the secret before the last rotation is good" }),
    version: z.int().openapi({ description: "goes up with each change; `If-Match` takes it" }),
  })
  .openapi("Key");

/** The key as `keySchema` has it. */
export function keyToJson(key: KeyRecord): z.infer<typeof keySchema> {
  return {
    id: key.id,
    account: key.accountId,
    name: key.name,
    prefix: keyPrefix(key),
    scopes: [...key.scopes],
    status: key.status,
    expires_at: isoTimeOrNull(key.expiresAtMs),
    limits: keyLimitsToJson(key.limits),
    ...budgetToJson(key.budget),
    created_at: isoTime(key.createdAtMs),
    revoked_at: isoTimeOrNull(key.revokedAtMs),
    last_used_at: isoTimeOrNull(key.lastUsedAtMs),
    previous_secret_until: isoTimeOrNull(key.previousUntilMs),
    version: key.version,
  };
}

const keyPolicy = {
  name: name.optional(),
  scopes: z
    .array(z.enum(keyScopes))
    .min(1)
    .max(keyScopes.length)
    .optional()
    .openapi({ description: "generate: to spend; read: to look at its account" }),
  expires_at: instant.nullable().optional().openapi({ description: "null: it does not expire" }),
  limits: z.strictObject(keyLimits).partial().optional(),
  budget: budgetPatchSchema.nullable().optional().openapi({ description: "null: none" }),
};

/** A key to make. */
export const newKeySchema = z.strictObject(keyPolicy).openapi("NewKey");

/** What of a key to change. */
export const keyPatchSchema = z
  .strictObject({ ...keyPolicy, status: z.enum(["active", "paused"]).optional() })
  .openapi("KeyPatch");

/** The patch in the ledger's words. */
export function keyPatchOf(body: z.infer<typeof keyPatchSchema>): KeyPatch {
  const { budget, expires_at: expires, limits: given, ...rest } = body;
  return {
    ...rest,
    ...(expires === undefined ? {} : { expiresAtMs: timeOf(expires) }),
    ...(budget === undefined ? {} : { budget: budget === null ? null : budgetOf(budget) }),
    ...(given === undefined ? {} : { limits: keyLimitsOf(given) }),
  };
}

function budgetOf(body: z.infer<typeof budgetPatchSchema>): Patch<Budget> {
  const { amount: amountNanos, ...rest } = body;
  return { ...rest, amountNanos };
}

/** How to rotate a key. */
export const rotationSchema = z
  .strictObject({
    overlap_seconds: z
      .int()
      .min(0)
      .max(limits.rotationOverlapSecondsMax)
      .optional()
      .openapi({ description: "for how long the old secret is still good; absent: 0" }),
  })
  .openapi("Rotation");

/** A key with its secret. */
export const shownKeySchema = keySchema.extend(shownOnce).openapi("ShownKey");
