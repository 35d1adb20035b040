import { send } from "../../api/client.ts";
import type { Account } from "../../api/types.ts";
import { filled, FormDialog } from "../../components/form-dialog.tsx";
import { say } from "../../components/toast.tsx";
import { Credits } from "../../components/text.tsx";

interface DialogProps {
  readonly account: Account;
  readonly onClose: () => void;
  readonly onDone: () => Promise<void>;
}

/** Adds credit to the account, or takes some back. */
export function CreditDialog({
  account,
  kind,
  onClose,
  onDone,
}: DialogProps & { readonly kind: "top-up" | "take-back" }) {
  const adds = kind === "top-up";
  return (
    <FormDialog
      title={adds ? `Top up ${account.name}` : `Take credit back from ${account.name}`}
      action={adds ? "Add the credit" : "Take the credit back"}
      danger={!adds}
      onClose={onClose}
      fields={{
        amount: {
          label: "Amount in credits",
          inputMode: "decimal",
          placeholder: "10",
          required: true,
        },
        why: {
          label: "Why",
          initial: adds ? "top_up" : "correction",
          choices: [
            ["top_up", "top-up: paid for"],
            ["grant", "grant: given"],
            ["correction", "correction: put right"],
          ],
        },
        reference: {
          label: "Reference",
          hint: "What another system calls it, such as a payment. Within an account each counts once.",
        },
        note: {
          label: "Note",
          hint: "Stands in the journal, where the account's own callers see it too.",
        },
      }}
      run={async (once, { amount, note, reference, why }) => {
        const signed = adds ? amount.trim() : `-${amount.trim()}`;
        const body = { kind: why, amount: signed, ...filled({ note, reference }) };
        await send("POST", `/accounts/${account.id}/credits`, { body, once });
        say(adds ? `${amount} credits added` : `${amount} credits taken back`);
        await onDone();
      }}
    >
      <p>
        {adds ? "It has " : "At most "}
        <Credits amount={adds ? account.balance : account.available} unit />
        {adds ? " now." : " can be taken back: what running requests hold stays."}
      </p>
    </FormDialog>
  );
}

/** Disables an active account, and enables a disabled one. */
export function StatusDialog({ account, onClose, onDone }: DialogProps) {
  const disables = account.status === "active";
  return (
    <FormDialog
      title={disables ? `Disable ${account.name}?` : `Enable ${account.name}?`}
      action={disables ? "Disable the account" : "Enable the account"}
      danger={disables}
      onClose={onClose}
      run={async () => {
        const body = { status: disables ? "disabled" : "active" };
        await send("PATCH", `/accounts/${account.id}`, { body });
        say(disables ? "Disabled" : "Enabled");
        await onDone();
      }}
    >
      <p>
        {disables
          ? "From then on each request of its keys is answered 403. What runs ends as it would, and the credit stays."
          : "From then on its keys generate again, as far as its credit goes."}
      </p>
    </FormDialog>
  );
}
