import type { DeskWork } from "./administration/event-desk.ts";
import type {
  WebhookBacklog,
  WebhookPatch,
  WebhookSettings,
} from "./administration/webhook-administration.ts";
import type { EventRecord } from "./event-record.ts";
import type { DeliveryRecord, DeliveryTry, WebhookRecord } from "./webhook.ts";

/** What of the operator's half is about webhooks and events. */
export interface WebhooksAdministration<Secret extends string | null = string> {
  /** `secret` is what signs, as its receiver needs it; it is shown once. */
  createWebhook(
    settings: WebhookSettings,
  ): Promise<{ readonly record: WebhookRecord; readonly secret: Secret }>;
  listWebhooks(): Promise<readonly WebhookRecord[]>;
  showWebhook(id: string): Promise<WebhookRecord>;
  /** Changes what is given. */
  changeWebhook(id: string, to: WebhookPatch): Promise<WebhookRecord>;
  deleteWebhook(id: string): Promise<WebhookRecord>;
  /** A new secret; the one before signs too for `overlapMs`. */
  rotateWebhook(
    id: string,
    overlapMs: number,
  ): Promise<{ readonly record: WebhookRecord; readonly secret: Secret }>;
  testWebhook(id: string): Promise<DeliveryRecord>;
  /** Begins the delivery of an event anew. */
  resendDelivery(id: string, eventId: string): Promise<DeliveryRecord>;
  /** Of the newest event first; `before` is a position of an event. */
  pageDeliveries(query: {
    readonly id: string;
    readonly state: DeliveryRecord["state"] | null;
    readonly before: number | null;
    readonly rowsMax: number;
  }): Promise<readonly DeliveryRecord[]>;
  /** Events behind a position, in their order. `lost`: some behind it are older than what is kept. */
  pageEvents(query: {
    readonly after: number;
    readonly accountId: string | null;
    readonly type: string | null;
    readonly rowsMax: number;
  }): Promise<{ readonly rows: readonly EventRecord[]; readonly lost: boolean }>;
}

/** What the deliverer does. Promises reject with a StoreFault. */
export interface EventsLedger {
  /** null: there is nothing to do, or another process has the desk. */
  takeDesk(holder: string): Promise<DeskWork | null>;
  leaveDesk(holder: string): Promise<unknown>;
  /** `failing`: with this try the webhook has begun to count as failing. */
  finishTry(one: DeliveryTry): Promise<{ readonly failing: boolean }>;
  /** Announces keys that expire within a day. */
  noteExpiringKeys(): Promise<unknown>;
  /** What a process sees of the deployment. */
  noteDeployment(seenBy: string, up: boolean): Promise<unknown>;
  backlog(): Promise<WebhookBacklog>;
  /** False: there may be more to forget. */
  forgetEvents(): Promise<boolean>;
}
