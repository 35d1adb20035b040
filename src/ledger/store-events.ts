import { parseCredit } from "../admission/price.ts";
import type { Failure } from "../failure.ts";
import { newId } from "../new-id.ts";
import type { ChangedBy } from "./administration/changed-by.ts";
import type { EventsLedger, WebhooksAdministration } from "./ledger-events.ts";
import { newLedgerId } from "./new-api-key.ts";
import type { Caller } from "./ledger.ts";
import type { ArgumentOf, RunOperation, StoreClient } from "./store-operations.ts";
import { fingerprintOf, newWebhookSecret } from "./webhook.ts";
import type { VerifyReport } from "./verify-journal.ts";

/** What of the operator's half is about webhooks and events, over a store. */
export function administerWebhooks(
  run: RunOperation,
  by: ChangedBy,
): WebhooksAdministration<string | null> {
  return {
    async createWebhook(settings) {
      const id = newLedgerId("hook_");
      const { secret, shown } = newWebhookSecret();
      const record = await run("createWebhook", { ...settings, id, secret, by });
      return { record, secret: record.id === id ? shown : null };
    },
    listWebhooks: () => run("listWebhooks", null),
    showWebhook: (id) => run("showWebhook", id),
    changeWebhook: (id, to) => run("changeWebhook", { ...to, id, by }),
    deleteWebhook: (id) => run("deleteWebhook", { id, by }),
    async rotateWebhook(id, overlapMs) {
      const { secret, shown } = newWebhookSecret();
      const { fingerprint, record } = await run("rotateWebhook", { id, secret, overlapMs, by });
      // A repeat answers what the first time answered, whose secret is nowhere.
      return { record, secret: fingerprint === fingerprintOf(secret) ? shown : null };
    },
    testWebhook: (id) => run("testWebhook", { id, eventId: newId("evt_"), by }),
    resendDelivery: (id, eventId) => run("resendDelivery", { id, eventId, by }),
    pageDeliveries: (query) => run("pageDeliveries", query),
    pageEvents: (query) => run("pageEvents", query),
  };
}

/** What the deliverer does, over a store. */
export function openEventsLedger(client: StoreClient): EventsLedger {
  return {
    takeDesk: (holder) => client.call("takeDesk", { holder, seed: newId("") }),
    leaveDesk: (holder) => client.call("leaveDesk", { holder }),
    finishTry: (one) => client.call("finishTry", one),
    noteExpiringKeys: () => client.call("noteExpiringKeys", {}),
    noteDeployment: (seenBy, up) => client.call("noteDeployment", { seenBy, up }),
    backlog: () => client.call("webhookBacklog", null),
    forgetEvents: () => client.call("forgetEvents", {}),
  };
}

/** A request was refused for credit or for a budget, which may be an event; `asked` is what `authorize` or `admit` was asked for. */
export async function noteShortage(
  client: StoreClient,
  asked: unknown,
  { code, facts: { shortage } }: Failure,
): Promise<void> {
  if (shortage === undefined) return;
  const { accountId, keyId } = callerOf(asked);
  if (code === "budget_exceeded") {
    await client.call("noteBudgetRefused", { accountId, keyId }).catch(ignore);
    return;
  }
  const order = {
    accountId,
    keyId,
    balanceNanos: parseCredit(shortage.balance) ?? 0n,
    neededNanos: parseCredit(shortage.needed) ?? 0n,
  };
  // Where the store cannot take it now, the next refusal will be the first.
  await client.call("noteExhausted", order).catch(ignore);
}

function callerOf(asked: unknown): Pick<Caller, "accountId" | "keyId"> {
  const order = asked as ArgumentOf<"authorize"> | ArgumentOf<"admit">;
  return "caller" in order ? order.caller : order;
}

/** An event of what verifying found. A ledger that cannot be written is verified all the same. */
export async function noteProblems(run: RunOperation, report: VerifyReport): Promise<void> {
  const [first] = report.problems;
  const order = { problems: report.problemsTotal, first: first?.code ?? "" };
  await run("noteVerifyFailed", order).catch(ignore);
}

function ignore(): void {}
