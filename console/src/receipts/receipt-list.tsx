import { useState } from "preact/hooks";
import { Button } from "../components/button.tsx";
import { Choice, Field } from "../components/field.tsx";
import { Time } from "../components/text.tsx";
import { linkTo } from "../place.ts";
import { goTo } from "../router.ts";
import { formatNames, outcomeText } from "../words.ts";
import { type Filters, filterNames, ReceiptTable } from "./receipt-table.tsx";

/** Receipts by what the address asks for: of all accounts, or, `ofCaller`, of the account of a key. */
export function ReceiptList({
  ofCaller = false,
  query,
}: {
  readonly query: URLSearchParams;
  readonly ofCaller?: boolean;
}) {
  const filters: Filters = Object.fromEntries(
    filterNames.flatMap((name) => {
      const value = query.get(name);
      return value === null || (ofCaller && name === "account") ? [] : [[name, value]];
    }),
  );
  return (
    <>
      <FilterForm key={query.toString()} filters={filters} ofCaller={ofCaller} />
      <ReceiptTable filters={filters} ofCaller={ofCaller} />
    </>
  );
}

const any = ["", "any"] as const;
const outcomes = [
  "completed",
  "cancelled",
  "cancelled-before-output",
  "cancelled-by-operator",
  "refused",
  "failed",
  "lease-lost",
].map((outcome) => [outcome, outcomeText(outcome)] as const);

function FilterForm({
  filters,
  ofCaller,
}: {
  readonly filters: Filters;
  readonly ofCaller: boolean;
}) {
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
      {!ofCaller && (
        <Field
          label="Account"
          value={wanted.account ?? ""}
          onInput={set("account")}
          placeholder="acct_…"
        />
      )}
      <Field label="Key" value={wanted.key ?? ""} onInput={set("key")} placeholder="key_…" />
      <Choice
        label="Outcome"
        value={wanted.outcome ?? ""}
        choices={[any, ...outcomes]}
        onChange={set("outcome")}
      />
      <Choice
        label="Format"
        value={wanted.format ?? ""}
        choices={[any, ...Object.entries(formatNames)]}
        onChange={set("format")}
      />
      <Field
        label="Label"
        value={wanted.label ?? ""}
        onInput={set("label")}
        placeholder="of one user"
      />
      <Field
        label="Charged at least"
        value={wanted.charged_at_least ?? ""}
        onInput={set("charged_at_least")}
        inputMode="decimal"
        placeholder="credits"
      />
      <TimeSpan what="Admitted" since={filters.since} until={filters.until} />
      <TimeSpan what="Ended" since={filters.ended_since} until={filters.ended_until} />
      <div class="actions">
        <Button type="submit">Show</Button>
        {Object.keys(filters).length > 0 && <a href={linkTo(["receipts"])}>All</a>}
      </div>
    </form>
  );
}

function TimeSpan({
  since,
  until,
  what,
}: {
  readonly what: string;
  readonly since: string | undefined;
  readonly until: string | undefined;
}) {
  if (since === undefined && until === undefined) return null;
  return (
    <p class="hint filter-times">
      {what}{" "}
      {since !== undefined && (
        <>
          from <Time at={since} />
        </>
      )}{" "}
      {until !== undefined && (
        <>
          up to <Time at={until} />
        </>
      )}
    </p>
  );
}
