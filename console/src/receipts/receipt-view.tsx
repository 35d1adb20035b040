import type { ComponentChildren } from "preact";
import { useAsk } from "../api/ask.ts";
import type { Receipt } from "../api/types.ts";
import { type Load, useLoad } from "../api/use-load.ts";
import { Facts, PageHead, Section } from "../components/page.tsx";
import { Loaded } from "../components/state.tsx";
import { Credits, Id } from "../components/text.tsx";
import { linkTo } from "../place.ts";
import { countText, formatText } from "../words.ts";
import { AccountName, KeyName } from "./account-name.tsx";
import { Sum, TimeLine } from "./receipt-parts.tsx";
import { Outcome } from "./receipt-table.tsx";

const openEveryMs = 2_000;
const trail = [["Receipts", linkTo(["receipts"])]] as const;

/** A receipt; one of a request that runs is asked for again until it is settled. */
function useReceipt(id: string): Load<Receipt> {
  const ask = useAsk();
  const load = useLoad(`receipt ${id}`, (signal) =>
    ask<Receipt>(`/receipts/${encodeURIComponent(id)}`, { signal }),
  );
  const open = load.data?.state === "open";
  useLoad(
    `${id} ${open ? "open" : ""}`,
    () => (open ? load.reload() : Promise.resolve()),
    open ? openEveryMs : null,
  );
  return load;
}

/** One request: when what happened, what it cost and why. */
export function ReceiptView({
  actions,
  children,
  id,
  ofCaller = false,
}: {
  readonly id: string;
  /** Whether a key asks, which has no pages of accounts, keys and price lists. */
  readonly ofCaller?: boolean;
  readonly actions?: (receipt: Receipt, reload: Load<Receipt>["reload"]) => ComponentChildren;
  /** What stands below. */
  readonly children?: (receipt: Receipt) => ComponentChildren;
}) {
  const load = useReceipt(id);
  return (
    <Loaded
      load={load}
      what="the receipt"
      head={<PageHead title="Receipt" trail={trail} />}
      missing={
        <p>
          A request that was refused before it was admitted leaves no receipt.
          {!ofCaller && (
            <>
              {" "}
              Why it was stands under <a href={linkTo(["refused"])}>Refused</a>.
            </>
          )}
        </p>
      }
    >
      {(receipt) => (
        <>
          <PageHead
            title="Receipt"
            trail={trail}
            badge={<Outcome receipt={receipt} />}
            actions={actions?.(receipt, load.reload)}
          >
            <Id>{receipt.id}</Id>
            {receipt.charged !== null && (
              <span>
                charged <Credits amount={receipt.charged} unit />
              </span>
            )}
          </PageHead>
          <Section title="What happened" hint={outcomeWords(receipt)}>
            <TimeLine receipt={receipt} />
            <Facts
              rows={[
                ["Account", ofCaller ? receipt.account : <AccountName id={receipt.account} />],
                ["Key", ofCaller ? receipt.key : <KeyName id={receipt.key} />],
                ["Format", formatText(receipt)],
                ...(receipt.label === null ? [] : [["Label", receipt.label] as const]),
                ["Input at most", `${countText(receipt.input_bound)} tokens`],
                ["Output at most", `${countText(receipt.output_allowance)} tokens`],
              ]}
            />
          </Section>
          <Section title={receipt.state === "open" ? "What it may cost" : "What it cost"}>
            <Sum receipt={receipt}>
              {ofCaller ? (
                receipt.price_list
              ) : (
                <a href={linkTo(["prices"])}>{receipt.price_list}</a>
              )}
            </Sum>
          </Section>
          {children?.(receipt)}
        </>
      )}
    </Loaded>
  );
}

const words: Readonly<Record<string, string>> = {
  completed: "It ran to its end, and was charged for what it used.",
  cancelled: "Its caller left before the end, and was charged for what had been made.",
  "cancelled-before-output": "Its caller left before any output came. Nothing was charged.",
  "cancelled-by-operator": "An operator cancelled it. Nothing was charged.",
  refused: "The deployment refused it. Nothing was charged.",
  failed: "It broke off, and its caller got an error. Nothing was charged.",
  "lease-lost": "The service lost its hold on the ledger, and ended it. Nothing was charged.",
};

/** What the outcome means. */
function outcomeWords({ outcome, state }: Receipt): string {
  if (state === "open") return "It runs.";
  if (outcome === null) return "Its process ended before it did. What it held went back.";
  return words[outcome] ?? outcome;
}
