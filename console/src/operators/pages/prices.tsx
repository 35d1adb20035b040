import { useState } from "preact/hooks";
import { get, send } from "../../api/client.ts";
import type { Page, PriceList } from "../../api/types.ts";
import { useLoad } from "../../api/use-load.ts";
import { Button } from "../../components/button.tsx";
import { ActionDialog, errorOf } from "../../components/dialog.tsx";
import { Field } from "../../components/field.tsx";
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
      {asked !== null && (
        <PriceDialog
          list={asked === "new" ? null : asked}
          onClose={() => setAsked(null)}
          onDone={load.reload}
        />
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

/** Makes a list, or gives one other prices for the time to come. */
function PriceDialog({
  list,
  onClose,
  onDone,
}: {
  readonly list: PriceList | null;
  readonly onClose: () => void;
  readonly onDone: () => void;
}) {
  const [name, setName] = useState(list?.name ?? "");
  const [from, setFrom] = useState("");
  const [input, setInput] = useState("");
  const [cached, setCached] = useState("");
  const [output, setOutput] = useState("");
  return (
    <ActionDialog
      title={list === null ? "New price list" : `Other prices for ${list.name}`}
      action={list === null ? "Make the list" : "Set the prices"}
      onClose={onClose}
      run={async (once) => {
        const price = {
          input: input.trim(),
          output: output.trim(),
          ...(cached.trim() === "" ? {} : { cached_input: cached.trim() }),
          ...(from.trim() === "" ? {} : { effective_from: from.trim() }),
        };
        if (list === null)
          await send("POST", "/price_lists", {
            body: { name: name.trim(), prices: [price] },
            once,
          });
        else
          await send("PATCH", `/price_lists/${encodeURIComponent(list.name)}`, {
            body: { prices: [price] },
            version: list.version,
          });
        say(list === null ? "The list is made" : "The prices are set");
        onDone();
      }}
    >
      {(error) => (
        <>
          {list === null ? (
            <Field
              label="Name"
              value={name}
              onInput={setName}
              error={errorOf(error, "name")}
              required
              autoFocus
            />
          ) : (
            <p>
              They replace all prices of this list that have not begun. Requests that run keep the
              prices that they were admitted with.
            </p>
          )}
          <Field
            label="From"
            value={from}
            onInput={setFrom}
            placeholder="2027-01-01T00:00:00Z"
            error={errorOf(error, "prices.0.effective_from")}
            hint="Empty: from now on."
          />
          <Field
            label="Input"
            value={input}
            onInput={setInput}
            inputMode="decimal"
            error={errorOf(error, "prices.0.input")}
            required
          />
          <Field
            label="Cached input"
            value={cached}
            onInput={setCached}
            inputMode="decimal"
            error={errorOf(error, "prices.0.cached_input")}
            hint="Empty: as input."
          />
          <Field
            label="Output"
            value={output}
            onInput={setOutput}
            inputMode="decimal"
            error={errorOf(error, "prices.0.output")}
            required
          />
        </>
      )}
    </ActionDialog>
  );
}
