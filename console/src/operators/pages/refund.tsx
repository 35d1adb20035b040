import { useState } from "preact/hooks";
import { send } from "../../api/client.ts";
import type { Receipt } from "../../api/types.ts";
import { Button } from "../../components/button.tsx";
import { filled, FormDialog } from "../../components/form-dialog.tsx";
import { Credits } from "../../components/text.tsx";
import { say } from "../../components/toast.tsx";
import { textOf, unitsOf } from "../../exact.ts";
import { useMay } from "../session.ts";

/** Gives back what a request was charged, as far as it was not given back yet. */
export function Refund({
  onDone,
  receipt,
}: {
  readonly receipt: Receipt;
  readonly onDone: () => Promise<void>;
}) {
  const [asked, setAsked] = useState(false);
  const mayRefund = useMay("billing");
  const left = textOf(unitsOf(receipt.charged ?? "0", 9) - unitsOf(receipt.refunded, 9), 9);
  if (!mayRefund || left === "0") return null;
  return (
    <>
      <Button onClick={() => setAsked(true)}>Refund</Button>
      {asked && (
        <FormDialog
          title="Refund this request"
          action="Give it back"
          onClose={() => setAsked(false)}
          fields={{
            amount: {
              label: "Amount in credits",
              initial: left,
              inputMode: "decimal",
              required: true,
            },
            reference: {
              label: "Reference",
              hint: "What another system calls it. Within an account each counts once.",
            },
            note: {
              label: "Note",
              hint: "Stands in the journal, where the account's own callers see it too.",
            },
          }}
          run={async (once, { amount, note, reference }) => {
            const body = {
              kind: "refund",
              amount: amount.trim(),
              receipt: receipt.id,
              ...filled({ note, reference }),
            };
            await send("POST", `/accounts/${receipt.account}/credits`, { body, once });
            say(`${amount.trim()} credits given back`);
            await onDone();
          }}
        >
          <p>
            At most <Credits amount={left} unit /> can be given back: what it was charged
            {receipt.refunded !== "0" && ", without what refunds have given back before"}. They go
            to the balance; neither a budget nor a grant gets them.
          </p>
        </FormDialog>
      )}
    </>
  );
}
