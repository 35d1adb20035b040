import { useState } from "preact/hooks";
import { get, send } from "../../api/client.ts";
import type { Page, PriceList } from "../../api/types.ts";
import { useLoad } from "../../api/use-load.ts";
import { Button } from "../../components/button.tsx";
import { filled, FormDialog } from "../../components/form-dialog.tsx";
import { PageHead, Section } from "../../components/page.tsx";
import { Loaded } from "../../components/state.tsx";
import { amountColumn, type Column, Table } from "../../components/table.tsx";
import { Badge, Time } from "../../components/text.tsx";
import { say } from "../../components/toast.tsx";
import { asInstant, ownTimeZone } from "../../time-zones.ts";
import { timeText } from "../../words.ts";
import { useMay } from "../session.ts";

type Price = PriceList["prices"][number];

interface Asked {
  /** null: a list to make. */
  readonly list: PriceList | null;
  /** A price of it to remove; null: one to add. */
  readonly remove: Price | null;
}

/** What tokens cost whom, from when on. */
export function PricesPage() {
  const load = useLoad("prices", (signal) =>
    get<Page<PriceList>>("/price_lists", { query: { limit: 500 }, signal }),
  );
  const [asked, setAsked] = useState<Asked | null>(null);
  const mayChange = useMay("billing");
  const close = (): void => setAsked(null);
  return (
    <>
      <PageHead
        title="Prices"
        actions={
          mayChange && (
            <Button kind="main" onClick={() => setAsked({ list: null, remove: null })}>
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
          <div class="prices">
            {data.map((list) => (
              <Section
                key={list.name}
                title={list.name}
                hint={
                  list.source === "settings"
                    ? "These are the prices of the settings. A list of this name, once made, replaces them."
                    : undefined
                }
                actions={
                  mayChange &&
                  list.source === "ledger" && (
                    <Button
                      label={`Add a price to ${list.name}`}
                      onClick={() => setAsked({ list, remove: null })}
                    >
                      Add a price
                    </Button>
                  )
                }
              >
                <Table
                  caption={`Prices of ${list.name}`}
                  columns={columnsOf(
                    list,
                    mayChange ? (remove) => setAsked({ list, remove }) : null,
                  )}
                  rows={list.prices}
                  idOf={({ effective_from: from }) => from ?? "always"}
                />
              </Section>
            ))}
          </div>
        )}
      </Loaded>
      {asked?.list === null && <NewList onClose={close} onDone={load.reload} />}
      {asked !== null && asked.list !== null && asked.remove === null && (
        <AddPrice list={asked.list} onClose={close} onDone={load.reload} />
      )}
      {asked !== null && asked.list !== null && asked.remove !== null && (
        <RemovePrice list={asked.list} price={asked.remove} onClose={close} onDone={load.reload} />
      )}
    </>
  );
}

function columnsOf(
  { prices }: PriceList,
  remove: ((price: Price) => void) | null,
): readonly Column<Price>[] {
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
    amountColumn("Input", ({ input }) => input),
    amountColumn("Cached input", ({ cached_input: cached }) => cached),
    amountColumn("Output", ({ output }) => output),
    {
      head: "Status",
      cell: (price) =>
        price === present ? (
          <Badge tone="good">in force</Badge>
        ) : begun.includes(price) ? (
          <Badge>past</Badge>
        ) : (
          <Badge tone="live">to come</Badge>
        ),
    },
    ...(remove === null || begun.length === prices.length ? [] : [removal(begun, remove)]),
  ];
}

/** What has not begun can be removed. */
function removal(begun: readonly Price[], remove: (price: Price) => void): Column<Price> {
  return {
    head: "",
    cell: (price) =>
      !begun.includes(price) && (
        <div class="row-actions">
          <Button
            kind="quiet-danger"
            label={`Remove the price from ${timeText(price.effective_from ?? "")} on`}
            onClick={() => remove(price)}
          >
            Remove
          </Button>
        </div>
      ),
  };
}

const priceFields = {
  from: {
    label: "From",
    type: "time",
    hint: `In your time zone, ${ownTimeZone()}. Empty: from now on.`,
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
    ...filled({
      cached_input: cached.trim(),
      effective_from: from === "" ? "" : asInstant(from),
    }),
  };
}

interface DialogProps {
  readonly onClose: () => void;
  readonly onDone: () => Promise<void>;
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
        await onDone();
      }}
    >
      <p>Credits for a million tokens. Accounts pay by it once it is chosen in their settings.</p>
    </FormDialog>
  );
}

/** Sends the list as it was read with what is to be different; what was changed meanwhile is not overwritten. */
async function setPrices(list: PriceList, prices: readonly object[]): Promise<void> {
  const path = `/price_lists/${encodeURIComponent(list.name)}`;
  await send("PATCH", path, { body: { prices }, version: list.version });
}

/** Gives a list other prices from a time on. */
function AddPrice({ list, onClose, onDone }: DialogProps & { readonly list: PriceList }) {
  return (
    <FormDialog
      title={`Add a price to ${list.name}`}
      action="Add the price"
      onClose={onClose}
      fields={priceFields}
      run={async (_once, price) => {
        await setPrices(list, [priceOf(price), ...list.prices]);
        say("The price is added");
        await onDone();
      }}
    >
      <p>
        Credits for a million tokens, up to the next price of the list. Requests that run keep the
        prices that they were admitted with.
      </p>
    </FormDialog>
  );
}

/** Takes back a price that has not begun. */
function RemovePrice({
  list,
  onClose,
  onDone,
  price,
}: DialogProps & { readonly list: PriceList; readonly price: Price }) {
  return (
    <FormDialog
      title={`Remove a price of ${list.name}?`}
      action="Remove the price"
      danger
      onClose={onClose}
      run={async () => {
        await setPrices(
          list,
          list.prices.filter((other) => other !== price),
        );
        say("The price is removed");
        await onDone();
      }}
    >
      <p>
        The price from <Time at={price.effective_from ?? ""} /> on does not begin. The one before it
        goes on.
      </p>
    </FormDialog>
  );
}
