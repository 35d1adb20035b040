import { send } from "../../api/client.ts";
import type { ShownWebhook, Webhook } from "../../api/types.ts";
import { filled, FormDialog } from "../../components/form-dialog.tsx";
import { say } from "../../components/toast.tsx";

interface WebhookDialogProps {
  readonly webhook: Webhook;
  readonly onClose: () => void;
  readonly onDone: () => Promise<void>;
}

type EventType = NonNullable<Webhook["types"]>[number];

/** What each type of event says, for those who choose. */
const eventWords: Readonly<Record<EventType, string>> = {
  "account.low_balance": "a balance is low",
  "account.exhausted": "a request was refused for want of credit",
  "account.credited": "credit was added or taken back",
  "budget.reached": "80 % and 100 % of a key's budget are used",
  "key.expiring": "a key expires within a day",
  "verify.failed": "the ledger does not add up",
  "deployment.down": "the deployment answers no more",
  "deployment.up": "the deployment answers again",
};

function addressFields(webhook: Webhook | null) {
  return {
    url: {
      label: "Address",
      initial: webhook?.url ?? "",
      hint: "The whole address, with its https at the front.",
      required: true,
    },
    events: {
      label: "Events",
      hint: "None chosen: all, also those of later versions.",
      initial: webhook?.types?.join(",") ?? "",
      options: Object.entries(eventWords).map(
        ([type, words]) => [type, `${type}: ${words}`] as const,
      ),
    },
    description: {
      label: "About",
      initial: webhook?.description ?? "",
      hint: "Who receives there, and what for.",
    },
  };
}

/** The types that were chosen; null: all. */
function typesOf(events: string): readonly string[] | null {
  return events === "" ? null : events.split(",");
}

/** Makes a webhook. */
export function NewWebhook({
  onClose,
  onMade,
}: {
  readonly onClose: () => void;
  readonly onMade: (webhook: ShownWebhook) => void;
}) {
  return (
    <FormDialog
      title="New webhook"
      action="Make the webhook"
      onClose={onClose}
      fields={addressFields(null)}
      run={async (once, { description, events, url }) => {
        const body = { url: url.trim(), types: typesOf(events), ...filled({ description }) };
        onMade(await send<ShownWebhook>("POST", "/webhooks", { body, once }));
      }}
    />
  );
}

/** Gives a webhook another address, or other events. */
export function EditWebhook({ onClose, onDone, webhook }: WebhookDialogProps) {
  return (
    <FormDialog
      title="Change the webhook"
      action="Change the webhook"
      onClose={onClose}
      fields={addressFields(webhook)}
      run={async (once, { description, events, url }) => {
        const body = { url: url.trim(), types: typesOf(events), description };
        await send("PATCH", `/webhooks/${webhook.id}`, { body, once });
        say("Changed");
        await onDone();
      }}
    >
      <p>What it has not got yet goes to the new address. Its secret stays.</p>
    </FormDialog>
  );
}

/** Gives a webhook another secret. */
export function RotateWebhook({
  onClose,
  onMade,
  webhook,
}: Omit<WebhookDialogProps, "onDone"> & { readonly onMade: (webhook: ShownWebhook) => void }) {
  return (
    <FormDialog
      title="Rotate the secret?"
      action="Make a new secret"
      onClose={onClose}
      fields={{
        overlap: {
          label: "The old secret signs too",
          initial: "86400",
          choices: [
            ["0", "no longer"],
            ["3600", "for another hour"],
            ["86400", "for another day"],
            ["604800", "for another week"],
          ],
        },
      }}
      run={async (once, { overlap }) => {
        const body = { overlap_seconds: Number(overlap) };
        onMade(await send<ShownWebhook>("POST", `/webhooks/${webhook.id}/rotate`, { body, once }));
      }}
    >
      <p>
        {webhook.url} gets a new secret, shown once. While the old one signs too, a receiver that
        knows either of them verifies what it gets.
      </p>
    </FormDialog>
  );
}

/** Pauses a webhook that is active, and resumes a paused one. */
export function PauseWebhook({ onClose, onDone, webhook }: WebhookDialogProps) {
  const pauses = webhook.status === "active";
  return (
    <FormDialog
      title={pauses ? "Pause the webhook?" : "Resume the webhook?"}
      action={pauses ? "Pause the webhook" : "Resume the webhook"}
      onClose={onClose}
      run={async (once) => {
        const body = { status: pauses ? "paused" : "active" };
        await send("PATCH", `/webhooks/${webhook.id}`, { body, once });
        say(pauses ? "The webhook is paused" : "The webhook is active");
        await onDone();
      }}
    >
      <p>
        {webhook.url}{" "}
        {pauses
          ? "gets nothing until it is resumed. What happens meanwhile waits for it, for up to 30 days."
          : "gets what waited for it, and from then on what happens."}
      </p>
    </FormDialog>
  );
}

/** Takes a webhook away for good. */
export function DeleteWebhook({ onClose, onDone, webhook }: WebhookDialogProps) {
  return (
    <FormDialog
      title="Delete the webhook?"
      action="Delete the webhook"
      danger
      onClose={onClose}
      run={async (once) => {
        await send("DELETE", `/webhooks/${webhook.id}`, { once });
        say("The webhook is deleted");
        await onDone();
      }}
    >
      <p>
        {webhook.url} gets nothing more, also nothing of what it has not got yet. Its secret and its
        deliveries are gone for good.
      </p>
    </FormDialog>
  );
}
