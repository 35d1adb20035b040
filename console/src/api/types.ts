import type { keySchema, shownKeySchema } from "../../../src/operators/key-schemas.ts";
import type { z } from "@hono/zod-openapi";
import type {
  accountSchema,
  auditSchema,
  entrySchema,
  operatorSchema,
  receiptSchema,
  shownOperatorSchema,
  verificationSchema,
} from "../../../src/operators/schemas.ts";
import type { liveNowSchema } from "../../../src/operators/live-now.ts";
import type { liveGenerationsSchema } from "../../../src/operators/live-routes.ts";
import type { priceListSchema } from "../../../src/operators/price-schemas.ts";
import type {
  deploymentSchema,
  generationSchema,
  refusalSchema,
  replicaSchema,
  settingSchema,
  statusSchema,
} from "../../../src/operators/service-schemas.ts";
import type { statementSchema } from "../../../src/operators/statement-routes.ts";
import type { usageSchema } from "../../../src/operators/usage-schemas.ts";
import type { sessionSchema } from "../../../src/operators/session-routes.ts";
import type {
  deliverySchema,
  shownWebhookSchema,
  webhookSchema,
} from "../../../src/operators/webhook-schemas.ts";

// What the API answers, as the service's own schemas document it: only types cross, no code does.

/** An account with its balance. */
export type Account = z.output<typeof accountSchema>;
/** A key without its secret. */
export type Key = z.output<typeof keySchema>;
/** A key with its secret, which is shown once. */
export type ShownKey = z.output<typeof shownKeySchema>;
/** An entry of a journal. */
export type Entry = z.output<typeof entrySchema>;
/** A receipt. */
export type Receipt = z.output<typeof receiptSchema>;
/** What moved the balance of an account in a month. */
export type Statement = z.output<typeof statementSchema>;
/** A price list with its prices. */
export type PriceList = z.output<typeof priceListSchema>;
/** A request that runs. */
export type Generation = z.output<typeof generationSchema>;
/** What happens now. */
export type LiveNow = z.output<typeof liveNowSchema>;
/** What of the running requests is new. */
export type LiveGenerations = z.output<typeof liveGenerationsSchema>;
/** A request that was refused or failed. */
export type Refusal = z.output<typeof refusalSchema>;
/** Where tokens come from. */
export type Deployment = z.output<typeof deploymentSchema>;
/** The replicas of the service. */
export type Status = z.output<typeof statusSchema>;
/** A process that serves. */
export type Replica = z.output<typeof replicaSchema>;
/** A setting with its source. */
export type Setting = z.output<typeof settingSchema>;
/** How the last verification of the ledger went. */
export type Verification = z.output<typeof verificationSchema>;
/** Sums of one group of requests. */
export type Usage = z.output<typeof usageSchema>;
/** A row of the audit log. */
export type AuditRow = z.output<typeof auditSchema>;
/** An operator without its token. */
export type Operator = z.output<typeof operatorSchema>;
/** An operator with its token, which is shown once. */
export type ShownOperator = z.output<typeof shownOperatorSchema>;
/** A webhook without its secret. */
export type Webhook = z.output<typeof webhookSchema>;
/** A webhook with its secret, which is shown once. */
export type ShownWebhook = z.output<typeof shownWebhookSchema>;
/** How the delivery of an event to a webhook stands. */
export type Delivery = z.output<typeof deliverySchema>;

/** Who has signed in, and until when. */
export type Session = z.output<typeof sessionSchema>;

/** One page of a list. */
export interface Page<Row> {
  readonly data: readonly Row[];
  readonly next_cursor: string | null;
  /** Of receipts: requests that ended before may have theirs in archives; null: none has. */
  readonly archived_until?: string | null;
}
