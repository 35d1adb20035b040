import { Section } from "../../components/page.tsx";
import { ReceiptView } from "../../receipts/receipt-view.tsx";
import { ChainCheck } from "./chain-check.tsx";
import { Refund } from "./refund.tsx";

/** One request, with its place in the chain; what it was charged can be given back. */
export function ReceiptPage({ id }: { readonly id: string }) {
  return (
    <ReceiptView
      id={id}
      actions={(receipt, reload) => <Refund receipt={receipt} onDone={reload} />}
    >
      {(receipt) => (
        <Section title="Its place in the chain">
          <ChainCheck receipt={receipt} />
        </Section>
      )}
    </ReceiptView>
  );
}
