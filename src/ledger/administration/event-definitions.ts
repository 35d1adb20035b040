import {
  noteBudgetRefused,
  noteDeployment,
  noteExhausted,
  noteExpiringKeys,
  noteVerifyFailed,
} from "./event-causes.ts";
import { finishTry, forgetEvents, leaveDesk, takeDesk } from "./event-desk.ts";
import {
  changeWebhook,
  createWebhook,
  deleteWebhook,
  listWebhooks,
  pageDeliveries,
  pageEvents,
  resendDelivery,
  rotateWebhook,
  showWebhook,
  testWebhook,
  webhookBacklog,
} from "./webhook-administration.ts";

/** Operations about webhooks and events that only read. */
export const eventLooks = {
  listWebhooks,
  pageDeliveries,
  pageEvents,
  showWebhook,
  webhookBacklog,
};

/** Operations about webhooks and events that write. */
export const eventChanges = {
  changeWebhook,
  createWebhook,
  deleteWebhook,
  finishTry,
  forgetEvents,
  leaveDesk,
  noteBudgetRefused,
  noteDeployment,
  noteExhausted,
  noteExpiringKeys,
  noteVerifyFailed,
  resendDelivery,
  rotateWebhook,
  takeDesk,
  testWebhook,
};
