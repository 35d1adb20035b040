import { z } from "@hono/zod-openapi";
import { formatCredit, parseCredit } from "../admission/price.ts";
import {
  operatorRoles,
  type OperatorRecord,
} from "../ledger/administration/operator-administration.ts";
import type { AccountPatch } from "../ledger/administration/account-administration.ts";
import type { AuditRow } from "../ledger/administration/audit.ts";
import type { Patch } from "../ledger/administration/changed-by.ts";
import { type Grant, grantPeriods, grantToJson } from "../ledger/grant.ts";
import { isTimeZone } from "../ledger/periods.ts";
import { type Receipt, receiptToJson } from "../ledger/receipt.ts";
import { creditKinds } from "../ledger/journal.ts";
import type { Account } from "../ledger/records.ts";
import { limits } from "../limits.ts";
import { accountLimits, accountLimitsOf, accountLimitsToJson } from "./limit-schemas.ts";

// What the API takes and answers: each schema checks, types and documents, and beside it stands what fills it.

/** A time in an answer. */
export const time = z.iso.datetime().openapi({ description: "RFC 3339, in UTC" });
/** Credits in an answer. */
export const credits = z
  .string()
  .openapi({ description: "credits, as a decimal string", example: "9.999812" });
/** A name of an account, a key or an operator. */
export const name = z
  .string()
  .refine(
    (text) => text !== "" && text.length <= limits.nameCharactersMax && !/\p{Cc}/u.test(text),
    {
      error: `has 1 to ${String(limits.nameCharactersMax)} characters, none of them control characters`,
    },
  )
  .openapi({
    minLength: 1,
    maxLength: limits.nameCharactersMax,
    pattern: String.raw`^[^\u0000-\u001f\u007f-\u009f]*$`,
  });

/** An amount of credits in a body, as nanos. */
export const amount = z
  .string()
  .transform((text, context) => {
    const nanos = parseCredit(text);
    if (nanos !== null) return nanos;
    context.addIssue({
      code: "custom",
      message:
        "is no amount of credits: write it as a string such as 10, 0.25 or -3, with at most 9 decimals",
    });
    return z.NEVER;
  })
  .openapi({ type: "string", pattern: String.raw`^-?\d+(\.\d{1,9})?$`, example: "10" });

const priceListName = z
  .string()
  .min(1)
  .max(limits.priceListNameMax)
  .nullable()
  .openapi({ description: "the list by which it pays; null: `default`" });

/** What an account is granted at the begin of each period. */
const grantSchema = z
  .object({
    amount: credits,
    every: z.enum(grantPeriods),
    timezone: z.string(),
    carry_over: z.boolean(),
  })
  .openapi("Grant");

/** A name of the IANA database. */
export const timezone = z
  .string()
  .refine(isTimeZone, { error: "is no time zone: write UTC, or a name such as Europe/Berlin" })
  .openapi({ description: "a name of the IANA database", example: "Europe/Berlin" });

/** A grant to set; what is absent stays, and the time zone of a new one is UTC. */
const grantPatchSchema = z
  .strictObject({
    amount: amount.refine((nanos) => nanos > 0n, { error: "is not more than 0" }).optional(),
    every: z.enum(grantPeriods).optional(),
    timezone: timezone.optional(),
    carry_over: z.boolean().optional(),
  })
  .openapi("GrantPatch");

function grantPatchOf(body: z.infer<typeof grantPatchSchema> | null): Patch<Grant> | null {
  if (body === null) return null;
  const { amount: amountNanos, carry_over: carryOver, ...rest } = body;
  return { ...rest, amountNanos, carryOver };
}

/** An account. */
export const accountSchema = z
  .object({
    id: z.string(),
    name: z.string(),
    status: z.enum(["active", "disabled"]),
    balance: credits,
    held: credits,
    available: credits,
    limits: z.object(accountLimits),
    price_list: priceListName,
    low_balance_at: credits
      .nullable()
      .openapi({ description: "below it the balance is low, which is an event; null: no event" }),
    grant: grantSchema.nullable(),
    grant_left: credits.openapi({ description: "what of the balance is left of grants" }),
    grant_next_at: time.nullable(),
    running: z.int().openapi({ description: "requests that run" }),
    external_id: z.string().nullable(),
    metadata: z.record(z.string(), z.string()),
    created_at: time,
    version: z.int().openapi({ description: "goes up with each change; `If-Match` takes it" }),
    head: z
      .string()
      .nullable()
      .openapi({ description: "of the journal, to keep elsewhere: `verify --against` takes it" }),
  })
  .openapi("Account");

/** The account as `accountSchema` has it. */
export function accountToJson(account: Account): z.infer<typeof accountSchema> {
  return {
    id: account.id,
    name: account.name,
    status: account.status,
    balance: formatCredit(account.balanceNanos),
    held: formatCredit(account.heldNanos),
    available: formatCredit(account.balanceNanos - account.heldNanos),
    limits: accountLimitsToJson(account.limits),
    price_list: account.priceList,
    low_balance_at: creditOrNull(account.lowBalanceNanos),
    grant: account.grant === null ? null : grantToJson(account.grant),
    grant_left: formatCredit(account.grantLeftNanos),
    grant_next_at: isoTimeOrNull(account.grant?.nextMs ?? null),
    running: account.running,
    external_id: account.externalId,
    metadata: { ...account.metadata },
    created_at: isoTime(account.createdAtMs),
    version: account.version,
    head: account.head,
  };
}

function creditOrNull(nanos: bigint | null): string | null {
  return nanos === null ? null : formatCredit(nanos);
}

const accountFields = {
  status: z.enum(["active", "disabled"]).optional(),
  limits: z.strictObject(accountLimits).partial().optional(),
  price_list: priceListName.optional(),
  low_balance_at: amount.nullable().optional(),
  grant: grantPatchSchema.nullable().optional().openapi({ description: "null: none any more" }),
  external_id: z
    .string()
    .min(1)
    .max(limits.referenceCharactersMax)
    .nullable()
    .optional()
    .openapi({ description: "the name that another system has for it: no two accounts share one" }),
  metadata: z
    .record(z.string(), z.string().nullable())
    .nullable()
    .optional()
    .openapi({ description: "up to 16 pairs of strings, merged; null takes a pair away" }),
};

/** An account to make. */
export const newAccountSchema = z
  .strictObject({ name, credit: amount.optional(), ...accountFields })
  .openapi("NewAccount");

/** What of an account to change. */
export const accountPatchSchema = z
  .strictObject({ name: name.optional(), ...accountFields })
  .openapi("AccountPatch");

/** The patch in the ledger's words. */
export function accountPatchOf(body: z.infer<typeof accountPatchSchema>): AccountPatch {
  const { external_id: externalId, grant, limits: given, price_list: priceList, ...others } = body;
  const { low_balance_at: lowBalanceNanos, ...rest } = others;
  const limited = given === undefined ? undefined : accountLimitsOf(given);
  const granted = grant === undefined ? undefined : grantPatchOf(grant);
  return { ...rest, externalId, lowBalanceNanos, priceList, limits: limited, grant: granted };
}

const callersSee = "callers see it beside the entry";

/** Credit to add or to take back. */
export const creditSchema = z
  .strictObject({
    kind: z
      .enum(creditKinds)
      .default("top_up")
      .openapi({ description: "paid for, given, a charge given back, or put right" }),
    amount: amount.openapi({ description: "negative takes back, never what is held" }),
    note: z
      .string()
      .max(limits.noteCharactersMax)
      .nullable()
      .default(null)
      .openapi({ description: callersSee }),
    reference: z
      .string()
      .min(1)
      .max(limits.referenceCharactersMax)
      .nullable()
      .default(null)
      .openapi({ description: "unique within the account: a repeat answers the first entry" }),
    receipt: z
      .string()
      .nullable()
      .default(null)
      .openapi({ description: "of a refund: the request whose charge it gives back" }),
  })
  .openapi("Credit");

/** The secret as `shownOnce` has it. */
export function showOnce(secret: string | null): { secret: string | null; secret_shown: boolean } {
  return { secret, secret_shown: secret === null };
}

/** A secret that is shown once: null, and `secret_shown`, where this repeats the request that showed it. */
export const shownOnce = {
  secret: z.string().nullable().openapi({ description: "shown once; only its hash is stored" }),
  secret_shown: z
    .boolean()
    .openapi({ description: "true where an earlier request with this idempotency-key showed it" }),
};

/** An operator. */
export const operatorSchema = z
  .object({
    id: z.string(),
    name: z.string(),
    role: z.enum(operatorRoles),
    created_at: time,
    revoked_at: time.nullable(),
  })
  .openapi("Operator");

/** The operator as `operatorSchema` has it. */
export function operatorToJson(operator: OperatorRecord): z.infer<typeof operatorSchema> {
  const { createdAtMs, id, revokedAtMs, role } = operator;
  const times = { created_at: isoTime(createdAtMs), revoked_at: isoTimeOrNull(revokedAtMs) };
  return { id, name: operator.name, role, ...times };
}

/** An operator to make. */
export const newOperatorSchema = z
  .strictObject({
    name,
    role: z.enum(operatorRoles),
    expires_at: time.nullable().optional().openapi({ description: "when its token expires" }),
  })
  .openapi("NewOperator");

/** An operator with its token. */
export const shownOperatorSchema = operatorSchema.extend(shownOnce).openapi("ShownOperator");

/** An entry of a journal. */
export const entrySchema = z
  .object({
    sequence: z.int(),
    at: time,
    kind: z.string(),
    amount: credits.openapi({ description: "what it did to the balance" }),
    held_change: credits,
    balance: credits.openapi({ description: "the balance after it" }),
    held: credits.openapi({ description: "what was held after it" }),
    actor: z.string().openapi({
      description: "key, operator (`oper_...`) or `user:NAME` of a command; callers see it",
    }),
    request: z.string().nullable(),
    reference: z.string().nullable(),
    receipt: z
      .string()
      .nullable()
      .openapi({ description: "the request whose charge a refund gives back" }),
    note: z.string().nullable().openapi({ description: "callers see it" }),
    hash: z.string().openapi({ description: "64 hexadecimal digits" }),
  })
  .openapi("Entry");

/** An entry of credit, and the account after it. */
export const creditedSchema = z
  .object({ entry: entrySchema, account: accountSchema })
  .openapi("Credited");

/** A receipt. */
export const receiptSchema = z
  .object({
    id: z.string(),
    account: z.string(),
    key: z.string(),
    format: z.string(),
    streamed: z.boolean(),
    label: z.string().nullable().openapi({ description: "for whom of the account's users" }),
    state: z.enum(["open", "settled", "expired"]),
    outcome: z.string().nullable(),
    input_bound: z.int(),
    output_allowance: z.int(),
    price_list: z.string(),
    prices: z.object({ input: credits, cached_input: credits, output: credits }),
    reserved: credits,
    charged: credits.nullable(),
    lines: z
      .array(
        z.object({
          item: z.enum(["input", "cached_input", "output"]),
          tokens: z.int(),
          price: credits.openapi({ description: "for a million tokens" }),
          amount: credits.openapi({
            description: "exact, with up to 15 decimals; their sum, rounded up to 9, is `charged`",
          }),
        }),
      )
      .nullable(),
    refunded: credits.openapi({ description: "what refunds have given back of the charge" }),
    usage: z
      .object({
        input_tokens: z.int(),
        cached_input_tokens: z.int(),
        output_tokens: z.int(),
        reasoning_tokens: z.int(),
      })
      .nullable(),
    admitted_at: time,
    resolved_at: time.nullable(),
    first_output_ms: z.int().nullable(),
    total_ms: z.int().nullable(),
    head: z.string(),
  })
  .openapi("Receipt");

/** The receipt as `receiptSchema` has it, and as callers and commands get it. */
export function receiptOfApi(receipt: Receipt): z.infer<typeof receiptSchema> {
  // `receiptToJson` has these members; the tests hold its answers against the schema.
  return receiptToJson(receipt) as z.infer<typeof receiptSchema>;
}

const facts = z.record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.null()]));

/** A row of the audit log. */
export const auditSchema = z
  .object({
    sequence: z.int(),
    at: time,
    actor: z.string(),
    action: z.string(),
    target: z.string(),
    before: facts.nullable(),
    after: facts.nullable(),
  })
  .openapi("AuditRow");

/** The row as `auditSchema` has it. */
export function auditToJson(row: AuditRow): z.infer<typeof auditSchema> {
  const { action, actor, after, atMs, before, sequence, target } = row;
  return { sequence, at: isoTime(atMs), actor, action, target, before, after };
}

/** How the verification that was started last went on, of this process. */
export const verificationSchema = z
  .object({
    state: z.enum(["never", "running", "ended", "failed"]),
    started_at: time.nullable(),
    ended_at: time.nullable(),
    report: z
      .object({
        ok: z.boolean(),
        entries: z.int(),
        accounts: z.int(),
        problems: z.array(z.record(z.string(), z.unknown())),
        problems_total: z.int(),
      })
      .nullable(),
  })
  .openapi("Verification");

/** RFC 3339, in UTC. */
export function isoTime(ms: number): string {
  return new Date(ms).toISOString();
}

/** The same, where there may be none. */
export function isoTimeOrNull(ms: number | null): string | null {
  return ms === null ? null : isoTime(ms);
}
