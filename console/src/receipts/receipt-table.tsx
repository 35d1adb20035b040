import type { ComponentChildren } from "preact";
import type { Receipt } from "../api/types.ts";
import { Empty } from "../components/state.tsx";
import { amountColumn, type Column, PagedTable } from "../components/table.tsx";
import { Badge, Time } from "../components/text.tsx";
import { linkTo } from "../place.ts";
import { countText, durationText, outcomeText } from "../words.ts";
import { accountColumn, formatColumn, requestColumn } from "./request-columns.tsx";

const ofAll: readonly Column<Receipt>[] = [
  { head: "Admitted", cell: ({ admitted_at: at }) => <Time at={at} /> },
  requestColumn,
  accountColumn,
  formatColumn,
  { head: "Outcome", cell: (receipt) => <Outcome receipt={receipt} /> },
  {
    head: "In",
    numeric: true,
    cell: (receipt) => ended(receipt, receipt.usage?.input_tokens, countText),
  },
  {
    head: "Out",
    numeric: true,
    cell: (receipt) => ended(receipt, receipt.usage?.output_tokens, countText),
  },
  {
    head: "Took",
    numeric: true,
    cell: (receipt) => ended(receipt, receipt.total_ms, durationText),
  },
  amountColumn("Charged", ({ charged, state }) => (state === "open" ? undefined : charged)),
];
const ofOne = ofAll.filter((column) => column !== accountColumn);

/** Names of filters, as the API and the address have them. */
export const filterNames = [
  "account",
  "key",
  "outcome",
  "format",
  "label",
  "since",
  "until",
  "ended_since",
  "ended_until",
  "charged_at_least",
] as const;
/** Which receipts are wanted. */
export type Filters = Partial<Record<(typeof filterNames)[number], string>>;

/** The receipts that filters let through. */
export function ReceiptTable({
  empty,
  filters,
  ofCaller = false,
}: {
  readonly filters: Filters;
  /** What stands where there is none; undefined: that there is none, or that filters let none through. */
  readonly empty?: ComponentChildren;
  /** Whether all are of the account of the key that asks. */
  readonly ofCaller?: boolean;
}) {
  const narrowed = Object.keys(filters).some((name) => name !== "account");
  return (
    <PagedTable
      caption="Receipts"
      below={({ archived_until: archived }) =>
        typeof archived === "string" && (
          <p class="hint">
            Receipts of requests that ended before <Time at={archived} /> may be archived:{" "}
            {ofCaller ? (
              "ask the operator of the service for them."
            ) : (
              <>
                they are in the files of <code>TRIBUTARY_ARCHIVE_DIR</code>.
              </>
            )}{" "}
            Usage counts them still.
          </p>
        )
      }
      path="/receipts"
      query={filters}
      columns={ofCaller || "account" in filters ? ofOne : ofAll}
      idOf={({ id }) => id}
      empty={
        empty ??
        (narrowed ? (
          <Empty title="No receipt is like that">
            <p>
              <a href={linkTo(["receipts"])}>Show all receipts</a>
            </p>
          </Empty>
        ) : (
          <Empty title="No request yet">
            <p>
              Each request that is admitted leaves a receipt here. Send one from the{" "}
              <a href={linkTo(["playground"])}>playground</a>.
            </p>
          </Empty>
        ))
      }
    />
  );
}

/** How a request ended, or that it runs. */
export function Outcome({ receipt }: { readonly receipt: Receipt }) {
  if (receipt.state === "open") return <Badge tone="live">running</Badge>;
  const outcome = receipt.outcome ?? receipt.state;
  const tone = outcome === "completed" ? "good" : outcome.startsWith("cancelled") ? "warn" : "bad";
  return <Badge tone={tone}>{outcomeText(outcome)}</Badge>;
}

/** A figure of a request that has ended: a dash where it has none; of one that runs nothing yet. */
function ended(
  { state }: Receipt,
  value: number | null | undefined,
  text: (value: number) => string,
): ComponentChildren {
  if (state === "open") return null;
  return <span class="number">{value === null || value === undefined ? "–" : text(value)}</span>;
}
