import { useState } from "preact/hooks";
import { send } from "../../api/client.ts";
import type { Account } from "../../api/types.ts";
import { ActionDialog, errorOf } from "../../components/dialog.tsx";
import { Choice, Field } from "../../components/field.tsx";
import { say } from "../../components/toast.tsx";
import { Credits } from "../../components/text.tsx";

interface DialogProps {
  readonly account: Account;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

type Kind = "top_up" | "grant" | "correction";

/** Adds credit to the account, or takes some back. */
export function CreditDialog({
  account,
  kind,
  onClose,
  onDone,
}: DialogProps & { readonly kind: "top-up" | "take-back" }) {
  const [amount, setAmount] = useState("");
  const [note, setNote] = useState("");
  const [reference, setReference] = useState("");
  const adds = kind === "top-up";
  const [chosen, setChosen] = useState<Kind>(adds ? "top_up" : "correction");
  return (
    <ActionDialog
      title={adds ? `Top up ${account.name}` : `Take credit back from ${account.name}`}
      action={adds ? "Add the credit" : "Take the credit back"}
      danger={!adds}
      onClose={onClose}
      run={async (once) => {
        const signed = adds ? amount.trim() : `-${amount.trim()}`;
        const body = {
          kind: chosen,
          amount: signed,
          ...(note === "" ? {} : { note }),
          ...(reference === "" ? {} : { reference }),
        };
        await send("POST", `/accounts/${account.id}/credits`, { body, once });
        say(adds ? `${amount} credits added` : `${amount} credits taken back`);
        onDone();
      }}
    >
      {(error) => (
        <>
          <p>
            {adds ? "It has " : "At most "}
            <Credits amount={adds ? account.balance : account.available} unit />
            {adds ? " now." : " can be taken back: what running requests hold stays."}
          </p>
          <Field
            label="Amount in credits"
            value={amount}
            onInput={setAmount}
            error={errorOf(error, "amount")}
            inputMode="decimal"
            placeholder="10"
            required
            autoFocus
          />
          <Choice
            label="Why"
            value={chosen}
            onChange={setChosen}
            choices={[
              ["top_up", "top-up: paid for"],
              ["grant", "grant: given"],
              ["correction", "correction: put right"],
            ]}
          />
          <Field
            label="Reference"
            value={reference}
            onInput={setReference}
            error={errorOf(error, "reference")}
            hint="What another system calls it, such as a payment. Within an account each counts once."
          />
          <Field
            label="Note"
            value={note}
            onInput={setNote}
            error={errorOf(error, "note")}
            hint="Stands in the journal, where the account's own callers see it too."
          />
        </>
      )}
    </ActionDialog>
  );
}

/** Gives the account another name. */
export function RenameDialog({ account, onClose, onDone }: DialogProps) {
  const [name, setName] = useState(account.name);
  return (
    <ActionDialog
      title="Rename the account"
      action="Rename"
      onClose={onClose}
      run={async () => {
        await send("PATCH", `/accounts/${account.id}`, { body: { name: name.trim() } });
        say("Renamed");
        onDone();
      }}
    >
      {(error) => (
        <Field
          label="Name"
          value={name}
          onInput={setName}
          error={errorOf(error, "name")}
          required
          autoFocus
        />
      )}
    </ActionDialog>
  );
}

/** Disables an active account, and enables a disabled one. */
export function StatusDialog({ account, onClose, onDone }: DialogProps) {
  const disables = account.status === "active";
  return (
    <ActionDialog
      title={disables ? `Disable ${account.name}?` : `Enable ${account.name}?`}
      action={disables ? "Disable the account" : "Enable the account"}
      danger={disables}
      onClose={onClose}
      run={async () => {
        const body = { status: disables ? "disabled" : "active" };
        await send("PATCH", `/accounts/${account.id}`, { body });
        say(disables ? "Disabled" : "Enabled");
        onDone();
      }}
    >
      {() => (
        <p>
          {disables
            ? "From then on each request of its keys is answered 403. What runs ends as it would, and the credit stays."
            : "From then on its keys generate again, as far as its credit goes."}
        </p>
      )}
    </ActionDialog>
  );
}
