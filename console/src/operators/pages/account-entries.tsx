import type { Entry } from "../../api/types.ts";
import { BalancePlot } from "../../components/balance-plot.tsx";
import { Empty } from "../../components/state.tsx";
import { amountColumn, type Column, PagedTable } from "../../components/table.tsx";
import { Time } from "../../components/text.tsx";
import { linkTo } from "../../place.ts";
import { Named, useOperatorNames } from "../operator-names.tsx";

/** Movements of a page, which are plotted together. */
const rowsOfPage = "100";

/** The account's journal: every movement with the balance after it. */
export function AccountEntries({ id, turn }: { readonly id: string; readonly turn: number }) {
  const names = useOperatorNames();
  return (
    <PagedTable
      caption="Movements"
      path={`/accounts/${id}/entries`}
      query={{ limit: rowsOfPage }}
      above={(entries) => <BalancePlot entries={entries} />}
      columns={columnsOf(names)}
      idOf={({ sequence }) => String(sequence)}
      turn={turn}
      empty={
        <Empty title="Nothing has moved yet">
          <p>
            Credit that is added, and what requests hold and are charged, stands here. A top-up is
            the first.
          </p>
        </Empty>
      }
    />
  );
}

function columnsOf(names: ReadonlyMap<string, string> | null): readonly Column<Entry>[] {
  return [
    { head: "No.", numeric: true, cell: ({ sequence }) => <span class="number">{sequence}</span> },
    { head: "Time", cell: ({ at }) => <Time at={at} /> },
    { head: "Kind", names: true, cell: ({ kind }) => kind },
    amountColumn("Amount", ({ amount }) => amount),
    amountColumn("Held change", ({ held_change: held }) => held),
    amountColumn("Balance after", ({ balance }) => balance),
    { head: "By", cell: ({ actor }) => <Named id={actor} names={names} /> },
    { head: "For", cell: (entry) => <Purpose entry={entry} /> },
  ];
}

function Purpose({ entry: { note, receipt, reference, request } }: { readonly entry: Entry }) {
  const id = request ?? receipt;
  return (
    <>
      {id !== null && (
        <a href={linkTo(["receipts", id])}>
          <code>{id}</code>
        </a>
      )}{" "}
      {reference !== null && <code class="quiet">{reference}</code>} {note}
    </>
  );
}
