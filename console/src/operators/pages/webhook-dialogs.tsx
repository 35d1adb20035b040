import { send } from "../../api/client.ts";
import type { ShownWebhook, Webhook } from "../../api/types.ts";
import { filled, FormDialog } from "../../components/form-dialog.tsx";
import { say } from "../../components/toast.tsx";

interface WebhookDialogProps {
  readonly webhook: Webhook;
  readonly onClose: () => void;
  readonly onDone: () => void;
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
      fields={{
        url: { label: "Address", hint: "Written whole, by https.", required: true },
        events: {
          label: "Events",
          hint: "Empty: all. Or types with commas between, such as account.low_balance, budget.reached.",
          param: "types",
        },
        description: { label: "About", hint: "Who receives there, and what for." },
      }}
      run={async (once, { description, events, url }) => {
        const types = events
          .split(",")
          .map((type) => type.trim())
          .filter((type) => type !== "");
        const body = {
          url: url.trim(),
          ...(types.length === 0 ? {} : { types }),
          ...filled({ description }),
        };
        onMade(await send<ShownWebhook>("POST", "/webhooks", { body, once }));
      }}
    />
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
        onDone();
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
        onDone();
      }}
    >
      <p>
        {webhook.url} gets nothing more, also nothing of what it has not got yet. Its secret and its
        deliveries are gone for good.
      </p>
    </FormDialog>
  );
}
