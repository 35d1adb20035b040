import { useState } from "preact/hooks";
import type { Receipt } from "../../api/types.ts";
import { Button } from "../../components/button.tsx";
import { Choice, Field } from "../../components/field.tsx";
import { PageHead } from "../../components/page.tsx";
import { Empty } from "../../components/state.tsx";
import { type Column, PagedTable } from "../../components/table.tsx";
import { Badge, Credits, Time } from "../../components/text.tsx";
import { linkTo } from "../../place.ts";
import { goTo } from "../../router.ts";
import { countText, durationText } from "../../words.ts";

const columns: readonly Column<Receipt>[] = [
  { head: "Admitted", cell: ({ admitted_at: at }) => <Time at={at} /> },
  {
    head: "Request",
    names: true,
    cell: ({ id }) => (
      <a href={linkTo(["receipts", id])}>
        <code>{id}</code>
      </a>
    ),
  },
  {
    head: "Account",
    cell: ({ account }) => (
      <a href={linkTo(["accounts", account])}>
        <code>{account}</code>
      </a>
    ),
  },
  { head: "Format", cell: ({ format }) => format },
  { head: "Ended", cell: (receipt) => <Outcome receipt={receipt} /> },
  { head: "In", numeric: true, cell: ({ usage }) => tokens(usage?.input_tokens) },
  { head: "Out", numeric: true, cell: ({ usage }) => tokens(usage?.output_tokens) },
  {
    head: "Took",
    numeric: true,
    cell: ({ total_ms: ms }) => <span class="number">{ms === null ? "–" : durationText(ms)}</span>,
  },
  {
    head: "Charged",
    numeric: true,
    cell: ({ charged }) => (charged === null ? "–" : <Credits amount={charged} />),
  },
];

/** Names of filters, as the API and the address have them. */
const filterNames = [
  "account",
  "key",
  "outcome",
  "format",
  "since",
  "until",
  "charged_at_least",
] as const;
type Filters = Partial<Record<(typeof filterNames)[number], string>>;

/** Receipts of all accounts, by what the address asks for. */
export function ReceiptsPage({ query }: { readonly query: URLSearchParams }) {
  const filters: Filters = Object.fromEntries(
    filterNames.flatMap((name) => {
      const value = query.get(name);
      return value === null ? [] : [[name, value]];
    }),
  );
  return (
    <>
      <PageHead title="Receipts">
        <span class="quiet">
          What each request reserved and was charged, by the time of its admission.
        </span>
      </PageHead>
      <FilterForm key={query.toString()} filters={filters} />
      <ReceiptTable filters={filters} />
    </>
  );
}

/** The receipts that filters let through. */
export function ReceiptTable({ filters }: { readonly filters: Filters }) {
  const narrowed = Object.keys(filters).some((name) => name !== "account");
  return (
    <PagedTable
      caption="Receipts"
      path="/receipts"
      query={filters}
      columns={"account" in filters ? columns.filter(({ head }) => head !== "Account") : columns}
      idOf={({ id }) => id}
      empty={
        narrowed ? (
          <Empty title="No receipt is like that">
            <p>
              <a href={linkTo(["receipts"])}>Show all receipts</a>
            </p>
          </Empty>
        ) : (
          <Empty title="No request yet">
            <p>Each request that is admitted leaves a receipt here.</p>
          </Empty>
        )
      }
    />
  );
}

/** How a request ended, or that it runs. */
export function Outcome({ receipt }: { readonly receipt: Receipt }) {
  if (receipt.state === "open") return <Badge tone="live">running</Badge>;
  const outcome = receipt.outcome ?? receipt.state;
  const tone = outcome === "completed" ? "good" : outcome.startsWith("cancelled") ? "warn" : "bad";
  return <Badge tone={tone}>{outcome}</Badge>;
}

function tokens(count: number | undefined) {
  return <span class="number">{count === undefined ? "–" : countText(count)}</span>;
}

const outcomes = [
  "completed",
  "cancelled",
  "cancelled-before-output",
  "refused",
  "failed",
  "lease-lost",
];
const formats = ["chat-completions", "responses", "messages"];

function choices(values: readonly string[]): readonly (readonly [string, string])[] {
  return [["", "any"], ...values.map((value) => [value, value] as const)];
}

function FilterForm({ filters }: { readonly filters: Filters }) {
  const [wanted, setWanted] = useState<Filters>(filters);
  const set = (name: keyof Filters) => (value: string) => setWanted({ ...wanted, [name]: value });
  return (
    <form
      class="filters"
      aria-label="Which receipts"
      onSubmit={(event) => {
        event.preventDefault();
        goTo(linkTo(["receipts"], wanted));
      }}
    >
      <Field
        label="Account"
        value={wanted.account ?? ""}
        onInput={set("account")}
        placeholder="acct_…"
      />
      <Field label="Key" value={wanted.key ?? ""} onInput={set("key")} placeholder="key_…" />
      <Choice
        label="Ended"
        value={wanted.outcome ?? ""}
        choices={choices(outcomes)}
        onChange={set("outcome")}
      />
      <Choice
        label="Format"
        value={wanted.format ?? ""}
        choices={choices(formats)}
        onChange={set("format")}
      />
      <Field
        label="Charged at least"
        value={wanted.charged_at_least ?? ""}
        onInput={set("charged_at_least")}
        inputMode="decimal"
        placeholder="0"
      />
      <div class="actions">
        <Button type="submit">Show</Button>
        {Object.keys(filters).length > 0 && <a href={linkTo(["receipts"])}>All</a>}
      </div>
    </form>
  );
}
