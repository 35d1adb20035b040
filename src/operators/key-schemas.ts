import { z } from "@hono/zod-openapi";
import type { KeyPatch } from "../ledger/administration/key-administration.ts";
import { keyPrefix, type KeyRecord, keyScopes } from "../ledger/records.ts";
import { limits } from "../limits.ts";
import { keyLimits, keyLimitsOf, keyLimitsToJson } from "./limit-schemas.ts";
import { instant, timeOf } from "./route.ts";
import { isoTime, isoTimeOrNull, name, shownOnce, time } from "./schemas.ts";

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
};

/** A key to make. */
export const newKeySchema = z.strictObject(keyPolicy).openapi("NewKey");

/** What of a key to change. */
export const keyPatchSchema = z
  .strictObject({ ...keyPolicy, status: z.enum(["active", "paused"]).optional() })
  .openapi("KeyPatch");

/** The patch in the ledger's words. */
export function keyPatchOf(body: z.infer<typeof keyPatchSchema>): KeyPatch {
  const { expires_at: expires, limits: given, ...rest } = body;
  return {
    ...rest,
    ...(expires === undefined ? {} : { expiresAtMs: timeOf(expires) }),
    ...(given === undefined ? {} : { limits: keyLimitsOf(given) }),
  };
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
