import { useState } from "preact/hooks";
import { get, send } from "../../api/client.ts";
import type { Page, PriceList } from "../../api/types.ts";
import { useLoad } from "../../api/use-load.ts";
import { Button } from "../../components/button.tsx";
import { filled, FormDialog } from "../../components/form-dialog.tsx";
import { PageHead, Section } from "../../components/page.tsx";
import { Loaded } from "../../components/state.tsx";
import { type Column, Table } from "../../components/table.tsx";
import { Badge, Credits, Time } from "../../components/text.tsx";
import { say } from "../../components/toast.tsx";
import { useMay } from "../session.ts";

type Price = PriceList["prices"][number];

/** What tokens cost whom, from when on. */
export function PricesPage() {
  const load = useLoad("prices", (signal) =>
    get<Page<PriceList>>("/price_lists", { query: { limit: 500 }, signal }),
  );
  const [asked, setAsked] = useState<PriceList | "new" | null>(null);
  const mayChange = useMay("billing");
  return (
    <>
      <PageHead
        title="Prices"
        actions={
          mayChange && (
            <Button kind="main" onClick={() => setAsked("new")}>
              New price list
            </Button>
          )
        }
      >
        <span class="quiet">
          Credits for a million tokens. Accounts without a list of their own pay by <i>default</i>.
        </span>
      </PageHead>
      <Loaded load={load} what="the prices">
        {({ data }) => (
          <>
            {data.map((list) => (
              <Section
                key={list.name}
                title={list.name}
                hint={
                  list.source === "settings"
                    ? "These are the prices of the settings. A list of this name, once made, goes before them."
                    : undefined
                }
                actions={
                  mayChange &&
                  list.source === "ledger" && (
                    <Button
                      label={`Change the prices of ${list.name}`}
                      onClick={() => setAsked(list)}
                    >
                      Change prices
                    </Button>
                  )
                }
              >
                <Table
                  caption={`Prices of ${list.name}`}
                  columns={columnsOf(list)}
                  rows={list.prices}
                  idOf={({ effective_from: from }) => from ?? "always"}
                />
              </Section>
            ))}
          </>
        )}
      </Loaded>
      {asked === "new" && <NewList onClose={() => setAsked(null)} onDone={load.reload} />}
      {asked !== null && asked !== "new" && (
        <OtherPrices list={asked} onClose={() => setAsked(null)} onDone={load.reload} />
      )}
    </>
  );
}

function columnsOf({ prices }: PriceList): readonly Column<Price>[] {
  const nowMs = Date.now();
  const begun = prices.filter(
    ({ effective_from: from }) => from === null || Date.parse(from) <= nowMs,
  );
  const present = begun.at(-1);
  return [
    {
      head: "From",
      names: true,
      cell: ({ effective_from: from }) => (from === null ? "always" : <Time at={from} />),
    },
    { head: "Input", numeric: true, cell: ({ input }) => <Credits amount={input} /> },
    {
      head: "Cached input",
      numeric: true,
      cell: ({ cached_input: cached }) => <Credits amount={cached} />,
    },
    { head: "Output", numeric: true, cell: ({ output }) => <Credits amount={output} /> },
    {
      head: "State",
      cell: (price) =>
        price === present ? (
          <Badge tone="good">in force</Badge>
        ) : begun.includes(price) ? (
          <Badge>past</Badge>
        ) : (
          <Badge tone="live">to come</Badge>
        ),
    },
  ];
}

const priceFields = {
  from: {
    label: "From",
    placeholder: "2027-01-01T00:00:00Z",
    hint: "Empty: from now on.",
    param: "prices.0.effective_from",
  },
  input: { label: "Input", inputMode: "decimal", required: true, param: "prices.0.input" },
  cached: {
    label: "Cached input",
    inputMode: "decimal",
    hint: "Empty: as input.",
    param: "prices.0.cached_input",
  },
  output: { label: "Output", inputMode: "decimal", required: true, param: "prices.0.output" },
} as const;

function priceOf({ cached, from, input, output }: Record<keyof typeof priceFields, string>) {
  return {
    input: input.trim(),
    output: output.trim(),
    ...filled({ cached_input: cached.trim(), effective_from: from.trim() }),
  };
}

interface DialogProps {
  readonly onClose: () => void;
  readonly onDone: () => void;
}

function NewList({ onClose, onDone }: DialogProps) {
  return (
    <FormDialog
      title="New price list"
      action="Make the list"
      onClose={onClose}
      fields={{ name: { label: "Name", required: true }, ...priceFields }}
      run={async (once, { name, ...price }) => {
        const body = { name: name.trim(), prices: [priceOf(price)] };
        await send("POST", "/price_lists", { body, once });
        say("The list is made");
        onDone();
      }}
    />
  );
}

/** Gives a list other prices for the time to come. */
function OtherPrices({ list, onClose, onDone }: DialogProps & { readonly list: PriceList }) {
  return (
    <FormDialog
      title={`Other prices for ${list.name}`}
      action="Set the prices"
      onClose={onClose}
      fields={priceFields}
      run={async (_once, price) => {
        const body = { prices: [priceOf(price)] };
        const path = `/price_lists/${encodeURIComponent(list.name)}`;
        await send("PATCH", path, { body, version: list.version });
        say("The prices are set");
        onDone();
      }}
    >
      <p>
        They replace all prices of this list that have not begun. Requests that run keep the prices
        that they were admitted with.
      </p>
    </FormDialog>
  );
}
